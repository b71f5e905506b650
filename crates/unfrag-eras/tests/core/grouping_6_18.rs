//! Claim, steal, NOFRAGMENT and defrag_mode. `spec: 1.2, 2.6`

use super::support::*;
use unfrag_eras::MigrateType::{Movable, Reclaimable, Unmovable};
use unfrag_eras::{Gfp, Order, Sysctl, ZoneKind};

/// `spec: 2.6`
#[test]
fn a_whole_block_is_claimed_from_the_largest_order_down() {
    let mut m = scene("6.18");
    half(&mut m, 0, 8, Movable);
    m.free_at(block(2), 9, Movable)
        .free_at(block(4), 10, Movable);
    assert_eq!(m.take(4, UNM), block(4));
    assert_eq!(m.type_of(block(4)), Unmovable);
    assert_eq!(m.type_of(block(5)), Unmovable, "all covered blocks");
    assert_eq!(m.list(9, Unmovable), [block(5)]);
    assert!(m.host().fallbacks()[0].change_ownership);
}

/// `spec: 2.6`
#[test]
fn a_claim_moves_free_pages_and_takes_the_smallest_fit() {
    let mut m = scene("6.18");
    half(&mut m, 0, 8, Movable);
    // 256 free in one buddy and 4 more: a small piece serves the request.
    let mut whole = scene("6.18");
    whole
        .free_at(block(0), 8, Movable)
        .used_at(block(0) + 256, 7, MOV);
    whole.free_at(block(0) + 384, 2, Movable);
    assert_eq!(whole.take(1, UNM), block(0) + 384);
    assert_eq!(whole.type_of(block(0)), Unmovable);
    assert_eq!(whole.list(8, Unmovable), [block(0)]);
    let f = whole.host().fallbacks()[0];
    assert_eq!((f.pfn.0, f.fallback_order), (block(0), Order(8)));
}

/// `spec: 2.6`
#[test]
fn a_failed_claim_goes_on_to_the_next_order() {
    let mut m = scene("6.18");
    // Block 0: order 7 free, the rest movable and in use: 128 + 0 < 256 for a kernel request.
    m.free_at(block(0), 7, Movable);
    for (at, order) in [(128, 7), (256, 8)] {
        m.used_at(block(0) + at, order, MOV);
    }
    // Block 1: order 6 free, the rest kernel memory: 64 + 448 ≥ 256.
    m.free_at(block(1), 6, Movable);
    for (at, order) in [(64, 6), (128, 7), (256, 8)] {
        m.used_at(block(1) + at, order, UNM);
    }
    assert_eq!(m.take(4, UNM), block(1));
    assert_eq!(m.type_of(block(0)), Movable);
    assert_eq!(m.type_of(block(1)), Unmovable);
}

/// `spec: 2.6`
#[test]
fn stealing_ascends_and_leaves_the_remainder_to_the_victim() {
    let mut m = scene("6.18");
    for (i, order) in [(0, 7), (1, 5)] {
        m.free_at(block(i), order, Movable)
            .used_at(block(i) + (1 << order), order, MOV);
        for o in order + 1..9 {
            m.used_at(block(i) + (1 << o), o, MOV);
        }
    }
    assert_eq!(m.take(4, UNM), block(1), "the smallest that fits");
    assert_eq!(m.list(4, Movable), [block(1) + 16]);
    assert_eq!(m.type_of(block(1)), Movable);
    assert!(!m.host().fallbacks()[0].change_ownership);
}

/// `spec: 2.6`
#[test]
fn small_blocks_are_not_claimed_for_movable_requests() {
    let mut m = scene("6.18");
    // Nearly all of the block is movable, but the free piece is below order 4.
    m.block_is(0, Unmovable)
        .free_at(block(0), 3, Unmovable)
        .used_at(block(0) + 8, 3, MOV);
    for o in 4..9 {
        m.used_at(block(0) + (1 << o), o, MOV);
    }
    assert_eq!(m.take(1, MOV), block(0));
    assert_eq!(m.type_of(block(0)), Unmovable);
    assert_eq!(m.list(2, Unmovable), [block(0) + 4], "stolen");
}

/// `spec: 2.6`
#[test]
fn a_block_across_a_zones_edge_is_not_claimed() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096 - 256)];
    let mut m = fresh(&zones, 1, rules("6.18"), quiet());
    m.free_at(block(7), 8, Movable);
    assert_eq!(m.take(4, UNM), block(7));
    assert_eq!(m.type_of(block(7)), Movable);
    assert_eq!(m.list(7, Movable), [block(7) + 128]);
}

fn with_boost() -> M {
    let sysctl = quiet().with(|s| {
        s.watermark_boost_factor = 15000;
    });
    fresh(
        &[zone(0, ZoneKind::Normal, BASE, 4096)],
        1,
        rules("6.18"),
        sysctl,
    )
}

