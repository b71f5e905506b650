//! The V19 patches: fallback, reserve, statistics, and the regression list that their changelog
//! implies. `spec: 2.1-2.4`

use super::support::*;
use unfrag_eras::MigrateType::{self, Fallback as Spare, Movable, Reclaimable, Unmovable};
use unfrag_eras::{AllocError, Gfp, Pfn, V19_TYPES, ZoneKind, layout, v19_type_name};

const BLOCK: u64 = 1024;

/// One zone of 16 blocks of 1024 pages, all reserved; `reserve` says whether the fallback reserve
/// counts as met.
fn stage(met: bool) -> M {
    let mut z = zone(0, ZoneKind::Normal, BASE, 16 * BLOCK);
    if met {
        // The target is an eighth of present pages; with none present it is nought.
        z.managed = 0;
        z.present = 0;
    }
    fresh(&[z], 1, rules("v19"), quiet())
}

fn v19(m: &M) -> unfrag_eras::V19Stats {
    m.zone_view(0).v19
}

fn at(i: u64) -> u64 {
    BASE + i * BLOCK
}

/// A free block of order `o` of a type at block `i`, whose other half is in use.
fn half(m: &mut M, i: u64, order: u8, mt: MigrateType) {
    m.retype(at(i), mt);
    m.free_at(at(i), order, mt)
        .used_at(at(i) + (1 << order), order, UNM);
}

/// `spec: 2.1, 2.3`
#[test]
fn types_and_names() {
    assert_eq!(V19_TYPES, [Unmovable, Movable, Reclaimable, Spare]);
    let names = V19_TYPES.map(v19_type_name);
    assert_eq!(names, ["KernNoRclm", "EasyRclm", "KernRclm", "Fallback"]);
    let m = booted(
        &[zone(0, ZoneKind::Normal, BASE, 8192)],
        1,
        rules("v19"),
        quiet(),
    );
    assert_eq!(m.inspect().block_pages(), 1024);
    assert_eq!(
        m.blocks_by_type(0)[Unmovable as usize],
        8,
        "the map is zero at first"
    );
    assert_eq!(v19(&m).reserve, [8, 0, 0, 0]);
    assert_eq!(v19(&m).fallback_needed, 1024);
}

/// `spec: 2.1, 2.4`
#[test]
fn regression_both_flags_are_rejected() {
    let mut m = booted(
        &[zone(0, ZoneKind::Normal, BASE, 8192)],
        1,
        rules("v19"),
        quiet(),
    );
    for order in 0..=10 {
        let got = m.alloc(order, UNM | Gfp::MOVABLE | Gfp::RECLAIMABLE);
        assert_eq!(got, Err(AllocError::BothMobilities));
    }
    assert_eq!(v19(&m).allocs, [0; 4]);
    assert!(m.host().events.is_empty());
}

/// `spec: 2.2`
#[test]
fn a_whole_block_is_stolen_before_any_fallback() {
    let mut m = stage(false);
    half(&mut m, 0, 9, Spare);
    m.retype(at(2), Movable);
    m.free_at(at(2), 10, Movable);
    assert_eq!(m.take(0, REC), at(2));
    // The reserve is short, so the block is labelled as its own: the request uses it all the same.
    assert_eq!(m.type_of(at(2)), Spare);
    assert_eq!(v19(&m).fallback_reserve, 1024);
    assert_eq!(v19(&m).reserve[3], 1);
}

/// `spec: 2.2`
#[test]
fn a_stolen_block_is_relabelled_once_the_reserve_is_full() {
    for (gfp, mt) in [(MOV, Movable), (REC, Reclaimable), (UNM, Unmovable)] {
        let mut m = stage(true);
        let victim = if mt == Movable { Reclaimable } else { Movable };
        m.retype(at(2), victim);
        m.free_at(at(2), 10, victim);
        assert_eq!(take(&mut m, 4, gfp), at(2));
        assert_eq!(m.type_of(at(2)), mt, "{gfp:?}");
        assert_eq!(m.list(9, mt), [at(2) + 512], "{gfp:?}: remainder");
        assert_eq!(v19(&m).fallback_reserve, 0);
    }
}

/// Allocates from the only zone, which reports no managed page.
fn take(m: &mut M, order: u8, gfp: Gfp) -> u64 {
    m.alloc_in_zone(0, order, gfp).expect("a block").0
}

