//! Lists that tune themselves: 6.18. `spec: 3.2`

use super::*;

fn tuned(batch: i32, high_min: i32, high_max: i32) -> Rig {
    tuned_as("6.18", batch, high_min, high_max)
}

fn tuned_as(era: &str, batch: i32, high_min: i32, high_max: i32) -> Rig {
    let mut rig = Rig::new(era).stock(Movable);
    rig.set.batch = batch;
    (rig.set.high, rig.set.high_min, rig.set.high_max) = (high_min, high_min, high_max);
    rig
}

/// `spec: 3.2`
#[test]
fn refills_of_6_18_double_while_demand_lasts() {
    let mut rig = tuned(4, 16, 400);
    let mut sizes = Vec::new();
    for _ in 0..8 {
        while rig.set.count > 0 {
            rig.alloc(0, Movable);
        }
        rig.alloc(0, Movable);
        sizes.push((rig.set.count + 1, rig.set.high, rig.set.factor));
    }
    // n = 4 << factor; high grows by n; room = high - count - batch caps n.
    assert_eq!(
        sizes,
        [
            (4, 20, 1),
            (8, 28, 2),
            (16, 44, 3),
            (32, 76, 4),
            (64, 140, 5),
            (128, 268, 5),
            (128, 396, 5),
            (128, 400, 5),
        ]
    );
}

/// `spec: 3.2`
#[test]
fn room_limits_a_refill_of_6_18() {
    let mut rig = tuned(4, 16, 16);
    rig.set.factor = 3;
    rig.alloc(0, Movable);
    // Not self-tuned: high stays; room = max(16 - 0 - 4, 4) = 12 < 32, so the factor stays too.
    assert_eq!(
        (rig.set.count + 1, rig.set.factor, rig.set.high),
        (12, 3, 16)
    );
    let mut rig = tuned(20, 16, 16);
    rig.alloc(0, Movable);
    assert_eq!(rig.set.count + 1, 1, "high below batch: one page");
}

/// `spec: 3.2`
#[test]
fn higher_orders_of_6_18_take_a_batch_in_pages() {
    for (order, blocks) in [(1, 31), (2, 15), (3, 7), (9, 2)] {
        let mut rig = tuned(63, 321, 8192);
        rig.set.factor = 4;
        rig.alloc(order, Movable);
        assert_eq!(rig.set.count, (blocks - 1) << order);
        assert_eq!(rig.set.factor, 4, "only order 0 raises it");
        assert_eq!(rig.set.high, 321 + 63);
    }
}

/// `spec: 3.2`
#[test]
fn a_zone_below_its_high_mark_does_not_grow_its_sets() {
    let mut rig = tuned(4, 16, 400);
    rig.zone.below_high = true;
    rig.alloc(0, Movable);
    assert_eq!(rig.set.high, 16);
    // Frees shrink high, and the threshold is what is held.
    rig.set.high = 100;
    rig.hold(1, 8000, 30, Movable);
    rig.zone.counter = 0;
    rig.zone.marks.high = 1 << 20;
    let held = rig.set.count + 1;
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.high, 96, "by max(free_count, batch)");
    assert_eq!(rig.set.count, held - 4);
    assert!(rig.zone.below_high);
    rig.zone.marks.high = 0;
    rig.free(9002, 0, Movable);
    assert!(!rig.zone.below_high, "cleared once the zone is above");
}

/// `spec: 3.2`
#[test]
fn frees_count_up_and_allocations_halve_them() {
    let mut rig = tuned(4, 400, 400);
    rig.set.factor = 4;
    for k in 0..10 {
        rig.free(8000 + 2 * k, 0, Movable);
    }
    assert_eq!((rig.set.free_count, rig.set.factor), (10, 0));
    rig.alloc(0, Movable);
    assert_eq!(rig.set.free_count, 5);
    for k in 0..20 {
        rig.free(9000 + 16 * k, 3, Movable);
        rig.set.prev_free_high = 0;
    }
    assert_eq!(rig.set.free_count, 133, "until it reaches 4 << 5");
}

