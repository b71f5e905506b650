//! Splitting, merging and placement on the lists. `spec: 1.2, 9`

use super::support::*;
use unfrag_eras::MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};
use unfrag_eras::{FreeError, Order, Pfn, ZoneKind};

const ERAS: [&str; 3] = ["2.6.32", "6.1", "6.18"];

/// `spec: 1.2`
#[test]
fn a_split_keeps_the_lowest_part_and_returns_upper_halves() {
    for era in ERAS {
        let mut m = scene(era);
        m.free_at(block(0), 10, Movable);
        assert_eq!(m.take(4, MOV), block(0), "{era}");
        for order in 4..10 {
            assert_eq!(m.list(order, Movable), [block(0) + (1 << order)], "{era}");
        }
        m.free(Pfn(block(0)), 4).expect("a block in use");
        assert_eq!(m.list(10, Movable), [block(0)], "{era}: all of it merges");
        assert_eq!(m.zone_view(0).free_pages, 1024);
    }
}

/// `spec: 1.2`
#[test]
fn split_halves_go_to_the_head() {
    for era in ERAS {
        let mut m = scene(era);
        m.free_at(block(0), 5, Movable)
            .free_at(block(2), 8, Movable);
        m.used_at(block(0) + 32, 5, MOV)
            .used_at(block(2) + 256, 8, MOV);
        m.take(6, MOV);
        m.take(6, MOV);
        m.take(6, MOV);
        // Now the last 64 frames are free, then split for an order-5 block: wait for the shorter list.
        assert_eq!(m.take(5, MOV), block(0), "{era}: smallest fit first");
        assert_eq!(m.take(4, MOV), block(2) + 192, "{era}");
        assert_eq!(m.list(5, Movable), [block(2) + 224], "{era}");
    }
}

/// `spec: 1.2`
#[test]
fn the_head_is_the_next_to_go() {
    for era in ERAS {
        let mut m = scene(era);
        for i in [3, 1, 5] {
            m.free_at(block(i), 8, Movable);
            m.used_at(block(i) + 256, 8, MOV);
        }
        assert_eq!(m.take(8, MOV), block(3), "{era}");
        assert_eq!(m.take(8, MOV), block(1), "{era}");
    }
}

/// A free block of order `o` whose buddy is used and whose parent's buddy is free, or not, behind
/// another one already on the list.
fn placement(era: &str, order: u8, parents_buddy_free: bool) -> bool {
    let mut m = scene(era);
    let n = 1u64 << order;
    m.free_at(block(4), order, Movable);
    m.used_at(block(4) + n, order, MOV);
    m.used_at(block(0), order, MOV)
        .used_at(block(0) + n, order, MOV);
    if parents_buddy_free {
        m.free_at(block(0) + 2 * n, order + 1, Movable);
    } else {
        m.used_at(block(0) + 2 * n, order + 1, MOV);
    }
    m.free(Pfn(block(0)), order).expect("a block in use");
    m.check();
    let list = m.list(order, Movable);
    assert_eq!(list.len(), 2);
    list[1] == block(0)
}

/// `spec: 1.2`
#[test]
fn a_freed_block_goes_to_the_tail_if_it_will_merge_soon() {
    for order in 4..=8 {
        for era in ["5.6", "6.1", "6.18"] {
            assert!(placement(era, order, true), "{era}, order {order}");
            assert!(!placement(era, order, false), "{era}, order {order}");
        }
        assert!(
            !placement("2.6.32", order, true),
            "old kernels know heads alone"
        );
    }
}

/// `spec: 1.2`
#[test]
fn order_9_always_goes_to_the_head() {
    for era in ["6.1", "6.18"] {
        let mut m = scene(era);
        m.free_at(block(6), 9, Movable).used_at(block(7), 9, MOV);
        m.used_at(block(0), 9, MOV).used_at(block(1), 9, MOV);
        m.free_at(block(2), 10, Movable);
        m.free(Pfn(block(0)), 9).expect("a block in use");
        m.drain_all();
        assert_eq!(m.list(9, Movable), [block(0), block(6)], "{era}");
    }
}

/// `spec: 1.2`
#[test]
fn below_pageblock_order_types_do_not_keep_buddies_apart() {
    for era in ["2.6.32", "6.1"] {
        let mut m = scene(era);
        m.block_is(0, Reclaimable);
        m.free_at(block(0), 8, Unmovable)
            .used_at(block(0) + 256, 8, REC);
        m.free(Pfn(block(0) + 256), 8).expect("a block in use");
        m.drain_all();
        assert_eq!(
            m.list(9, Reclaimable),
            [block(0)],
            "{era}: list of the freed type"
        );
        assert!(m.list(8, Unmovable).is_empty(), "{era}");
    }
}

/// Frees order 9 at block 1 beside a free block 0, with these block types.
fn merge_at_9(era: &str, freed: unfrag_eras::MigrateType, buddy: unfrag_eras::MigrateType) -> M {
    let mut m = scene(era);
    m.block_is(0, buddy).block_is(1, freed);
    m.free_at(block(0), 9, buddy).used_at(block(1), 9, MOV);
    m.free(Pfn(block(1)), 9).expect("a block in use");
    m.drain_all();
    m.check();
    m
}