/// `spec: 2.2`
#[test]
fn whole_blocks_are_searched_in_the_order_of_the_types() {
    let mut m = stage(true);
    for (i, mt) in [(2, Spare), (3, Reclaimable), (4, Movable)] {
        m.retype(at(i), mt);
        m.free_at(at(i), 10, mt);
    }
    assert_eq!(take(&mut m, 4, UNM), at(4), "EASY is 1");
    assert_eq!(take(&mut m, 10, UNM), at(3), "KERN is 2");
    assert_eq!(take(&mut m, 10, UNM), at(2), "FALLBACK is 3");
}

/// `spec: 2.2`
#[test]
fn fallback_table() {
    for (gfp, row) in [
        (UNM, [Spare, Reclaimable, Movable]),
        (MOV, [Spare, Unmovable, Reclaimable]),
        (REC, [Spare, Unmovable, Movable]),
    ] {
        let mut m = stage(false);
        for (i, mt) in [(0, row[2]), (1, row[1]), (2, row[0])] {
            half(&mut m, i, 9, mt);
        }
        m.free_at(at(5), 3, Spare);
        for want in [2, 1, 0] {
            assert_eq!(m.take(8, gfp), at(want), "{gfp:?}");
            if gfp == UNM {
                assert_eq!(m.take(8, UNM), at(want) + 256, "the remainder is its own");
            }
        }
    }
}

/// `spec: 2.2`
#[test]
fn a_type_is_searched_from_the_largest_order_down() {
    let mut m = stage(false);
    half(&mut m, 0, 6, Spare);
    half(&mut m, 1, 8, Spare);
    half(&mut m, 2, 7, Spare);
    assert_eq!(m.take(4, MOV), at(1));
}

/// `spec: 2.2`
#[test]
fn v19_never_falls_back_to_a_block_of_the_same_order() {
    let mut m = stage(false);
    half(&mut m, 0, 4, Spare);
    half(&mut m, 1, 4, Reclaimable);
    half(&mut m, 2, 9, Unmovable);
    assert_eq!(m.take(4, MOV), at(2), "the larger one of a later type");
}

/// `spec: 2.2, 2.4`
#[test]
fn regression_remainder_placement_after_fallback() {
    // Kernel: the remainder is the kernel's own, not scattered (V14 to V16).
    let mut m = stage(false);
    half(&mut m, 0, 4, Movable);
    assert_eq!(m.take(2, UNM), at(0));
    assert_eq!(m.list(3, Unmovable), [at(0) + 8]);
    assert_eq!(m.list(2, Unmovable), [at(0) + 4]);
    assert_eq!(m.type_of(at(0)), Movable, "a partial steal");
    assert_eq!((v19(&m).partial_steal, v19(&m).full_steal), (1, 0));
    // Others: it goes back to the victim.
    for gfp in [MOV, REC] {
        let mut m = stage(false);
        half(&mut m, 0, 6, Unmovable);
        assert_eq!(m.take(2, gfp), at(0));
        for order in 2..6 {
            assert_eq!(m.list(order, Unmovable), [at(0) + (1 << order)], "{gfp:?}");
        }
        assert_eq!(m.type_of(at(0)), Unmovable);
        assert_eq!((v19(&m).partial_steal, v19(&m).full_steal), (0, 0));
    }
}

/// `spec: 2.2`
#[test]
fn a_kernel_fallback_from_order_5_on_takes_the_block_over() {
    for (order, full) in [(4, false), (5, true), (9, true)] {
        let mut m = stage(true);
        half(&mut m, 0, order, Movable);
        take(&mut m, 2, UNM);
        let want = if full { Unmovable } else { Movable };
        assert_eq!(m.type_of(at(0)), want, "order {order}");
        assert_eq!(v19(&m).full_steal, u64::from(full));
        // With the reserve unmet the label is FALLBACK.
        let mut m = stage(false);
        half(&mut m, 0, order, Movable);
        m.take(2, UNM);
        let want = if full { Spare } else { Movable };
        assert_eq!(m.type_of(at(0)), want, "order {order}");
        assert_eq!(
            m.list(3, Unmovable),
            [at(0) + 8],
            "the remainder is the kernel's all the same"
        );
    }
}

/// `spec: 2.3, 2.4`
#[test]
fn fallbacks_are_counted_by_start_type() {
    let mut m = stage(false);
    half(&mut m, 0, 6, Spare);
    half(&mut m, 1, 6, Reclaimable);
    m.take(4, MOV);
    assert_eq!(v19(&m).fallbacks, [0; 4], "the reserve served it");
    m.take(4, MOV);
    m.take(4, MOV);
    assert_eq!(v19(&m).fallbacks, [0, 1, 0, 0], "nothing larger was left");
    m.take(4, UNM);
    assert_eq!(v19(&m).fallbacks, [1, 1, 0, 0]);
}

