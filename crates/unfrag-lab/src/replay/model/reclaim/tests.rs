//! What the owner of a replay's pages answers when reclaim asks for them.

use super::pages::{Hold, MOST_SPARED, Pages};
use crate::replay::causes::{HostBlock, Pace};
use std::collections::BTreeMap;
use unfrag_eras::reclaim::{Content, Verdict};
use unfrag_eras::{NodeId, Pfn};

fn pages(cold: &[bool]) -> Pages {
    let pace = Pace {
        swap_pages: 10,
        ..Pace::default()
    };
    let mut pages = Pages::new(cold.len(), &pace);
    for (at, cold) in (0..).zip(cold) {
        let hold = if *cold { Hold::Cold } else { Hold::InUse };
        pages.set_block(at, HostBlock { pfn: at, order: 0 }, hold);
    }
    pages
}

#[test]
fn of_pages_in_use_one_is_taken_after_many_were_spared() {
    let mut p = pages(&[false, false]);
    for round in 0..2 {
        for _ in 0..MOST_SPARED {
            assert_eq!(
                p.verdict(Pfn(round), true, Content::Write),
                Verdict::NoSpace
            );
        }
        // It is written first; until it is gone, the others are spared all the same.
        let verdict = p.verdict(Pfn(round), true, Content::Write);
        assert_eq!(verdict, Verdict::Writing, "page {round}");
    }
    for page in [0, 1] {
        let verdict = p.verdict(Pfn(page), false, Content::Clean);
        assert_eq!(verdict, Verdict::Released);
    }
}

#[test]
fn cold_pages_go_as_long_as_swap_has_places() {
    let mut p = pages(&[true; 12]);
    let gone = (0..12).filter(|&i| p.verdict(Pfn(i), true, Content::Write) == Verdict::Writing);
    assert_eq!(gone.count(), 10);
}

#[test]
fn a_look_takes_what_it_took_in_the_run_under_way_or_the_last() {
    let pace = Pace {
        ns_per_scanned: 10,
        runs: BTreeMap::from([(NodeId(1), vec![(100, 20), (200, 50)])]),
        ..Pace::default()
    };
    let at = [0, 100, 199, 200, 900].map(|t| pace.ns_per_look(NodeId(1), t));
    assert_eq!(at, [20, 20, 20, 50, 50]);
    assert_eq!(pace.ns_per_look(NodeId(0), 900), 10);
}

#[test]
fn page_cache_in_use_goes_when_it_was_spared_often_enough_and_needs_no_swap() {
    let mut p = pages(&[false; 2]);
    p.set_block(0, HostBlock { pfn: 0, order: 0 }, Hold::Cache(2));
    for _ in 0..2 {
        assert_eq!(p.verdict(Pfn(0), true, Content::Clean), Verdict::NoSpace);
    }
    assert_eq!(p.verdict(Pfn(0), true, Content::Clean), Verdict::Released);
    assert_eq!(p.swap_left(), 10);
    assert_eq!(p.verdict(Pfn(1), true, Content::Clean), Verdict::NoSpace);
}
