//! What the host of a replay says of its pages, and what kswapd's time is.

use super::evidence::own_time;
use super::*;
use unfrag_linux::recording::Events;

fn pages(cold: &[bool]) -> Pages {
    Pages {
        cold: cold.to_vec(),
        name: vec![NONE; cold.len()],
        in_swap: vec![false; cold.len()],
        swap_left: 10,
        ..Pages::default()
    }
}

#[test]
fn of_pages_in_use_one_is_taken_after_many_were_spared() {
    let mut p = pages(&[false, false]);
    for round in 0..2 {
        for _ in 0..GIVES_IN {
            assert_eq!(p.try_to_unmap(Pfn(round)), Unmap::NoSpace);
        }
        assert_eq!(p.try_to_unmap(Pfn(round)), Unmap::Gone, "page {round}");
        // It is written first; until it is gone, the others are spared all the same.
        assert_eq!(p.writepage(Pfn(round)), Written::Started);
    }
    assert!(p.release_page(Pfn(0)) && p.release_page(Pfn(1)));
}

#[test]
fn cold_pages_go_as_long_as_swap_has_places() {
    let mut p = pages(&[true; 12]);
    let gone = (0..12).filter(|&i| p.try_to_unmap(Pfn(i)) == Unmap::Gone);
    assert_eq!(gone.count(), 10);
}

#[test]
fn a_look_takes_what_it_took_in_the_run_under_way_or_the_last() {
    let mut pace = Pace {
        ns_per_scanned: 10,
        runs: vec![(100, 20), (200, 50)],
        ns_per_written: 0,
        swap_pages: 0,
    };
    let at = [0, 100, 199, 200, 900].map(|t| pace.ns_per_look(t));
    assert_eq!(at, [20, 20, 20, 50, 50]);
    pace.runs.clear();
    assert_eq!(pace.ns_per_look(900), 10);
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
