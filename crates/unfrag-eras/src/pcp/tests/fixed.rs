//! Lists for several orders whose size is fixed: 6.1. `spec: 3`

use super::*;

/// `spec: 3.2`
#[test]
fn lists_of_6_1_are_by_order_and_type() {
    let list_index = |order, mt| crate::pcp::list_index(Order(order), mt);
    assert_eq!(list_index(0, Unmovable), 0);
    assert_eq!(list_index(0, Reclaimable), 2);
    assert_eq!(list_index(3, Movable), 10);
    assert_eq!(list_index(9, Unmovable), 12);
    assert_eq!(list_index(9, Reclaimable), 12);
    assert_eq!(list_index(9, Movable), 13);
    let shape = preset("6.1").map(|p| p.rules.pcp).expect("6.1");
    let served = |huge| -> Vec<u8> {
        let all = (0..=13).filter(|&o| shape.serves(Order(o), Order(huge)));
        all.collect()
    };
    assert_eq!(served(9), [0, 1, 2, 3, 9]);
    assert_eq!(served(13), [0, 1, 2, 3, 13]);
    assert_eq!(list_index(5, Unmovable), 12);
    assert_eq!(list_index(13, Movable), 13);
}

/// `spec: 3`
#[test]
fn refill_of_6_1_is_batch_over_order_at_least_two() {
    for (order, blocks) in [(0, 63), (1, 31), (2, 15), (3, 7), (9, 2)] {
        let mut rig = Rig::new("6.1").stock(Movable).sized(63, 5524);
        assert_eq!(rig.alloc(order, Movable), Some(0));
        assert_eq!(rig.set.count, (blocks - 1) << order, "order {order}");
        let i = crate::pcp::list_index(Order(order), Movable);
        let expected: Vec<u32> = (1..blocks as u32).map(|k| k << order).collect();
        assert_eq!(rig.list(i), expected, "appended in ascending order");
    }
    for (batch, order, blocks) in [(1, 0, 1), (1, 3, 1), (1, 9, 1), (3, 2, 2)] {
        let mut rig = Rig::new("6.1").stock(Movable).sized(batch, 118);
        rig.alloc(order, Movable);
        assert_eq!(rig.set.count, (blocks - 1) << order, "batch {batch}");
    }
}

/// `spec: 3`
#[test]
fn a_refill_does_not_look_at_the_marks() {
    let mut rig = Rig::new("6.1").stock(Movable).sized(63, 500);
    rig.zone.marks.min = 1 << 20;
    assert!(rig.alloc(0, Movable).is_some());
    assert_eq!(rig.set.count, 62);
}

/// `spec: 3, 10`
#[test]
fn only_a_single_allocation_halves_the_free_factor() {
    let mut rig = Rig::new("6.1").stock(Movable).sized(63, 500);
    rig.set.factor = 5;
    rig.alloc(0, Movable);
    assert_eq!(rig.set.factor, 2);
    assert!(rig.alloc_as(0, Movable, false).is_some());
    assert_eq!(rig.set.factor, 2);
}

/// `spec: 3`
#[test]
fn thresholds_of_6_1_grow_with_the_factor() {
    // batch 4, high 40: clamp(4 << factor, 4, 36), the factor growing while 4 << factor < 36.
    let mut rig = Rig::new("6.1").sized(4, 40);
    rig.hold(1, 0, 39, Movable);
    let (mut sizes, mut next) = (Vec::new(), 1000);
    for _ in 0..6 {
        while rig.given().is_empty() {
            let held = rig.set.count;
            rig.free(next, 0, Movable);
            next += 2;
            if rig.set.count <= held {
                sizes.push((held + 1 - rig.set.count, rig.set.factor));
                break;
            }
        }
        rig.given();
    }
    assert_eq!(sizes, [(4, 1), (8, 2), (16, 3), (32, 4), (36, 4), (36, 4)]);
}

/// `spec: 3`
#[test]
fn a_factor_stops_at_five() {
    let mut rig = Rig::new("6.1").sized(1, 1000);
    rig.set.factor = 5;
    rig.hold(1, 0, 999, Movable);
    rig.free(4000, 0, Movable);
    assert_eq!((rig.set.count, rig.set.factor), (1000 - 32, 5));
}

