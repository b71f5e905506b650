//! Pages, blocks and pageblocks of other sizes than those of x86-64; zones that meet in a pageblock.

use super::support::*;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestRng, TestRunner};
use unfrag_eras::kernel::PRESETS;
use unfrag_eras::restore::{Restore, RestoreError};
use unfrag_eras::{
    AllocError, Builder, Config, ConfigError, Geometry, MigrateType, NullHost, Order, Pfn, Rules,
    Sysctl, ZoneConfig, ZoneId, ZoneKind, layout,
};

const fn sizes(page_shift: u8, max_order: u8, block_order: u8) -> Geometry {
    Geometry {
        page_shift,
        max_order: Order(max_order),
        block_order: Order(block_order),
        huge_order: Order(block_order),
    }
}

const ALL: [Geometry; 5] = [
    sizes(14, 11, 11),
    sizes(16, 13, 13),
    sizes(16, 13, 9),
    sizes(12, 10, 5),
    sizes(12, 10, 9),
];

/// Two zones that meet in the middle of a pageblock, and another node behind a hole, all of odd sizes.
fn machine(g: Geometry) -> [ZoneConfig; 3] {
    let block = 1u64 << g.max_order.0;
    [
        zone(0, ZoneKind::Dma32, 4 * block + 3, 2 * block + block / 3),
        zone(
            0,
            ZoneKind::Normal,
            6 * block + block / 3 + 3,
            3 * block + 77,
        ),
        zone(1, ZoneKind::Normal, 20 * block + 1, 2 * block + 5),
    ]
}

/// What a random run does at each step: some bits of it say whether, how much, of what type, where.
fn run(era: &str, rules: Rules, g: Geometry, ops: &[u64]) {
    let zones = machine(g);
    let mut m = booted_with(&zones, g, rules, quiet());
    let free = |m: &M, z: usize| m.zone_view(z as u32).nr_free;
    let at_boot = [0, 1, 2].map(|z| free(&m, z));
    let mut held: Vec<(Pfn, u8)> = Vec::new();
    for (step, op) in ops.iter().enumerate() {
        let pick = (op >> 32) as usize;
        if op % 5 < 3 {
            let order = ((op >> 8) as u8) % (g.max_order.0 + 1);
            let gfp = [UNM, MOV, MOV, REC][pick % 4];
            match m.alloc_near((op >> 16) as u8 % 2, order, gfp) {
                Ok(p) => held.push((p, order)),
                Err(e) => assert!(
                    matches!(
                        e,
                        AllocError::Short | AllocError::Fragmented | AllocError::Reserved
                    ),
                    "{era} {g:?}: {e}"
                ),
            }
        } else if !held.is_empty() {
            let (p, order) = held.swap_remove(pick % held.len());
            let to = (op >> 24) as u8 % (order + 1);
            // Some come back in pieces.
            if op >> 20 & 3 == 0 {
                m.split(p, order, to).expect("a block in use");
                for i in 0..1u64 << (order - to) {
                    m.free(Pfn(p.0 + (i << to)), to).expect("a piece in use");
                }
            } else {
                m.free(p, order).expect("a block in use");
            }
        }
        if step % 16 == 0 {
            m.check();
        }
    }
    for (p, order) in held {
        m.free(p, order).expect("a block in use");
    }
    m.drain_all();
    m.check();
    assert_eq!(
        [0, 1, 2].map(|z| free(&m, z)),
        at_boot,
        "{era} {g:?}: all merged"
    );
}

#[test]
fn all_merges_back_whatever_the_geometry() {
    for g in ALL {
        assert!(g.is_possible());
        for p in PRESETS {
            // V19's blocks are the largest there are.
            if p.name == "v19" && g.block_order != g.max_order {
                continue;
            }
            let config = Cases {
                cases: 4,
                failure_persistence: None,
                ..Cases::default()
            };
            let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
            let ops = vec(any::<u64>(), 300..700);
            let outcome = TestRunner::new_with_rng(config, rng).run(&ops, |ops| {
                run(p.name, p.rules, g, &ops);
                Ok(())
            });
            if let Err(e) = outcome {
                panic!("{} {g:?}: {e}", p.name);
            }
        }
    }
}

#[test]
fn the_largest_block_is_the_geometrys() {
    for g in ALL {
        for p in PRESETS {
            let mut m = booted_with(&machine(g), g, p.rules, quiet());
            let got = m.take(g.max_order.0, MOV);
            assert!(got.is_multiple_of(1 << g.max_order.0), "{} {g:?}", p.name);
            for more in [1, 2, 200] {
                let got = m.alloc(g.max_order.0 + more, MOV);
                assert_eq!(got, Err(AllocError::OrderTooLarge), "{} {g:?}", p.name);
            }
            assert_eq!(m.inspect().geometry(), g);
            assert_eq!(m.inspect().block_pages(), 1 << g.block_order.0);
        }
    }
}

