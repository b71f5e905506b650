//! Boosts and their wake-ups, high-atomic blocks, and what the slow path gives up.
//! `spec: 1.3, 2.6, 4, 4.7, 4.8`

use super::support::*;
use unfrag_eras::MigrateType::{HighAtomic, Movable, Unmovable};
use unfrag_eras::{AllocError, Gfp, Order, Pfn, ZoneKind};

const MODERN: [&str; 2] = ["6.1", "6.18"];
const FAR: u64 = 1 << 40;

fn with_boost(era: &str) -> M {
    let sysctl = quiet().with(|s| {
        s.watermark_boost_factor = 15000;
    });
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = fresh(&zones, 1, rules(era), sysctl);
    // A fallback that boosts: less than a pageblock, of another type.
    m.block_is(0, Movable)
        .free_at(block(0), 8, Movable)
        .used_at(block(0) + 256, 8, MOV);
    m.free_at(block(2), 10, Movable);
    m
}

/// As [`with_boost`], without the whole blocks that a request would claim first.
fn boosting(era: &str) -> M {
    let sysctl = quiet().with(|s| {
        s.watermark_boost_factor = 15000;
    });
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = fresh(&zones, 1, rules(era), sysctl);
    for i in 0..8 {
        m.free_at(block(i), 8, Movable)
            .used_at(block(i) + 256, 8, MOV);
    }
    m
}

/// `spec: 1.3`
#[test]
fn a_boost_raises_every_mark_and_kswapd_lowers_it() {
    for era in MODERN {
        let mut m = boosting(era);
        m.take(4, UNM);
        assert_eq!(m.zone_view(0).marks.boost, 512, "{era}");
        // 2048 - 16 pages are free; min is 1 and the boost 512.
        let mut held = 0;
        while m.alloc(4, Gfp::KSWAPD_RECLAIM | Gfp::MOVABLE).is_ok() {
            held += 16;
        }
        let free = m.zone_view(0).free_pages;
        assert!(
            (512..=512 + 17).contains(&free),
            "{era}: {free} after {held}"
        );
        m.lower_boost(0, ZoneKind::Normal, 512);
        assert_eq!(m.zone_view(0).marks.boost, 0);
        assert!(
            m.alloc(4, Gfp::KSWAPD_RECLAIM | Gfp::MOVABLE).is_ok(),
            "{era}"
        );
    }
}

/// `spec: 1.3`
#[test]
fn a_boosting_request_wakes_kswapd_for_order_0() {
    for era in MODERN {
        let mut m = boosting(era);
        m.take(4, UNM);
        assert_eq!(m.host().wakes, [(0, 0)], "{era}");
        let mut m = boosting(era);
        m.take(4, Gfp::DIRECT_RECLAIM);
        assert_eq!(m.zone_view(0).marks.boost, 512, "{era}");
        assert!(m.host().wakes.is_empty(), "{era}: not without the flag");
    }
}

/// `spec: 1.3`
#[test]
fn the_next_request_consumes_the_wake_flag() {
    for (era, silent_wakes) in [("6.1", true), ("6.18", false)] {
        let mut m = boosting(era);
        // A bulk allocation boosts but does not look at the flag.
        let mut pages = [Pfn(0); 2];
        m.alloc_bulk(UNM, &mut pages).expect("pages");
        assert_eq!(m.zone_view(0).marks.boost, 512, "{era}");
        assert!(m.host().wakes.is_empty(), "{era}");
        m.take(4, Gfp::MOVABLE);
        assert_eq!(!m.host().wakes.is_empty(), silent_wakes, "{era}");
        m.take(4, MOV);
        assert_eq!(m.host().wakes, [(0, 0)], "{era}: once");
        m.take(4, MOV);
        assert_eq!(m.host().wakes.len(), 1, "{era}");
    }
}

/// `spec: 2.6`
#[test]
fn whole_blocks_do_not_boost() {
    for era in MODERN {
        let mut m = with_boost(era);
        m.take(4, UNM);
        assert_eq!(m.zone_view(0).marks.boost, 0, "{era}");
        assert_eq!(m.host().fallbacks()[0].fallback_order, Order(10));
    }
}