/// `spec: 3.2`
#[test]
fn a_set_of_6_18_gives_back_what_was_freed_of_late() {
    let mut rig = tuned(4, 40, 40);
    rig.hold(1, 8000, 39, Movable);
    rig.set.free_count = 9;
    rig.free(9000, 0, Movable);
    assert_eq!(
        rig.set.count,
        40 - 10,
        "clamp(free_count, batch, T - batch)"
    );
    let mut rig = tuned(4, 40, 40);
    rig.hold(1, 8000, 39, Movable);
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.count, 40 - 4);
    let mut rig = tuned(4, 40, 40);
    rig.hold(1, 8000, 39, Movable);
    rig.set.free_count = 100;
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.count, 4);
}

/// `spec: 3.2`
#[test]
fn high_of_6_18_grows_to_hold_what_is_freed() {
    let mut rig = tuned(4, 40, 400);
    rig.hold(1, 8000, 39, Movable);
    rig.set.free_count = 100;
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.high, 105, "free_count + batch");
    assert_eq!(rig.set.count, 4, "the threshold was still 40");
}

/// `spec: 3.2`
#[test]
fn kswapd_at_work_shrinks_sets_of_6_18() {
    let mut rig = tuned(4, 16, 400);
    rig.set.high = 100;
    rig.zone.reclaim_active = true;
    rig.hold(1, 8000, 15, Movable);
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.high, 96);
    assert_eq!(rig.set.count, 12, "T = 4 × batch");
}

/// `spec: 3.2`
#[test]
fn a_burst_in_6_18_needs_two_small_blocks_in_a_row() {
    let mut rig = tuned(4, 40, 400);
    rig.set.high = 200;
    rig.set.free_count = 4 + 20 - 2;
    rig.hold(1, 8000, 50, Movable);
    rig.free(9000, 1, Movable);
    assert_eq!(rig.set.count, 52, "the first of a row");
    rig.free(9008, 1, Movable);
    assert_eq!(rig.set.count, 0, "min(count, batch << 5)");
    assert_eq!(rig.set.high, 72, "200 - (4 << 5)");
    rig.free(9016, 0, Movable);
    rig.set.free_count = 100;
    rig.free(9024, 1, Movable);
    assert_eq!(rig.set.count, 3, "order 0 in between ends the row");
}

/// `spec: 3.2`
#[test]
fn a_burst_in_6_12_begins_at_a_batch() {
    for (era, kept) in [("6.12", 0), ("6.18", 54), ("7.2", 54)] {
        for (freed, kept) in [(4, kept), (3, 54), (24, 0)] {
            let mut rig = tuned_as(era, 4, 40, 400);
            rig.set.high = 200;
            rig.hold(1, 8000, 50, Movable);
            rig.free(9000, 1, Movable);
            rig.set.free_count = freed;
            rig.free(9008, 1, Movable);
            assert_eq!(rig.set.count, kept, "{era}, {freed} freed of late");
        }
    }
}

/// `spec: 3.2`
#[test]
fn idle_sets_of_6_18_decay() {
    let mut rig = tuned(2, 16, 400);
    rig.set.high = 80;
    rig.hold(1, 8000, 76, Movable);
    rig.decay();
    // max(76 - 64, 80 - 10, 16) = 70.
    assert_eq!((rig.set.high, rig.set.count), (70, 70));
    rig.set.high = 17;
    rig.decay();
    assert_eq!((rig.set.high, rig.set.count), (16, 16));
    let mut rig = tuned(2, 16, 16);
    rig.set.high = 80;
    rig.hold(1, 8000, 76, Movable);
    rig.decay();
    assert_eq!(
        (rig.set.high, rig.set.count),
        (80, 76),
        "only where high is tuned"
    );
}
