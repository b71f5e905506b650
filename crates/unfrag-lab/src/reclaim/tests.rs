//! What the host of a replay says of its pages, and what kswapd's time is.

use super::*;

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
fn a_run_takes_the_time_of_its_looks_or_of_its_frees_whichever_is_more() {
    let pace = Pace {
        runs: vec![(0, 100)],
        ns_per_scanned: 10,
        ns_per_written: 0,
        swap_pages: 0,
    };
    let mut w = Work::default();
    assert_eq!(w.takes(32, 32, 5, &pace), 3200);
    // 288 looks in vain are within the time of the 32 pages.
    assert_eq!(w.takes(288, 0, 5, &pace), 0);
    assert_eq!(w.takes(100, 0, 5, &pace), 1000);
    assert_eq!(w.takes(0, 20, 5, &pace), 1000);
}