/// `spec: 1.3, 1.4`
#[test]
fn order_0_requests_with_the_right_ignore_the_boost() {
    // In 6.1 GFP_ATOMIC's own bit, in 6.18 HIGH.
    let high = Gfp::HIGH | Gfp::MOVABLE;
    for (era, gfp, passes) in [
        ("6.1", high, false),
        ("6.1", high | Gfp::ATOMIC, true),
        ("6.18", high, true),
    ] {
        let mut m = scene(era);
        for i in 0..64 {
            m.free_at(BASE + 2 * i, 0, Movable)
                .used_at(BASE + 2 * i + 1, 0, MOV);
        }
        let marks = unfrag_eras::zone::Marks {
            min: 40,
            low: 50,
            high: 60,
            promo: 70,
            boost: 512,
        };
        m.set_marks(0, marks, [0; 5]);
        assert_eq!(m.alloc(0, gfp).is_ok(), passes, "{era} {gfp:?}");
        assert!(
            m.alloc(0, Gfp::MOVABLE).is_err(),
            "{era}: others see the boost"
        );
    }
}

/// `spec: 4, 4.7`
#[test]
fn high_atomic_reserves_up_to_the_limit() {
    // 65,536 managed pages: 655 + 512 → 3 blocks; 1024 → 2 blocks.
    for (era, most) in [("6.1", 3), ("6.18", 2)] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 65536)];
        let mut m = booted(&zones, 1, rules(era), quiet());
        m.take(5, Gfp::ATOMIC_MASK);
        assert_eq!(
            m.zone_view(0).highatomic,
            0,
            "{era}: not in the first attempt"
        );
        m.marks(0, 4, FAR, FAR);
        let first = m.take(5, Gfp::ATOMIC_MASK);
        assert_eq!(m.zone_view(0).highatomic, 512, "{era}");
        assert_eq!(m.type_of(first), HighAtomic, "{era}");
        let moved: u64 = (0..=10)
            .map(|o| m.free_list_len(0, o, HighAtomic) << o)
            .sum();
        assert_eq!(moved, 512 - 64, "{era}: its free pages follow");
        for _ in 0..200 {
            m.alloc(5, Gfp::ATOMIC_MASK).expect("memory");
        }
        m.check();
        assert_eq!(m.zone_view(0).highatomic, most * 512, "{era}");
        assert_eq!(m.blocks_by_type(0)[HighAtomic as usize], most, "{era}");
        // Order 0 has no such right.
        let mut m = booted(&zones, 1, rules(era), quiet());
        m.marks(0, 4, FAR, FAR);
        m.take(0, Gfp::ATOMIC_MASK);
        m.take(1, Gfp::HIGH | Gfp::DIRECT_RECLAIM);
        assert_eq!(m.zone_view(0).highatomic, 0, "{era}");
    }
}

/// One free high-atomic block, and `singles` free single pages of the movable type.
fn reserved(era: &str, order: u8, singles: u64) -> M {
    let mut m = scene(era);
    for i in 0..1 << (order - 9) {
        m.block_is(i, HighAtomic);
    }
    m.free_at(block(0), order, HighAtomic);
    for i in 0..singles {
        m.free_at(block(4) + 2 * i, 0, Movable)
            .used_at(block(4) + 2 * i + 1, 0, MOV);
    }
    let free = (1 << order) + singles as i64;
    m.counters(0, 1 << order, free);
    m
}

/// `spec: 4.7`
#[test]
fn the_reserve_serves_high_atomic_requests_first() {
    for era in MODERN {
        let mut m = reserved(era, 9, 0);
        m.free_at(block(2), 9, Unmovable).block_is(2, Unmovable);
        m.marks(0, 4, FAR, FAR);
        assert_eq!(m.take(5, Gfp::ATOMIC_MASK), block(0), "{era}");
        let mut m = reserved(era, 9, 0);
        m.free_at(block(2), 9, Unmovable).block_is(2, Unmovable);
        m.marks(0, 4, FAR, FAR);
        assert_eq!(
            m.take(5, Gfp::KSWAPD_RECLAIM | Gfp::HIGH | Gfp::DIRECT_RECLAIM),
            block(2)
        );
    }
}

/// `spec: 4.7`
#[test]
fn non_blocking_requests_take_from_the_reserve_last() {
    for era in MODERN {
        let mut m = reserved(era, 9, 2);
        let nowait = Gfp::KSWAPD_RECLAIM | Gfp::MOVABLE;
        m.marks(0, 4, FAR, FAR);
        assert_eq!(m.take(0, nowait), block(4), "{era}: ordinary pages first");
        m.take(0, nowait);
        assert_eq!(m.take(0, nowait), block(0), "{era}");
        assert_eq!(m.zone_view(0).highatomic, 512, "{era}: the reserve remains");
        assert_eq!(m.type_of(block(0)), HighAtomic, "{era}");
    }
}

