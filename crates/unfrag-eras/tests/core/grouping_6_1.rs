//! Fallback and high-atomic blocks of 6.1. `spec: 1.3, 2.6, 4`

use super::support::*;
use unfrag_eras::MigrateType::{self, HighAtomic, Movable, Reclaimable, Unmovable};
use unfrag_eras::{Gfp, Order, ZoneKind};

/// `spec: 2.6`
#[test]
fn fallback_rows() {
    let rows: [(Gfp, [MigrateType; 2]); 3] = [
        (UNM, [Reclaimable, Movable]),
        (REC, [Unmovable, Movable]),
        (MOV, [Reclaimable, Unmovable]),
    ];
    for era in ["5.6", "6.1", "6.18"] {
        for (gfp, [first, second]) in rows {
            let mut m = scene(era);
            half(&mut m, 0, 5, second);
            half(&mut m, 1, 5, first);
            m.free_at(block(7), 0, Movable);
            assert_eq!(m.take(5, gfp), block(1), "{era} {gfp:?}");
        }
    }
}

/// `spec: 2.6`
#[test]
fn rule_1_a_high_atomic_block_gives_one_buddy() {
    // Its pages lie on an ordinary list, as after a free that was cached before the block changed.
    for order in [4, 9] {
        let mut m = scene("6.1");
        m.block_is(0, HighAtomic).free_at(block(0), order, Movable);
        if order == 4 {
            m.used_at(block(0) + 16, 4, UNM)
                .free_at(block(0) + 32, 2, Movable);
        }
        assert_eq!(m.take(4, UNM), block(0));
        assert_eq!(m.type_of(block(0)), HighAtomic);
        if order == 4 {
            assert_eq!(m.list(2, Movable), [block(0) + 32], "not moved");
        } else {
            assert_eq!(m.list(8, Unmovable), [block(0) + 256], "remainder stays");
        }
    }
}

/// `spec: 2.6`
#[test]
fn rule_2_whole_blocks_are_re_typed_without_a_boost() {
    let mut m = scene_with_boost();
    m.free_at(block(0), 10, Movable);
    assert_eq!(m.take(4, UNM), block(0));
    assert_eq!(m.type_of(block(0)), Unmovable);
    assert_eq!(m.type_of(block(1)), Unmovable);
    assert_eq!(m.list(9, Unmovable), [block(1)]);
    assert_eq!(m.zone_view(0).marks.boost, 0);
    let f = m.host().fallbacks()[0];
    assert_eq!(
        (f.pfn.0, f.alloc_order, f.fallback_order),
        (block(0), Order(4), Order(10))
    );
    assert!(f.change_ownership);
}

/// `spec: 2.6`
#[test]
fn rule_3_a_block_too_small_to_steal_moves_alone() {
    let mut m = scene_with_boost();
    m.block_is(0, Unmovable).free_at(block(0), 3, Unmovable);
    m.used_at(block(0) + 8, 3, UNM)
        .free_at(block(0) + 64, 1, Unmovable);
    m.free_at(block(1), 0, Unmovable)
        .used_at(block(1) + 1, 0, UNM);
    assert_eq!(m.take(2, MOV), block(0));
    assert_eq!(m.type_of(block(0)), Unmovable);
    assert_eq!(m.list(1, Unmovable), [block(0) + 64], "left alone");
    assert_eq!(
        m.list(2, Movable),
        [block(0) + 4],
        "the remainder stays with the request"
    );
    assert_eq!(
        m.zone_view(0).marks.boost,
        512,
        "boosted though nothing was claimed"
    );
    assert!(!m.host().fallbacks()[0].change_ownership);
}

/// `spec: 2.6`
#[test]
fn small_movable_requests_take_the_smallest_block() {
    for era in ["5.6", "6.1"] {
        let mut m = scene(era);
        half(&mut m, 0, 3, Unmovable);
        half(&mut m, 1, 1, Unmovable);
        half(&mut m, 2, 2, Reclaimable);
        assert_eq!(
            m.take(0, MOV),
            block(1),
            "{era}: ascending from the request"
        );
    }
    // From order 4 on the largest is found first and may be stolen.
    let mut m = scene("6.1");
    half(&mut m, 0, 4, Unmovable);
    half(&mut m, 1, 1, Unmovable);
    assert_eq!(m.take(0, MOV), block(0));
}

/// `spec: 2.6`
#[test]
fn rule_4_all_free_pages_of_the_block_move_first() {
    let mut m = scene("6.1");
    // Found: order 4. The block holds a smaller free block too, and few free pages in all.
    m.block_is(0, Unmovable).free_at(block(0), 4, Unmovable);
    m.used_at(block(0) + 16, 4, UNM)
        .used_at(block(0) + 32, 5, UNM);
    m.free_at(block(0) + 64, 1, Unmovable)
        .used_at(block(0) + 66, 1, UNM);
    assert_eq!(
        m.take(1, MOV),
        block(0) + 64,
        "smallest fit takes a smaller moved piece"
    );
    let f = m.host().fallbacks()[0];
    assert_eq!(
        (f.pfn.0, f.fallback_order),
        (block(0), Order(4)),
        "than the event names"
    );
    assert_eq!(
        m.type_of(block(0)),
        Unmovable,
        "too few pages: the type stays"
    );
    assert_eq!(m.list(4, Movable), [block(0)], "but the pages stay moved");
}

/// Found: 16 free pages in a block of `victim` with `movable` movable frames in use; the rest is in
/// use by the kernel.
fn claim(era: &str, gfp: Gfp, victim: MigrateType, movable: u64) -> M {
    let mut m = scene(era);
    m.block_is(0, victim).free_at(block(0), 4, victim);
    for i in 16..512 {
        let user = if i < 16 + movable { MOV } else { UNM };
        m.used_at(block(0) + i, 0, user);
    }
    m.take(1, gfp);
    m
}

