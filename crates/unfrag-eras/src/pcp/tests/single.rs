//! Lists of single pages: 2.6.24 to 5.12. `spec: 2.2, 2.5, 3.1`

use super::*;

// One list a type: 2.6.32.

fn per_type(drain: Drain) -> Rig {
    let mut rig = Rig::new("2.6.32").sized(6, 100);
    rig.policy.rules.pcp = Pcp::PerType {
        drain,
        keep_type: false,
    };
    rig
}

/// `spec: 3.1`
#[test]
fn batch_free_frees_more_of_a_list_after_empty_ones() {
    // Lists 0:10, 1:0, 2:0; free 6: the first visit examines 1, 2, 0, so three pages; then again.
    let mut rig = per_type(Drain::BatchFree);
    rig.hold(0, 0, 10, Unmovable);
    rig.release(6);
    assert_eq!(rig.given_frames(), [18, 16, 14, 12, 10, 8]);
    assert_eq!(rig.set.count, 4);
}

/// `spec: 3.1`
#[test]
fn batch_free_visits_list_1_first() {
    // Lists 0:4, 1:4, 2:0; free 6: one of list 1, two of 0 (after 2), one of 1, two of 0. Type 1 is
    // reclaimable in 2.6.32 and movable today.
    for (era, second) in [("2.6.32", Reclaimable), ("5.9", Movable)] {
        let mut rig = Rig::new(era).sized(6, 100);
        rig.hold(0, 0, 4, Unmovable);
        rig.hold(1, 100, 4, second);
        rig.release(6);
        let lists: Vec<_> = rig.given();
        let expected = [106, 6, 4, 104, 2, 0].map(|ix| {
            let mt = if ix < 100 { Unmovable } else { second };
            (ix, mt)
        });
        assert_eq!(lists, expected, "{era}");
    }
}

/// `spec: 3.1`
#[test]
fn batch_free_carries_what_is_left_when_a_list_empties() {
    // 0:1, 1:1, 2:6. Credit 1 → one of list 1; 1 → list 2; then (0) 1 → list 0; then 1 is empty, so
    // 2 → two of list 2; then 0 and 1 are empty: 3 → three of list 2.
    let mut rig = per_type(Drain::BatchFree);
    rig.hold(0, 0, 1, Unmovable);
    rig.hold(1, 100, 1, Reclaimable);
    rig.hold(2, 200, 6, Movable);
    rig.release(8);
    assert_eq!(rig.given_frames(), [100, 210, 0, 208, 206, 204, 202, 200]);
}

/// `spec: 3.1`
#[test]
fn round_robin_takes_one_page_of_each_list_in_turn() {
    let mut rig = per_type(Drain::RoundRobin);
    rig.hold(0, 0, 3, Unmovable);
    rig.hold(1, 100, 1, Reclaimable);
    rig.hold(2, 200, 2, Movable);
    rig.release(6);
    assert_eq!(rig.given_frames(), [4, 100, 202, 2, 200, 0]);
}

/// `spec: 3.1`
#[test]
fn reserve_pages_leak_in_2_6_32_only() {
    for (era, home) in [("2.6.32", Movable), ("2.6.36", Reserve)] {
        let mut rig = Rig::new(era).sized(4, 4);
        rig.all_blocks_are(Reserve);
        for k in 0..4 {
            rig.free(2 * k, 0, Reserve);
        }
        let given = rig.given();
        assert_eq!(given.len(), 4);
        assert!(given.iter().all(|g| g.1 == home), "{era}: {given:?}");
        assert_eq!(rig.zone.free_area.list(Order(0), home).len, 4, "{era}");
    }
}

/// `spec: 3.1`
#[test]
fn a_refill_takes_batch_pages_in_ascending_order() {
    let mut rig = Rig::new("2.6.32").stock(Movable).sized(8, 48);
    let got: Vec<_> = (0..8).filter_map(|_| rig.alloc(0, Movable)).collect();
    assert_eq!(got, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(rig.set.count, 0);
    rig.alloc(0, Movable);
    assert_eq!(rig.set.count, 7);
    assert_eq!(rig.list(2), [9, 10, 11, 12, 13, 14, 15]);
}

/// `spec: 3.1`
#[test]
fn a_full_set_gives_batch_pages_back() {
    let mut rig = Rig::new("2.6.32").sized(2, 6);
    for k in 0..6 {
        rig.free(2 * k, 0, Movable);
    }
    assert_eq!(rig.given_frames(), [0, 2], "the coldest first");
    assert_eq!((rig.set.count, rig.list(2)), (4, std::vec![10, 8, 6, 4]));
}

// V19.

/// `spec: 2.2`
#[test]
fn v19_lists_are_apart_and_refill_at_low() {
    let mut rig = Rig::new("v19").stock(Unmovable).sized(2, 0);
    rig.zone.free_area.v19.fallback_needed = 0;
    // Low is two batches: at or below it a batch comes in.
    let counts: Vec<_> = (0..6)
        .map(|_| {
            rig.alloc(0, Unmovable);
            rig.list(0).len()
        })
        .collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 4]);
    assert!(rig.list(1).is_empty());
    // High is three batches: from there on a batch goes out.
    rig.free(4096, 0, Reclaimable);
    rig.free(4098, 0, Reclaimable);
    assert_eq!(rig.list(0).len(), 4, "kernel pages share a list");
    rig.free(4100, 0, Movable);
    assert_eq!(rig.list(1), [4100]);
    assert_eq!(rig.set.count as usize, rig.list(0).len() + 1);
}

// A searched list: 2.6.24 to 2.6.31.

/// `spec: 2.5`
#[test]
fn a_searched_list_gives_a_page_of_the_type() {
    for era in ["2.6.24", "2.6.28"] {
        let mut rig = Rig::new(era).stock(Movable).sized(4, 24);
        rig.hold(0, 1000, 2, Unmovable);
        rig.hold(0, 2000, 1, Movable);
        assert_eq!(rig.alloc(0, Movable), Some(2000), "{era}");
        assert_eq!(rig.alloc(0, Unmovable), Some(1000), "{era}");
        assert_eq!(rig.set.count, 1, "{era}");
    }
}
