//! What the host of a replay says of its pages, and what kswapd's time is.

use super::evidence::own_time;
use super::pages::GIVES_IN;
use super::*;
use std::collections::BTreeMap;
use unfrag::NodeId;
use unfrag::reclaim::{Content, Verdict};
use unfrag_linux::recording::Events;

fn pages(cold: &[bool]) -> Pages {
    let pace = Pace {
        swap_pages: 10,
        ..Pace::default()
    };
    let mut pages = Pages::new(cold.len(), &pace);
    for (at, cold) in (0..).zip(cold) {
        pages.are(at, 0, at, *cold);
    }
    pages
}

#[test]
fn of_pages_in_use_one_is_taken_after_many_were_spared() {
    let mut p = pages(&[false, false]);
    for round in 0..2 {
        for _ in 0..GIVES_IN {
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
fn kswapd_has_its_cpu_but_for_what_lies_between_two_events_of_others_there() {
    // Task 1 is kswapd. It goes from CPU 0 to CPU 1 at 60.
    let seen = [
        (0, 0, 1),
        (5, 0, 1),
        (10, 0, 0),
        (12, 1, 0),
        (14, 0, 2),
        (17, 0, 0),
        (20, 0, 1),
        (25, 1, 0),
        (30, 1, 0),
        (40, 0, 2),
        (45, 0, 1),
        (60, 1, 1),
        (70, 0, 0),
        (75, 0, 0),
        (80, 1, 0),
        (90, 1, 0),
    ];
    let events = Events {
        time: seen.iter().map(|s| s.0).collect(),
        cpu: seen.iter().map(|s| s.1).collect(),
        task: seen.iter().map(|s| s.2).collect(),
        ..Events::default()
    };
    let own = |from, to| own_time(&events, &[false, true, false], from, to);
    assert_eq!(own(0, 45), 45 - 7);
    assert_eq!(own(45, 90), 45 - 10);
    assert_eq!(own(45, 85), 40, "one event of another says nothing yet");
}