/// `spec: 2.6`
#[test]
fn each_claim_try_boosts_and_stealing_alone_does_not() {
    let mut m = with_boost();
    m.marks(0, 1, 1, 4096);
    // Two orders are tried, both without success: 512 twice.
    for (i, order) in [(0, 7), (1, 5)] {
        m.free_at(block(i), order, Movable);
        for o in order..9 {
            m.used_at(block(i) + (1 << o), o, MOV);
        }
    }
    m.take(4, UNM);
    assert_eq!(m.zone_view(0).marks.boost, 1024);
    let mut m = with_boost();
    m.block_is(0, Unmovable)
        .free_at(block(0), 3, Unmovable)
        .used_at(block(0) + 8, 3, UNM);
    m.take(1, MOV);
    assert_eq!(
        m.zone_view(0).marks.boost,
        0,
        "below order 4 a movable request does not try"
    );
}

/// `spec: 2.6`
#[test]
fn a_refill_that_had_to_steal_does_not_try_to_claim_again() {
    let mut m = with_boost();
    m.marks(0, 1, 1, 1 << 20);
    m.sized(0, 0, 1000, 8);
    m.free_at(block(0), 5, Movable);
    for o in 5..9 {
        m.used_at(block(0) + (1 << o), o, MOV);
    }
    m.take(0, UNM);
    assert_eq!(m.host().fallbacks().len(), 8, "each page is a fallback");
    assert_eq!(
        m.zone_view(0).marks.boost,
        512,
        "but only the first tried to claim"
    );
    assert_eq!(m.pcp(0).len(), 7);
}

/// DMA32 below, Normal above, as on a real machine.
fn two_zones(era: &str, sysctl: Sysctl) -> M {
    let zones = [
        zone(0, ZoneKind::Dma32, BASE, 4096),
        zone(0, ZoneKind::Normal, BASE + 4096, 4096),
    ];
    fresh(&zones, 1, rules(era), sysctl)
}

/// `spec: 2.6`
#[test]
fn nofragment_prefers_a_lower_zone_to_mixing() {
    for (era, nofragment) in [
        ("2.6.32", false),
        ("5.6", true),
        ("6.1", true),
        ("6.18", true),
    ] {
        let mut m = two_zones(era, quiet());
        half(&mut m, 8, 8, Movable);
        half(&mut m, 0, 8, Unmovable);
        // What DMA32 keeps from requests for Normal.
        half(&mut m, 1, 8, Movable);
        m.free_at(block(9), 0, Movable);
        let want = if nofragment { block(0) } else { block(8) };
        assert_eq!(m.take(8, UNM), want, "{era}");
        // Types mix before the request fails.
        assert!(m.alloc(7, UNM).is_ok(), "{era}");
    }
}

/// `spec: 2.6`
#[test]
fn nofragment_allows_whole_blocks() {
    for era in ["6.1", "6.18"] {
        let mut m = two_zones(era, quiet());
        m.free_at(block(8), 9, Movable)
            .free_at(block(9), 0, Movable);
        half(&mut m, 0, 8, Unmovable);
        assert_eq!(m.take(8, UNM), block(8), "{era}");
        assert_eq!(m.type_of(block(8)), Unmovable, "{era}");
    }
}

/// `spec: 1.4, 2.6`
#[test]
fn nofragment_needs_normal_first_and_dma32() {
    for (era, kinds, flag) in [
        ("6.1", [ZoneKind::Dma, ZoneKind::Dma32], false),
        ("6.1", [ZoneKind::Dma, ZoneKind::Normal], false),
        ("6.18", [ZoneKind::Dma32, ZoneKind::Normal], true),
    ] {
        let zones = [
            zone(0, kinds[0], BASE, 4096),
            zone(0, kinds[1], BASE + 4096, 4096),
        ];
        let mut m = fresh(&zones, 1, rules(era), quiet());
        half(&mut m, 8, 8, Movable);
        half(&mut m, 0, 8, Unmovable);
        // What DMA32 keeps from requests for Normal.
        half(&mut m, 1, 8, Movable);
        m.free_at(block(9), 0, Movable);
        let want = if flag { block(0) } else { block(8) };
        assert_eq!(m.take(8, UNM), want, "{era} {kinds:?}");
    }
}

/// `spec: 2.6`
#[test]
fn with_one_node_it_is_enough_that_dma32_is_configured() {
    for (managed, node, flag) in [(4096, 0, true), (0, 0, true), (0, 1, false)] {
        let mut empty = zone(0, ZoneKind::Dma32, BASE + 4096, 4096);
        empty.managed = managed;
        let mut zones = vec![
            zone(0, ZoneKind::Dma, BASE, 4096),
            empty,
            zone(0, ZoneKind::Normal, BASE + 8192, 4096),
        ];
        if node == 1 {
            zones.push(zone(1, ZoneKind::Normal, BASE + 12288, 4096));
        }
        let mut m = fresh(&zones, 1, rules("6.18"), quiet());
        half(&mut m, 16, 8, Movable);
        half(&mut m, 0, 8, Unmovable);
        half(&mut m, 1, 8, Movable);
        m.free_at(block(17), 0, Movable);
        let want = if flag { block(0) } else { block(16) };
        assert_eq!(m.take(8, UNM), want, "{managed} pages, {} nodes", node + 1);
    }
}

