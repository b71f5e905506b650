//! Mobility grouping of 2.6.24 to 2.6.36, and its reserve. `spec: 2.5, 4.7`

use super::support::*;
use unfrag_eras::MigrateType::{self, Movable, Reclaimable, Reserve, Unmovable};
use unfrag_eras::{Gfp, Order, Pfn, ZoneKind};

const ERAS: [&str; 4] = ["2.6.24", "2.6.28", "2.6.32", "2.6.36"];

/// `spec: 2.5`
#[test]
fn fallback_rows() {
    let rows: [(Gfp, [MigrateType; 2]); 3] = [
        (UNM, [Reclaimable, Movable]),
        (REC, [Unmovable, Movable]),
        (MOV, [Reclaimable, Unmovable]),
    ];
    for era in ERAS {
        for (gfp, [first, second]) in rows {
            let mut m = scene(era);
            half(&mut m, 0, 5, second);
            half(&mut m, 1, 5, first);
            half(&mut m, 2, 5, Reserve);
            m.free_at(block(7), 0, Movable);
            assert_eq!(m.take(5, gfp), block(1), "{era} {gfp:?}: first of the row");
            assert_eq!(m.take(5, gfp), block(0), "{era} {gfp:?}: second of the row");
            assert_eq!(m.host().fallbacks().len(), 2);
            assert_eq!(m.take(5, gfp), block(2), "{era} {gfp:?}: the reserve last");
            assert_eq!(m.host().fallbacks().len(), 2, "no event for the reserve");
            assert_eq!(m.type_of(block(2)), Reserve);
        }
    }
}

/// `spec: 2.5`
#[test]
fn the_search_is_by_order_before_type() {
    for era in ERAS {
        let mut m = scene(era);
        half(&mut m, 0, 7, Movable);
        half(&mut m, 1, 6, Reclaimable);
        assert_eq!(
            m.take(4, UNM),
            block(0),
            "{era}: the larger block, second in the row"
        );
    }
}

/// `spec: 2.5`
#[test]
fn a_small_block_leaves_its_remainder_to_the_victim() {
    for era in ERAS {
        let mut m = scene(era);
        half(&mut m, 0, 3, Movable);
        assert_eq!(m.take(0, UNM), block(0), "{era}");
        for order in 0..3 {
            assert_eq!(m.list(order, Movable), [block(0) + (1 << order)], "{era}");
        }
        assert_eq!(m.type_of(block(0)), Movable, "{era}");
    }
}

/// `spec: 2.5`
#[test]
fn from_half_the_pageblock_order_on_the_free_pages_move() {
    for era in ERAS {
        // 16 + 32 free pages in the block: moved, but fewer than half, so its type stays.
        let mut m = scene(era);
        m.block_is(0, Movable).free_at(block(0), 4, Movable);
        m.used_at(block(0) + 16, 4, MOV)
            .free_at(block(0) + 64, 3, Movable);
        assert_eq!(m.take(2, UNM), block(0), "{era}");
        assert_eq!(
            m.list(3, Unmovable),
            [block(0) + 8, block(0) + 64],
            "{era}: head"
        );
        assert_eq!(m.list(2, Unmovable), [block(0) + 4], "{era}");
        assert_eq!(m.type_of(block(0)), Movable, "{era}");
        assert!(!m.host().fallbacks()[0].change_ownership);
    }
}

/// `spec: 2.5`
#[test]
fn reclaimable_requests_take_over_whatever_the_order() {
    for era in ERAS {
        for (gfp, moved) in [(REC, true), (UNM, false), (MOV, false)] {
            let mut m = scene(era);
            let victim = if gfp == UNM { Movable } else { Unmovable };
            m.block_is(0, victim).free_at(block(0), 3, victim);
            m.used_at(block(0) + 8, 3, UNM)
                .free_at(block(0) + 64, 1, victim);
            m.take(2, gfp);
            let left = if moved { Reclaimable } else { victim };
            assert_eq!(m.list(1, left), [block(0) + 64], "{era} {gfp:?}");
            assert_eq!(m.list(2, left), [block(0) + 4], "{era} {gfp:?}: remainder");
        }
    }
}

/// `spec: 2.5`
#[test]
fn half_a_block_changes_its_type() {
    for era in ERAS {
        for (pages, retyped) in [(256, true), (255, false)] {
            let mut m = scene(era);
            m.block_is(0, Movable).used_at(block(0) + 256, 8, MOV);
            m.free_at(block(0) + 128, 7, Movable);
            m.free_at(block(0) + 64, 6, Movable);
            m.free_at(block(0) + 32, 5, Movable);
            m.free_at(block(0) + 16, 4, Movable);
            m.free_at(block(0) + 8, 3, Movable);
            m.free_at(block(0) + 4, 2, Movable);
            m.free_at(block(0) + 2, 1, Movable);
            m.free_at(block(0) + 1, 0, Movable);
            if pages == 256 {
                // Merged, as the last one would be.
                let mut whole = scene(era);
                whole.block_is(0, Movable).used_at(block(0) + 256, 8, MOV);
                whole.free_at(block(0), 8, Movable);
                m = whole;
            }
            m.take(4, UNM);
            let want = if retyped { Unmovable } else { Movable };
            assert_eq!(m.type_of(block(0)), want, "{era}: {pages} pages");
        }
    }
}