/// `spec: 1.2`
#[test]
fn pageblocks_merge_if_ordinary_or_of_equal_type() {
    for era in ["6.1", "6.18"] {
        let m = merge_at_9(era, Movable, Unmovable);
        assert_eq!(m.list(10, Movable), [block(0)], "{era}");
        let kept = if era == "6.1" { Unmovable } else { Movable };
        assert_eq!(
            m.type_of(block(0)),
            kept,
            "{era}: 6.18 rewrites the buddy's type"
        );
        assert_eq!(m.type_of(block(1)), Movable);
        for (freed, buddy) in [(Movable, HighAtomic), (HighAtomic, Movable)] {
            let m = merge_at_9(era, freed, buddy);
            assert_eq!(m.list(9, freed), [block(1)], "{era}");
            assert_eq!(m.list(9, buddy), [block(0)], "{era}");
        }
        let m = merge_at_9(era, HighAtomic, HighAtomic);
        assert_eq!(m.list(10, HighAtomic), [block(0)], "{era}");
    }
    let m = merge_at_9("2.6.32", Movable, Reserve);
    assert_eq!(m.list(10, Movable), [block(0)], "2.6.32 merges all");
    assert_eq!(m.type_of(block(0)), Reserve);
}

/// `spec: 1.2`
#[test]
fn only_6_18_cuts_a_freed_order_10_block_by_pageblock() {
    for era in ["6.1", "6.18"] {
        let mut m = scene(era);
        m.block_is(0, Movable).block_is(1, HighAtomic);
        m.used_at(block(0), 10, MOV);
        m.free(Pfn(block(0)), 10).expect("a block in use");
        m.check();
        if era == "6.1" {
            assert_eq!(m.list(10, Movable), [block(0)], "list type ≠ block type");
        } else {
            assert_eq!(m.list(9, Movable), [block(0)]);
            assert_eq!(m.list(9, HighAtomic), [block(1)]);
        }
    }
}

/// `spec: 1.2`
#[test]
fn buddies_beyond_the_zone_are_none() {
    // Two zones whose border lies within a block of order 10, and within a pageblock.
    for era in ERAS {
        let zones = [
            zone(0, ZoneKind::Dma32, BASE, 3000),
            zone(0, ZoneKind::Normal, BASE + 3000, 3000),
        ];
        let mut m = booted(&zones, 1, rules(era), quiet());
        m.check();
        let all: Vec<_> = std::iter::from_fn(|| m.alloc(0, UNM).ok()).collect();
        assert!(all.len() > 5900, "{era}: {}", all.len());
        for p in all {
            m.free(p, 0).expect("a page in use");
        }
        m.drain_all();
        m.check();
        for z in 0..2 {
            assert_eq!(m.zone_view(z).free_pages, 3000, "{era}");
        }
        // 3000 = 2 × 1024 + 512 + 256 + 128 + 32 + 16 + 8.
        let n = &m.zone_view(0).nr_free[..11];
        assert_eq!(n, [0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 2], "{era}: all merged");
    }
}

/// `spec: 9`
#[test]
fn boot_leaves_every_list_ascending() {
    for era in ["2.6.32", "6.1", "6.18"] {
        let zones = [zone(0, ZoneKind::Normal, BASE + 7, 8000)];
        let m = booted(&zones, 1, rules(era), quiet());
        let top = m.list(10, Movable);
        assert_eq!(top.len(), 6, "{era}");
        assert!(top.is_sorted(), "{era}: {top:?}");
    }
}

#[test]
fn a_second_free_is_refused_and_changes_nothing() {
    for era in ERAS {
        let mut m = scene(era);
        m.free_at(block(0), 10, Movable);
        let got = m.take(4, MOV);
        let wrong = m.free(Pfn(got), 5);
        assert!(matches!(
            wrong,
            Err(FreeError::WrongOrder {
                actual: Order(4),
                ..
            })
        ));
        assert!(m.free(Pfn(got + 1), 0).is_err());
        m.free(Pfn(got), 4).expect("a block in use");
        assert!(matches!(
            m.free(Pfn(got), 4),
            Err(FreeError::NotAllocated(..))
        ));
        assert!(matches!(m.free(Pfn(1), 0), Err(FreeError::NoSuchFrame(_))));
        m.check();
    }
}

/// `spec: 7.6`
#[test]
fn a_split_allocation_is_freed_in_parts() {
    for era in ERAS {
        let mut m = scene(era);
        m.free_at(block(0), 10, Movable);
        let got = m.take(9, MOV);
        m.split(Pfn(got), 9, 0).expect("a block in use");
        for i in 0..512 {
            m.free(Pfn(got + i), 0).expect("a page in use");
        }
        m.drain_all();
        m.check();
        assert_eq!(m.list(10, Movable), [block(0)], "{era}");
    }
}