#[test]
fn a_geometry_that_no_allocator_works_with_is_refused() {
    for g in [
        sizes(9, 10, 9),
        sizes(21, 10, 9),
        sizes(12, 14, 9),
        sizes(12, 10, 11),
        sizes(12, 10, 0),
        sizes(12, 255, 9),
    ] {
        let config = Builder::new().region(Pfn(0), 65536).geometry(g);
        assert_eq!(config.layout().err(), Some(ConfigError::Geometry(g)));
        let got = config.boot(NullHost, &mut []).map(|_| ()).err();
        assert_eq!(got, Some(ConfigError::Geometry(g)));
    }
}

/// `spec: 1.3, 3.2`
#[test]
fn marks_and_sets_are_those_of_the_bytes() {
    // 1 GiB: min_free_kbytes is √(2^20 × 16) = 4096 whatever a page has.
    let marks = |era, g: Geometry, thp| {
        let pages = (1u64 << 30) >> g.page_shift;
        let sysctl = Sysctl::default().with(|s| {
            s.transparent_hugepage = thp;
        });
        let m = booted_with(
            &[zone(0, ZoneKind::Normal, 0, pages)],
            g,
            rules(era),
            sysctl,
        );
        let v = m.zone_view(0).marks;
        ((v.min, v.low, v.high), m.set_view(0, 0).batch)
    };
    let (kib16, kib64) = (sizes(14, 11, 11), sizes(16, 13, 13));
    // In pages of 16 KiB: 256, and quarters of that; a thousandth of 65,536 pages is 65.
    assert_eq!(marks("2.6.32", kib16, false).0, (256, 320, 384));
    assert_eq!(marks("6.18", kib16, false), ((256, 321, 386), 15));
    // In pages of 64 KiB: 64, quarters, and a thousandth of 16,384.
    assert_eq!(marks("2.6.32", kib64, false).0, (64, 80, 96));
    assert_eq!(marks("6.18", kib64, false), ((64, 80, 96), 3));
    // khugepaged wants 22 blocks of 32 MiB and gets a twentieth of what is above the high mark:
    // (65,536 - 386) / 20 = 3257; quarters of that are 814.
    assert_eq!(
        marks("6.18", kib16, true).0,
        (3257, 3257 + 814, 3257 + 1628)
    );
    // With 4 KiB: 1024, quarters.
    let kib4 = Geometry::PAGES_4K;
    assert_eq!(marks("2.6.32", kib4, false), ((1024, 1280, 1536), 31));
}

/// `spec: 1.2`
#[test]
fn zones_that_meet_in_a_pageblock_keep_their_own_frames() {
    for era in ["2.6.14", "2.6.32", "5.9", "6.1", "6.18"] {
        // Three in one pageblock, and a fourth from the middle of another.
        let (a, b, c) = (BASE + 512 + 100, BASE + 512 + 228, BASE + 2048 + 300);
        let zones = [
            zone(0, ZoneKind::Dma, BASE, a - BASE),
            zone(0, ZoneKind::Dma32, a, b - a),
            zone(0, ZoneKind::Normal, b, c - b),
            zone(1, ZoneKind::Normal, c, 3000),
        ];
        let mut m = booted(&zones, 1, rules(era), quiet());
        m.check();
        let of = |m: &M, p: u64| m.inspect().zone_of(Pfn(p)).map(|z| z.0);
        for (z, config) in zones.iter().enumerate() {
            let (first, end) = (config.start.0, config.start.0 + config.spanned);
            for p in [first, first + 1, end - 1] {
                assert_eq!(of(&m, p), Some(z as u8), "{era}: {p:#x}");
            }
            assert_eq!(m.zone_view(z as u32).free_pages, config.managed, "{era}");
        }
        assert_eq!(of(&m, BASE - 1), None);
        assert_eq!(of(&m, c + 3000), None);
        // All of each, and all of it back to the zone that it is of.
        let mut held = Vec::new();
        for z in 0..4u32 {
            while let Ok(p) = m.alloc_in_zone(z, 0, MOV) {
                assert_eq!(of(&m, p.0), Some(z as u8), "{era}: {p:?}");
                held.push(p);
            }
            m.check();
        }
        assert_eq!(held.len() as u64, c + 3000 - BASE, "{era}");
        // Those on either side of each border first.
        held.sort_by_key(|p| [a, b, c].map(|at| p.0.abs_diff(at)).into_iter().min());
        for (i, p) in held.iter().enumerate() {
            m.free(*p, 0).expect("a page in use");
            if i < 64 {
                m.check();
            }
        }
        m.drain_all();
        m.check();
        for (z, config) in zones.iter().enumerate() {
            assert_eq!(m.zone_view(z as u32).free_pages, config.managed, "{era}");
        }
        // A block of a pageblock's size on either side of a border does not merge across it.
        let all: u64 = (0..4u32).map(|z| m.zone_view(z).nr_free[10]).sum();
        assert!(all > 0, "{era}");
    }
}