/// `spec: 2.5`
#[test]
fn whole_blocks_change_their_type() {
    for era in ERAS {
        let mut m = scene(era);
        m.free_at(block(0), 10, Movable);
        assert_eq!(m.take(4, UNM), block(0), "{era}");
        assert_eq!(m.type_of(block(0)), Unmovable, "{era}");
        assert_eq!(m.type_of(block(1)), Unmovable, "{era}: both");
        assert_eq!(m.list(9, Unmovable), [block(1)], "{era}");
        let f = m.host().fallbacks()[0];
        assert_eq!(
            (f.alloc_order, f.fallback_order, f.change_ownership),
            (Order(4), Order(10), true)
        );
    }
}

/// `spec: 1.6, 2.5`
#[test]
fn grouping_off_takes_over_everything() {
    for era in ["2.6.32", "6.1"] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 5 * 512 - 1)];
        let m = booted(&zones, 1, rules(era), quiet());
        assert!(
            m.inspect().sysctl().group_by_mobility_disabled,
            "{era}: fewer blocks than types"
        );
        let zones = [zone(0, ZoneKind::Normal, BASE, 5 * 512)];
        let m = booted(&zones, 1, rules(era), quiet());
        assert!(!m.inspect().sysctl().group_by_mobility_disabled, "{era}");
    }
    let zones = [zone(0, ZoneKind::Normal, BASE, 2048)];
    let mut m = booted(&zones, 1, rules("2.6.32"), quiet());
    let a = m.take(4, MOV);
    let b = m.take(4, UNM);
    assert_eq!(b, a + 16, "all requests are of one type");
}

/// `spec: 4.7`
#[test]
fn reserve_blocks_follow_the_min_mark() {
    let blocks = |era, kbytes| {
        let sysctl = quiet().with(|s| {
            s.min_free_kbytes = kbytes;
        });
        let zones = [zone(0, ZoneKind::Normal, BASE, 16384)];
        let m = booted(&zones, 1, rules(era), sysctl);
        m.check();
        let n = m.blocks_by_type(0)[Reserve as usize];
        assert_eq!(m.zone_view(0).free_pages, 16384);
        let on_lists: u64 = (0..=10).map(|o| m.free_list_len(0, o, Reserve) << o).sum();
        let pairs = n.next_multiple_of(2);
        assert_eq!(
            on_lists,
            pairs * 512,
            "{era}: boot's blocks are of order 10"
        );
        n
    };
    assert_eq!(blocks("2.6.32", 4 * 512), 1);
    assert_eq!(blocks("2.6.32", 4 * 513), 2, "rounded up");
    assert_eq!(blocks("2.6.32", 4 * 2048), 2, "at most two");
    assert_eq!(blocks("2.6.28", 4 * 2048), 4, "not capped yet");
    assert_eq!(blocks("6.1", 4 * 2048), 0);
    assert_eq!(blocks("2.6.14", 4 * 2048), 0);
}

/// `spec: 2.5`
#[test]
fn a_refill_from_the_reserve_takes_one_batch() {
    for era in ["2.6.24", "2.6.28", "2.6.31"] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 65_536)];
        let mut m = fresh(&zones, 1, rules(era), quiet());
        let batch = m.set_view(0, 0).batch as u64;
        assert!(batch > 5, "{era}: {batch}");
        m.block_is(3, Reserve).free_at(block(3), 9, Reserve);
        for _ in 0..5 {
            m.take(0, MOV);
        }
        assert_eq!(m.pcp_pages(0), batch - 5, "{era}");
        m.drain_all();
        let back: u64 = (0..=10).map(|o| m.free_list_len(0, o, Reserve) << o).sum();
        assert_eq!(
            back, 507,
            "{era}: what is not used goes back to the reserve"
        );
    }
}

/// `spec: 4.7`
#[test]
fn reserve_blocks_are_the_first_without_a_reserved_page() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 8192)];
    let sysctl = quiet().with(|s| {
        s.min_free_kbytes = 4 * 512;
    });
    let mut boot = reserved_frames(&config(&zones, 1, rules("2.6.32"), sysctl));
    boot.free_range(Pfn(BASE + 1), 8191)
        .expect("reserved frames");
    let m = Scene::new(boot.boot_done());
    assert_eq!(m.type_of(block(0)), Movable);
    assert_eq!(m.type_of(block(1)), Reserve);
    assert_eq!(m.type_of(block(2)), Movable);
}

/// `spec: 1.5`
#[test]
fn old_marks_make_high_orders_fail_with_plenty_free() {
    // 4096 pages, min 100: order 3 fails although order-3 blocks exist.
    let sysctl = quiet().with(|s| {
        s.min_free_kbytes = 400;
    });
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    for (era, passes) in [("2.6.32", false), ("6.1", true)] {
        let mut m = fresh(&zones, 1, rules(era), sysctl);
        for i in 0..1000 {
            m.free_at(BASE + 2 * i, 0, Movable)
                .used_at(BASE + 2 * i + 1, 0, MOV);
        }
        m.free_at(block(4), 3, Movable);
        assert_eq!(
            m.alloc(3, Gfp::KSWAPD_RECLAIM | Gfp::MOVABLE).is_ok(),
            passes,
            "{era}"
        );
    }
}