/// `spec: 2.6`
#[test]
fn rule_4_claims_at_half_free_or_alike() {
    for era in ["5.6", "6.1", "6.18"] {
        let retyped = |gfp, victim, movable| {
            let m = claim(era, gfp, victim, movable);
            m.type_of(block(0)) != victim
        };
        // A = movable frames for a movable request.
        assert!(retyped(MOV, Unmovable, 240), "{era}: 16 + 240 = 256");
        assert!(!retyped(MOV, Unmovable, 239), "{era}");
        // A = the others for a kernel request in a movable block: 512 - 16 - V.
        assert!(retyped(UNM, Movable, 256), "{era}: 16 + 240 = 256");
        assert!(!retyped(UNM, Movable, 257), "{era}");
        // A = 0 for a kernel request in another kernel type's block.
        assert!(!retyped(UNM, Reclaimable, 0), "{era}");
    }
}

/// `spec: 2.6`
#[test]
fn movable_frames_count_by_frame_not_by_block() {
    for era in ["6.1", "6.18"] {
        let mut m = scene(era);
        m.block_is(0, Unmovable).free_at(block(0), 4, Unmovable);
        m.used_at(block(0) + 16, 4, UNM)
            .used_at(block(0) + 32, 5, UNM);
        m.used_at(block(0) + 64, 6, UNM)
            .used_at(block(0) + 128, 7, UNM);
        m.used_at(block(0) + 256, 8, MOV);
        m.take(1, MOV);
        assert_eq!(m.type_of(block(0)), Movable, "{era}: 16 + 256");
    }
}

/// `spec: 2.6`
#[test]
fn a_failed_claim_moves_pages_in_6_1_only() {
    let m = claim("6.1", UNM, Reclaimable, 0);
    assert_eq!(
        m.list(3, Unmovable),
        [block(0) + 8],
        "all on the list of the request"
    );
    let m = claim("6.18", UNM, Reclaimable, 0);
    assert_eq!(
        m.list(3, Reclaimable),
        [block(0) + 8],
        "remainder stays with the victim"
    );
    assert!(m.list(1, Unmovable).is_empty());
}

/// `spec: 1.2`
#[test]
fn moved_blocks_go_to_the_tail() {
    let mut m = scene("6.1");
    m.block_is(0, Movable)
        .free_at(block(0), 5, Movable)
        .used_at(block(0) + 32, 5, MOV);
    m.free_at(block(0) + 64, 2, Movable)
        .free_at(block(0) + 128, 2, Movable);
    // The request's own list of order 2 is not empty, but too small for it.
    m.block_is(1, Unmovable).free_at(block(1), 2, Unmovable);
    assert_eq!(m.take(3, UNM), block(0));
    assert_eq!(
        m.list(2, Unmovable),
        [block(1), block(0) + 64, block(0) + 128],
        "behind what was there"
    );
}

/// `spec: 2.6`
#[test]
fn a_block_beyond_the_zones_end_gives_the_buddy_alone() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096 - 256)];
    let mut m = fresh(&zones, 1, rules("6.1"), quiet());
    m.block_is(7, Unmovable).free_at(block(7), 5, Unmovable);
    m.used_at(block(7) + 32, 5, MOV)
        .free_at(block(7) + 64, 3, Unmovable);
    m.used_at(block(7) + 128, 7, MOV);
    m.take(4, MOV);
    assert_eq!(m.type_of(block(7)), Unmovable);
    assert_eq!(m.list(3, Unmovable), [block(7) + 64]);
    assert_eq!(m.list(4, Movable), [block(7) + 16]);
}

/// `spec: 2.6`
#[test]
fn a_block_before_the_zone_moves_from_the_found_page() {
    let zones = [zone(0, ZoneKind::Normal, BASE + 64, 4096 - 64)];
    let mut m = fresh(&zones, 1, rules("6.1"), quiet());
    m.block_is(0, Unmovable);
    m.free_at(BASE + 64, 3, Unmovable)
        .used_at(BASE + 72, 3, UNM);
    m.free_at(BASE + 128, 5, Unmovable)
        .used_at(BASE + 160, 5, UNM);
    m.free_at(BASE + 256, 3, Unmovable)
        .used_at(BASE + 264, 3, UNM);
    m.take(4, MOV);
    assert_eq!(m.list(3, Unmovable), [BASE + 64]);
    assert_eq!(m.list(3, Movable), [BASE + 256]);
}

/// The scene of 6.1 with the usual boost; the marks stay out of the way.
fn scene_with_boost() -> M {
    let sysctl = quiet().with(|s| {
        s.watermark_boost_factor = 15000;
    });
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    fresh(&zones, 1, rules("6.1"), sysctl)
}

/// `spec: 1.3`
#[test]
fn each_fallback_below_pageblock_order_boosts() {
    let mut m = scene_with_boost();
    m.block_is(0, HighAtomic)
        .free_at(block(0), 5, Movable)
        .used_at(block(0) + 32, 5, UNM);
    m.free_at(block(1), 0, Movable)
        .used_at(block(1) + 1, 0, MOV);
    m.take(5, UNM);
    assert_eq!(m.zone_view(0).marks.boost, 0);
    let mut m = scene_with_boost();
    half(&mut m, 0, 5, Movable);
    m.free_at(block(7), 0, Movable);
    m.take(5, UNM);
    assert_eq!(m.zone_view(0).marks.boost, 512);
}