/// The one order above the cheap ones that waits on a CPU's lists is that of a huge page, whatever a page has.
/// `spec: 3.2`
#[test]
fn huge_pages_wait_on_the_lists_of_their_cpu_whatever_their_order() {
    for (g, huge) in [
        (Geometry::PAGES_4K, 9),
        (sizes(14, 11, 11), 11),
        (sizes(16, 13, 13), 13),
        (sizes(16, 8, 8).with_huge_order(Order(5)), 5),
        (sizes(12, 10, 9).with_huge_order(Order(10)), 10),
    ] {
        for era in ["6.1", "6.18"] {
            for order in 0..=g.max_order.0 {
                let zones = [zone(0, ZoneKind::Normal, 0, 64 << g.max_order.0)];
                // Lists with room for a block of any order.
                let roomy = quiet().with(|s| s.percpu_pagelist_high_fraction = 8);
                let mut m = booted_with(&zones, g, rules(era), roomy);
                let p = m.take(order, MOV);
                let before = m.set_view(0, 0).count;
                m.free(Pfn(p), order).expect("a block in use");
                let waits = m.set_view(0, 0).count > before;
                assert_eq!(waits, order <= 3 || order == huge, "{era} {g:?} {order}");
                m.drain_all();
                m.check();
            }
        }
    }
}

/// A hole is of reserved frames and of one zone; what is refused changes nothing, and no count has a hole.
#[test]
fn a_hole_is_in_no_count_and_nothing_lies_in_it() {
    for g in ALL {
        let block = u64::from(g.block_order.frames());
        // The second zone begins within the third pageblock.
        let all = 8u64 << g.max_order.0;
        let first = 2 * block + block / 2;
        let zones = [
            zone(0, ZoneKind::Dma32, 0, first),
            zone(0, ZoneKind::Normal, first, all - first),
        ];
        let config = Config {
            geometry: g,
            ..Config::new(&zones, rules("6.1"))
        };
        let words = layout(&config).expect("a manager").words;
        let mut memory = vec![0; words];
        let mut restore = Restore::new(&config, NullHost, &mut memory).expect("a manager");
        let mut edit = restore.edit();
        let order = g.block_order;
        let of = |b: u64| Pfn(b * block + 1);
        edit.free(Pfn(0), Order::ZERO, MigrateType::Movable)
            .expect("reserved");
        edit.used(Pfn(5 * block), Order::ZERO, MOV)
            .expect("reserved");
        for (pfn, refused) in [
            (Pfn(all), RestoreError::NotABlock(Pfn(all), order)),
            (Pfn(u64::MAX), RestoreError::NotABlock(Pfn(u64::MAX), order)),
            (of(2), RestoreError::NotABlock(of(2), order)),
            (of(0), RestoreError::Twice(Pfn(0))),
            (of(5), RestoreError::Twice(Pfn(5 * block))),
        ] {
            assert_eq!(edit.hole(pfn), Err(refused), "{g:?}");
        }
        for b in [1, 4, 4] {
            assert_eq!(edit.hole(of(b)), Ok(()), "{g:?}");
        }
        for at in [Pfn(block), of(4)] {
            let order = Order::ZERO;
            let refused = Err(RestoreError::Twice(at));
            assert_eq!(edit.free(at, order, MigrateType::Movable), refused);
            assert_eq!(edit.used(at, order, MOV), refused);
            assert_eq!(edit.merged(at, order), refused);
        }
        let m = restore.finish();
        let i = m.inspect();
        let count = |z: u8| i.blocks_by_type(ZoneId(z)).iter().sum::<u64>();
        assert_eq!(count(0), 2, "{g:?}: 0 and the half of 2");
        assert_eq!(
            count(1),
            all / block - 3,
            "{g:?}: the half of 2, and all but 4"
        );
        let firsts: Vec<u64> = i.blocks(ZoneId(1)).map(|b| b.0.0 / block).collect();
        assert!(!firsts.contains(&4) && firsts.contains(&5), "{g:?}");
        i.validate().expect("a sound state");
    }
}