/// `spec: 2.3`
#[test]
fn every_request_of_the_core_is_counted_by_type() {
    let mut m = booted(
        &[zone(0, ZoneKind::Normal, BASE, 8192)],
        1,
        rules("v19"),
        quiet(),
    );
    for (gfp, n) in [(UNM, 3), (MOV, 5), (REC, 2)] {
        for _ in 0..n {
            m.take(3, gfp);
        }
    }
    assert_eq!(v19(&m).allocs, [3, 5, 2, 0]);
}

/// `spec: 2.2, 2.4`
#[test]
fn regression_the_reserve_converges_to_an_eighth() {
    for blocks in [16, 64, 100] {
        let pages = blocks * BLOCK;
        let mut m = booted(
            &[zone(0, ZoneKind::Normal, BASE, pages)],
            1,
            rules("v19"),
            quiet(),
        );
        let needed = pages / 8;
        assert_eq!(v19(&m).fallback_needed, needed);
        let (mut held, mut x) = (Vec::new(), 7u32);
        for step in 0..40_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let gfp = [UNM, MOV, MOV, REC][(x >> 16) as usize % 4];
            let order = [0, 0, 0, 1, 3, 8][(x >> 24) as usize % 6];
            match m.alloc(order, gfp) {
                Ok(p) if step % 5 != 0 => held.push((p, order)),
                Ok(p) => m.free(p, order).expect("a block in use"),
                Err(_) => {
                    for _ in 0..held.len() / 3 {
                        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let (p, o) = held.swap_remove((x >> 8) as usize % held.len());
                        m.free(p, o).expect("a block in use");
                    }
                }
            }
            let s = v19(&m);
            assert_eq!(
                s.fallback_reserve,
                s.reserve[3] * BLOCK,
                "counted by blocks"
            );
            assert_eq!(s.reserve.iter().sum::<u64>(), blocks, "none lost");
        }
        let r = v19(&m).fallback_reserve;
        assert!(
            (needed.saturating_sub(BLOCK)..=needed + BLOCK).contains(&r),
            "{blocks} blocks: {r} pages in reserve, {needed} needed"
        );
        let by_type = m.blocks_by_type(0);
        assert_eq!(by_type[Spare as usize] * BLOCK, r, "the map agrees");
    }
}

/// `spec: 2.1, 2.4`
#[test]
fn regression_the_map_rounds_odd_zone_sizes_up() {
    // V11: an error in rounding lost the last block's entry. One page beyond a block is a block.
    for pages in [1023, 1024, 1025, 8191, 8193, 12_345] {
        let zones = [
            zone(0, ZoneKind::Dma, 0, pages),
            zone(0, ZoneKind::Normal, 1 << 20, 4096),
        ];
        let mut m = booted(&zones, 1, rules("v19"), quiet());
        let blocks = pages.div_ceil(1024);
        assert_eq!(
            m.blocks_by_type(0).iter().sum::<u64>(),
            blocks,
            "{pages} pages"
        );
        let last = pages - 1;
        m.retype(last, Spare);
        assert_eq!(m.type_of(last), Spare);
        assert_eq!(m.blocks_by_type(0)[Spare as usize], 1);
        assert_eq!(
            m.blocks_by_type(1)[Spare as usize],
            0,
            "the next zone's map is its own"
        );
        // V1 to V2: the map was too big; it is one word a block here.
        let config = config(&zones, 1, rules("v19"), quiet());
        let l = layout(&config).expect("a layout");
        assert_eq!(u64::from(l.frames), (blocks + 4) * 1024);
        let bytes = 4 * (blocks + 4);
        assert_eq!(l.pageblock_bytes as u64, bytes.next_multiple_of(64));
    }
}

/// `spec: 2.4`
#[test]
fn regression_no_buddy_bitmap_is_needed() {
    // Metadata is 16 bytes a frame, one word a block, the zone and the per-CPU lists.
    let zones = [zone(0, ZoneKind::Normal, 0, 1 << 20)];
    let config = config(&zones, 1, rules("v19"), quiet());
    let l = layout(&config).expect("a layout");
    assert_eq!((l.frame_bytes, l.pageblock_bytes), (16 << 20, 4 << 10));
    assert!(l.bytes() <= (16 << 20) + (4 << 10) + (8 << 10), "{l:?}");
}