/// `spec: 3`
#[test]
fn kswapd_at_work_keeps_sets_of_6_1_small() {
    let mut rig = Rig::new("6.1").sized(4, 40);
    rig.zone.reclaim_active = true;
    rig.hold(1, 0, 15, Movable);
    rig.free(1000, 0, Movable);
    assert_eq!(rig.given_frames().len(), 4, "at 4 × batch");
    rig.zone.reclaim_active = false;
    rig.free(1002, 0, Movable);
    assert!(rig.given_frames().is_empty());
}

/// `spec: 3`
#[test]
fn a_burst_of_small_blocks_empties_a_set_of_6_1() {
    let mut rig = Rig::new("6.1").sized(4, 4000);
    rig.hold(0, 0, 3, Unmovable);
    rig.hold(1, 100, 5, Movable);
    rig.free(1000, 2, Movable);
    assert_eq!(rig.set.count, 12, "no burst without a factor");
    rig.set.factor = 1;
    rig.free(2000, 0, Movable);
    assert_eq!(rig.set.count, 13, "nor for order 0");
    rig.free(3072, 9, Movable);
    assert_eq!(rig.given_frames().len(), 0, "nor for order 9 below high");
    rig.free(4096, 3, Movable);
    assert_eq!(rig.set.count, 0);
    assert_eq!(rig.set.factor, 1);
}

/// `spec: 3`
#[test]
fn a_threshold_below_batch_frees_one_page_at_a_time() {
    let mut rig = Rig::new("6.1").sized(8, 4);
    rig.hold(1, 0, 3, Movable);
    rig.free(1000, 0, Movable);
    assert_eq!(rig.set.count, 3);
}

/// `spec: 3`
#[test]
fn a_bulk_free_of_6_1_starts_with_the_list_just_freed_to() {
    let mut rig = Rig::new("6.1").sized(6, 12);
    rig.hold(0, 0, 3, Unmovable);
    rig.hold(1, 100, 4, Movable);
    rig.hold(2, 200, 2, Reclaimable);
    rig.hold(1, 300, 2, Movable);
    rig.free(1000, 0, Reclaimable);
    // List 2 from its tail, then on past empty lists to 0, and then 1.
    assert_eq!(rig.given_frames(), [202, 200, 1000, 4, 2, 0]);
    rig.set.high = 0;
    rig.release(100);
    assert_eq!(rig.given_frames(), [302, 300, 106, 104, 102, 100]);
    assert_eq!(rig.set.count, 0);
}

/// `spec: 1.2`
#[test]
fn a_page_of_6_1_is_freed_to_the_list_of_its_type() {
    for (era, expected) in [("6.1", Movable), ("6.18", Unmovable)] {
        let mut rig = Rig::new(era).sized(1, 100);
        rig.all_blocks_are(Movable);
        rig.free(100, 0, Movable);
        // Its pageblock changes hands while it waits.
        rig.all_blocks_are(Unmovable);
        rig.release(1);
        assert_eq!(rig.given(), [(100, expected)], "{era}");
    }
}

/// `spec: 3.2`
#[test]
fn high_atomic_pages_wait_on_the_movable_list() {
    for era in ["6.1", "6.18"] {
        let mut rig = Rig::new(era).sized(4, 400);
        rig.all_blocks_are(HighAtomic);
        rig.free(100, 1, HighAtomic);
        assert_eq!(rig.list(3 + 1), [100], "{era}");
        rig.release(2);
        assert_eq!(rig.given(), [(100, HighAtomic)], "{era}");
    }
}

/// `spec: 10`
#[test]
fn the_free_counter_moves_beyond_the_stat_threshold_only() {
    let mut rig = Rig::new("6.1").stock(Movable).sized(8, 48);
    rig.zone.stat_threshold = 10;
    let before = rig.zone.counter;
    rig.alloc(0, Movable);
    assert_eq!((rig.zone.counter, rig.delta), (before, -8));
    for _ in 0..8 {
        rig.alloc(0, Movable);
    }
    assert_eq!((rig.zone.counter, rig.delta), (before - 16, 0));
    let mark = rig.zone.marks.of(AllocFlags::empty());
    assert!(rig.zone.passes(
        &rig.policy.rules,
        Order(0),
        mark,
        ZoneKind::Normal,
        AllocFlags::empty()
    ));
}