/// `spec: 4.7, 4.8`
#[test]
fn others_get_the_reserve_when_it_is_given_up() {
    for era in MODERN {
        for (gfp, order, gets) in [
            (UNM, 2, true),
            (UNM | Gfp::NORETRY, 2, false),
            (UNM, 4, false),
            (UNM | Gfp::RETRY_MAYFAIL, 4, true),
            (MOV, 0, true),
        ] {
            let mut m = reserved(era, 9, 0);
            let got = m.alloc(order, gfp);
            assert_eq!(got.is_ok(), gets, "{era} {gfp:?} order {order}");
            m.check();
            let left = if gets { 0 } else { 512 };
            assert_eq!(m.zone_view(0).highatomic, left, "{era}");
            if gets {
                let mt = gfp.mobility().expect("a type");
                assert_eq!(m.type_of(block(0)), mt, "{era}: the type of the requester");
            }
        }
    }
}

/// `spec: 4.7`
#[test]
fn one_block_is_given_up_at_a_time() {
    for era in MODERN {
        let mut m = scene(era);
        for i in [0, 2, 4] {
            m.block_is(i, HighAtomic).free_at(block(i), 9, HighAtomic);
        }
        m.counters(0, 3 * 512, 3 * 512);
        m.take(2, UNM);
        assert_eq!(m.zone_view(0).highatomic, 2 * 512, "{era}");
    }
}

/// `spec: 4.8`
#[test]
fn another_block_is_given_up_if_the_first_was_not_enough() {
    for era in MODERN {
        let mut m = scene(era);
        m.block_is(0, HighAtomic).free_at(block(0), 0, HighAtomic);
        m.block_is(2, HighAtomic).free_at(block(2), 9, HighAtomic);
        m.counters(0, 2 * 512, 513);
        assert_eq!(m.take(2, UNM), block(2), "{era}");
        assert_eq!(m.type_of(block(0)), Unmovable, "{era}");
        assert_eq!(m.zone_view(0).highatomic, 0, "{era}");
    }
}

/// `spec: 2.6`
#[test]
fn unreserving_two_pageblocks_returns_both() {
    for (era, left) in [("6.1", 512), ("6.18", 0)] {
        let mut m = reserved(era, 10, 0);
        m.take(2, UNM);
        assert_eq!(m.zone_view(0).highatomic, left, "{era}");
        assert_eq!(m.type_of(block(0)), Unmovable);
        let second = if era == "6.1" { HighAtomic } else { Unmovable };
        assert_eq!(m.type_of(block(1)), second, "{era}");
    }
}

/// `spec: 2.6`
#[test]
fn a_pageblock_of_two_zones_is_not_reserved() {
    let zones = [
        zone(0, ZoneKind::Dma32, BASE, 4096 + 256),
        zone(0, ZoneKind::Normal, BASE + 4096 + 256, 65536),
    ];
    let mut m = fresh(&zones, 1, rules("6.18"), quiet());
    m.marks(0, 0, FAR, FAR).marks(1, 0, FAR, FAR);
    m.free_at(BASE + 4096 + 256, 8, Movable);
    m.take(4, Gfp::ATOMIC_MASK);
    assert_eq!(m.zone_view(1).highatomic, 0);
    assert_eq!(m.type_of(BASE + 4096), Movable);
}

/// `spec: 4.3, 4.8`
#[test]
fn the_slow_path_wakes_kswapd_at_the_order_of_the_request() {
    for era in ["2.6.32", "6.1", "6.18"] {
        let mut m = booted(
            &[zone(0, ZoneKind::Normal, BASE, 4096)],
            1,
            rules(era),
            quiet(),
        );
        m.marks(0, 4, FAR, FAR);
        m.take(3, UNM);
        assert_eq!(m.host().wakes, [(0, 3)], "{era}");
        assert_eq!(m.inspect().counters().slow_path, 1);
        m.take(3, Gfp::DIRECT_RECLAIM);
        assert_eq!(m.host().wakes.len(), 1, "{era}: not without the flag");
    }
}

/// `spec: 2.1`
#[test]
fn both_mobilities_and_too_large_orders_are_refused() {
    for p in unfrag_eras::kernel::PRESETS {
        let mut m = booted(
            &[zone(0, ZoneKind::Normal, BASE, 4096)],
            1,
            p.rules,
            quiet(),
        );
        let both = UNM | Gfp::MOVABLE | Gfp::RECLAIMABLE;
        assert_eq!(
            m.alloc(0, both),
            Err(AllocError::BothMobilities),
            "{}",
            p.name
        );
        assert_eq!(
            m.alloc_bulk(both, &mut [Pfn(0)]),
            Err(AllocError::BothMobilities)
        );
        assert_eq!(
            m.alloc(11, UNM),
            Err(AllocError::OrderTooLarge),
            "{}",
            p.name
        );
        assert_eq!(
            m.zone_view(0).free_pages,
            4096,
            "{}: nothing changed",
            p.name
        );
    }
}