/// `spec: 1.5, 2.4`
#[test]
fn min_halves_in_the_watermark_loop() {
    // V2 to V3 had dropped it: the mark halves with each order.
    for era in ["2.6.14", "v19"] {
        let sysctl = quiet().with(|s| {
            s.min_free_kbytes = 400;
        });
        let mut m = fresh(
            &[zone(0, ZoneKind::Normal, BASE, 4096)],
            1,
            rules(era),
            sysctl,
        );
        // 40 order-0, 20 order-1 and 15 order-3 blocks: the vector of 1.5 at order 3.
        for i in 0..40 {
            m.free_at(BASE + 2 * i, 0, Unmovable);
        }
        for i in 0..20 {
            m.free_at(BASE + 1024 + 4 * i, 1, Unmovable);
        }
        for i in 0..15 {
            m.free_at(BASE + 2048 + 16 * i, 3, Unmovable);
        }
        let marks = unfrag_eras::zone::Marks {
            min: 100,
            low: 100,
            high: 100,
            ..Default::default()
        };
        m.set_marks(0, marks, [0; 5]);
        assert!(m.alloc(3, Gfp::empty()).is_ok(), "{era}");
    }
}

/// `spec: 2.4`
#[test]
fn regression_taking_from_the_pool_scans_no_lower_orders() {
    // V3 to V4: a fallback never takes a block below the request.
    let mut m = stage(false);
    half(&mut m, 0, 3, Spare);
    half(&mut m, 1, 2, Reclaimable);
    assert!(m.alloc_in_zone(0, 3, MOV).is_err());
    assert!(m.alloc_in_zone(0, 5, MOV).is_err());
}

/// `spec: 2.4`
#[test]
fn regression_a_refill_splits_one_large_block() {
    // V8 to V9.
    let mut m = booted(
        &[zone(0, ZoneKind::Normal, BASE, 65536)],
        1,
        rules("v19"),
        quiet(),
    );
    m.take(0, UNM);
    let batch = m.set_view(0, 0).batch as u64;
    let mut pages = m.pcp(0);
    pages.push(BASE);
    pages.sort_unstable();
    assert_eq!(pages, (BASE..BASE + batch).collect::<Vec<_>>());
}

/// `spec: 2.4`
#[test]
fn regression_all_types_use_the_per_cpu_lists() {
    // V10 to V11, and V13 to V14: easy pages drain with the rest.
    let mut m = booted(
        &[zone(0, ZoneKind::Normal, BASE, 65536)],
        2,
        rules("v19"),
        quiet(),
    );
    for cpu in 0..2 {
        m.on(cpu);
        for gfp in [UNM, MOV, REC] {
            m.take(0, gfp);
        }
        assert!(!m.pcp(0).is_empty() && !m.pcp(1).is_empty(), "CPU {cpu}");
    }
    m.drain_all();
    assert_eq!(m.pcp_pages(0), 0);
    assert_eq!(m.zone_view(0).free_pages, 65536 - 6);
}

/// `spec: 2.4`
#[test]
fn regression_per_cpu_counts_stay_whole_across_nodes() {
    // V14 to V16: on NUMA a page freed by another node's CPU corrupted its list.
    let zones = [
        zone(0, ZoneKind::Normal, BASE, 16384),
        zone(1, ZoneKind::Normal, BASE + 16384, 16384),
    ];
    let mut m = booted(&zones, 4, rules("v19"), quiet());
    let (mut held, mut x) = (Vec::new(), 99u32);
    for _ in 0..20_000 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        m.on((x >> 28) as usize % 4);
        if x >> 20 & 3 == 0 && !held.is_empty() {
            let p = held.swap_remove((x >> 8) as usize % held.len());
            m.free(p, 0).expect("a page in use");
        } else if let Ok(p) = m.alloc_near(
            (x >> 27 & 1) as u8,
            0,
            [UNM, MOV, REC][(x >> 16) as usize % 3],
        ) {
            held.push(p);
        }
    }
    m.inspect().validate().expect("whole lists");
    let free: u64 = (0..2)
        .map(|z| m.zone_view(z).free_pages + m.pcp_pages(z))
        .sum();
    assert_eq!(free + held.len() as u64, 32768);
}

/// `spec: 2.1`
#[test]
fn a_freed_page_goes_to_its_blocks_list() {
    let mut m = stage(false);
    m.retype(at(0), Reclaimable);
    m.used_at(at(0), 4, MOV).used_at(at(0) + 16, 4, MOV);
    m.free(Pfn(at(0)), 4).expect("a block in use");
    assert_eq!(m.list(4, Reclaimable), [at(0)]);
}

/// `spec: 1.5, 2.1`
#[test]
fn watermarks_see_the_sum_over_all_types() {
    let mut m = stage(false);
    for (i, mt) in [(0, Unmovable), (1, Movable), (2, Reclaimable), (3, Spare)] {
        half(&mut m, i, 4, mt);
    }
    assert_eq!(m.zone_view(0).nr_free[4], 4);
    assert_eq!(m.zone_view(0).free_counter, 64);
}