/// `spec: 2.6`
#[test]
fn nofragment_ends_before_another_node_is_tried() {
    let zones = [
        zone(0, ZoneKind::Dma32, BASE, 4096),
        zone(0, ZoneKind::Normal, BASE + 4096, 4096),
        zone(1, ZoneKind::Normal, BASE + 8192, 4096),
    ];
    for era in ["6.1", "6.18"] {
        let mut m = fresh(&zones, 1, rules(era), quiet());
        half(&mut m, 8, 8, Movable);
        half(&mut m, 16, 8, Unmovable);
        m.free_at(block(9), 0, Movable)
            .free_at(block(17), 0, Movable);
        assert_eq!(m.take(8, UNM), block(8), "{era}: mixed, but near");
    }
}

fn defrag() -> Sysctl {
    quiet().with(|s| {
        s.defrag_mode = true;
    })
}

/// `spec: 2.6`
#[test]
fn defrag_mode_mixes_only_as_the_last_step_before_oom() {
    let mut m = fresh(
        &[zone(0, ZoneKind::Normal, BASE, 4096)],
        1,
        rules("6.18"),
        defrag(),
    );
    half(&mut m, 0, 8, Movable);
    m.free_at(block(1), 0, Movable);
    assert!(
        m.alloc(2, Gfp::ATOMIC_MASK).is_err(),
        "atomic requests cannot reach that step"
    );
    assert!(m.alloc(2, UNM | Gfp::NORETRY).is_err());
    assert!(m.alloc(4, UNM).is_err(), "nor costly ones");
    assert!(m.host().fallbacks().is_empty());
    assert!(m.alloc(2, UNM).is_ok());
}

/// `spec: 2.6`
#[test]
fn defrag_mode_stays_set_after_types_mixed() {
    let one = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = fresh(&one, 1, rules("6.18"), defrag());
    for i in 0..4 {
        half(&mut m, i, 8, Movable);
    }
    m.free_at(block(7), 0, Movable);
    for turn in 1..=3 {
        let before = m.host().fallbacks().len();
        assert!(m.inspect().sysctl().defrag_mode, "before turn {turn}");
        // The last step of a persistent request mixes; the setting is the same after it.
        m.take(8, UNM | Gfp::RETRY_MAYFAIL);
        let told = m.host().fallbacks().len();
        assert!(told > before, "turn {turn}: it mixed");
        assert!(m.inspect().sysctl().defrag_mode, "after turn {turn}");
        // Those that give up early keep to it.
        assert!(m.alloc(8, UNM | Gfp::NORETRY).is_err(), "turn {turn}");
        assert!(m.alloc(8, Gfp::ATOMIC_MASK).is_err(), "turn {turn}");
        assert_eq!(
            m.host().fallbacks().len(),
            told,
            "turn {turn}: no more mixing"
        );
    }
}

/// `spec: 2.6`
#[test]
fn defrag_mode_wakes_kswapd_for_a_pageblock_at_least() {
    let mut m = fresh(
        &[zone(0, ZoneKind::Normal, BASE, 4096)],
        1,
        rules("6.18"),
        defrag(),
    );
    assert!(m.alloc(2, UNM).is_err());
    assert!(m.alloc(10, UNM).is_err());
    assert_eq!(m.host().wakes, [(0, 9), (0, 10)]);
}

/// `spec: 1.4`
#[test]
fn defrag_mode_is_unknown_to_6_1() {
    let mut m = fresh(
        &[zone(0, ZoneKind::Normal, BASE, 4096)],
        1,
        rules("6.1"),
        defrag(),
    );
    half(&mut m, 0, 8, Movable);
    m.free_at(block(1), 0, Movable);
    assert!(m.alloc(2, Gfp::ATOMIC_MASK).is_ok());
    assert!(!m.inspect().sysctl().defrag_mode);
}

/// `spec: 2.6`
#[test]
fn lists_follow_blocks_through_random_claims() {
    let mut m = booted(
        &[zone(0, ZoneKind::Normal, BASE, 16384)],
        1,
        rules("6.18"),
        quiet(),
    );
    let (mut held, mut x) = (Vec::new(), 1u32);
    for _ in 0..3000 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let order = [0, 1, 2, 4, 6, 9, 10][(x >> 24) as usize % 7];
        let gfp = [UNM, MOV, REC, Gfp::ATOMIC_MASK][(x >> 16) as usize % 4];
        match m.alloc(order, gfp) {
            Ok(p) => held.push((p, order)),
            Err(_) => {
                for _ in 0..held.len() / 2 {
                    x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let (p, o) = held.swap_remove((x >> 8) as usize % held.len());
                    m.free(p, o).expect("a block in use");
                }
            }
        }
    }
    let sound = m.inspect().validate();
    sound.expect("every list's type is its blocks'");
    assert!(m.blocks_by_type(0)[Reclaimable as usize] > 0);
}
