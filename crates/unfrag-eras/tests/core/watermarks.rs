//! Marks, protections and the sizes of per-CPU lists as real kernels derive them.

use super::support::*;
use unfrag_eras::pcp::size::{SetBasis, SetSize, batch};
use unfrag_eras::zone::watermark::{khugepaged_min_free_pages, lowmem_reserve, min_free_kbytes};
use unfrag_eras::zone::{MarkSize, Marks};
use unfrag_eras::{Geometry, Sysctl, ZoneKind};

/// The most that the kernel takes for `min_free_kbytes` by itself, in old and modern eras.
const OLD_CAP: u64 = 65_536;
const CAP: u64 = 262_144;

const KIB_PAGES: u64 = 1024;
const GIB: u64 = 1 << 18;

fn marks(kind: ZoneKind, pages: u64, lowmem: u64, kbytes: u64, era: &str) -> Marks {
    let min_free = kbytes / 4;
    let size = MarkSize {
        kind,
        pages,
        lowmem,
        min_free,
    };
    Marks::new(size, &rules(era), &Sysctl::default())
}

/// `spec: 1.3`
#[test]
fn min_free_kbytes_follows_the_root_of_low_memory() {
    for cap in [OLD_CAP, CAP] {
        assert_eq!(min_free_kbytes(16 << 10, cap), 512);
        assert_eq!(min_free_kbytes(512 << 10, cap), 2896);
        assert_eq!(min_free_kbytes(1 << 20, cap), 4096);
        assert_eq!(min_free_kbytes(16 << 20, cap), 16384);
        assert_eq!(min_free_kbytes(64, cap), 128);
    }
    assert_eq!(min_free_kbytes(1 << 40, OLD_CAP), 65536);
    assert_eq!(min_free_kbytes(1 << 40, CAP), 262_144);
}

/// `spec: 1.3`
#[test]
fn marks_of_one_gibibyte() {
    let old = marks(ZoneKind::Normal, GIB, GIB, 4096, "2.6.32");
    assert_eq!((old.min, old.low, old.high), (1024, 1280, 1536));
    let new = marks(ZoneKind::Normal, GIB, GIB, 4096, "6.18");
    assert_eq!(
        (new.min, new.low, new.high, new.promo),
        (1024, 1286, 1548, 1810)
    );
}

/// `spec: 1.3`
#[test]
fn zones_above_low_memory_have_a_bounded_min() {
    // 896 MiB of low memory, 128 MiB of high memory.
    let (low, high) = (229_376, 32_768);
    let m = marks(ZoneKind::HighMem, high, low, 3831, "2.6.32");
    assert_eq!(m.min, 32, "32768 / 1024, at least 32");
    let m = marks(ZoneKind::HighMem, 1 << 20, low, 3831, "2.6.32");
    assert_eq!(m.min, 128);
    let m = marks(ZoneKind::Movable, 64 * 1024, low, 3831, "6.18");
    assert_eq!(m.min, 64, "Movable is no low memory in 6.18");
}

/// `spec: 1.3`
#[test]
fn movable_shares_the_minimum_in_6_1() {
    let zones = [
        zone(0, ZoneKind::Normal, 0x10_0000, GIB),
        zone(0, ZoneKind::Movable, 0x20_0000, GIB),
    ];
    let sysctl = Sysctl::default().with(|s| {
        s.min_free_kbytes = 8192;
    });
    let m = fresh(&zones, 1, rules("6.1"), sysctl);
    assert_eq!(m.zone_view(0).marks.min, 1024);
    assert_eq!(m.zone_view(1).marks.min, 1024);
    let m = fresh(&zones, 1, rules("6.18"), sysctl);
    assert_eq!(m.zone_view(0).marks.min, 2048);
    assert_eq!(m.zone_view(1).marks.min, 128);
}

/// With pageblocks of 2 MiB.
fn khugepaged_min_free_kbytes(zones: u64, above_high: u64) -> u64 {
    4 * khugepaged_min_free_pages(zones, above_high, 512)
}

/// `spec: 1.3`
#[test]
fn khugepaged_raises_min_free_kbytes() {
    assert_eq!(khugepaged_min_free_kbytes(2, GIB), 45056);
    assert_eq!(khugepaged_min_free_kbytes(3, 2 * GIB), 67584);
    // 768 MiB: at the time khugepaged starts the two zones hold 181,890 pages; the cap decides.
    let (dma, dma32) = (3840, 178_050);
    let lowmem = dma + dma32;
    let early = min_free_kbytes(lowmem * 4, CAP);
    let high: u64 = [(ZoneKind::Dma, dma), (ZoneKind::Dma32, dma32)]
        .map(|(k, n)| marks(k, n, lowmem, early, "6.1").high)
        .iter()
        .sum();
    let raised = khugepaged_min_free_kbytes(2, lowmem - high);
    let m = marks(ZoneKind::Dma, dma, lowmem, raised, "6.1");
    assert_eq!((m.min, m.low, m.high), (190, 237, 284));
    let m = marks(ZoneKind::Dma32, dma32, lowmem, raised, "6.1");
    assert_eq!((m.min, m.low, m.high), (8839, 11048, 13257));
}

/// `spec: 1.3`
#[test]
fn a_boot_of_768_mib_comes_close_to_the_recorded_marks() {
    // Marks freeze before the kernel's own memory returns, so the final sizes give 1 % more.
    let zones = [
        zone(0, ZoneKind::Dma, 0x1000, 3840),
        zone(0, ZoneKind::Dma32, 0x2000, 180_484),
    ];
    let m = fresh(&zones, 2, rules("6.1"), Sysctl::default());
    let min: Vec<u64> = (0..2).map(|z| m.zone_view(z).marks.min).collect();
    assert!((187..=191).contains(&min[0]), "{min:?}");
    assert!((8839..=8964).contains(&min[1]), "{min:?}");
    let off = Sysctl::default().with(|s| {
        s.transparent_hugepage = false;
    });
    let m = fresh(&zones, 2, rules("6.1"), off);
    assert!(m.zone_view(1).marks.min < 900);
    let set = Sysctl::default().with(|s| {
        s.min_free_kbytes = 3271;
    });
    let m = fresh(&zones, 2, rules("6.1"), set);
    assert_eq!(m.zone_view(1).marks.min, 817 * 180_484 / 184_324);
}

/// `spec: 1.6`
#[test]
fn lowmem_reserve_is_a_share_of_the_zones_above() {
    let ratio = Sysctl::default().lowmem_reserve_ratio;
    let sizes = [4000, 800_000, 1_000_000, 0, 64_000];
    let keep = lowmem_reserve(&sizes, &ratio, true);
    assert_eq!(keep[0], [0, 3125, 7031, 7031, 7281]);
    assert_eq!(keep[1], [0, 0, 3906, 3906, 4156]);
    assert_eq!(keep[2], [0, 0, 0, 0, 2000]);
    assert_eq!(keep[4], [0; 5]);
    // Ratio 0: nothing kept in modern kernels, everything in old ones.
    let keep = lowmem_reserve(&sizes, &[0; 5], true);
    assert_eq!(keep, [[0; 5]; 5]);
    let keep = lowmem_reserve(&sizes, &[0; 5], false);
    assert_eq!(keep[1][2], 1_000_000);
}

/// `spec: 1.3`
#[test]
fn dma_protection_of_768_mib() {
    // The reserves freeze earlier still, with 177,920 to 178,175 pages in DMA32.
    let keep = lowmem_reserve(
        &[3840, 178_030, 0, 0, 0],
        &Sysctl::default().lowmem_reserve_ratio,
        true,
    );
    assert_eq!(keep[0], [0, 695, 695, 695, 695]);
}

/// `spec: 1.6`
#[test]
fn old_kernels_count_present_pages_and_modern_ones_managed() {
    let mut z = zone(0, ZoneKind::Normal, 0x10_0000, GIB);
    z.managed = GIB / 2;
    let m = fresh(&[z], 1, rules("2.6.32"), Sysctl::default());
    assert_eq!(m.zone_view(0).marks.min, 1024);
    assert_eq!(m.set_view(0, 0).batch, 31);
    let thp_off = Sysctl::default().with(|s| {
        s.transparent_hugepage = false;
    });
    let m = fresh(&[z], 1, rules("6.1"), thp_off);
    assert_eq!(m.zone_view(0).marks.min, 2896 / 4);
    assert_eq!(m.set_view(0, 0).batch, 31);
}

/// `spec: 3.1, 3.2`
#[test]
fn batch_is_one_less_than_a_power_of_two() {
    // 512 KiB and 1 MiB.
    const OLD: u64 = 128;
    const NEW: u64 = 256;
    assert_eq!(batch(GIB, OLD), 31);
    assert_eq!(batch(64 * GIB, OLD), 31);
    assert_eq!(batch(1000, OLD), 1, "zero is forced to one");
    assert_eq!(batch(1000, NEW), 1);
    assert_eq!(batch(64 * GIB, NEW), 63);
    // `spec: 3`: the steps at 88 and 172 Ki pages.
    assert_eq!(batch(88 * KIB_PAGES - 1, NEW), 15);
    assert_eq!(batch(88 * KIB_PAGES, NEW), 31);
    assert_eq!(batch(172 * KIB_PAGES - 1, NEW), 31);
    assert_eq!(batch(172 * KIB_PAGES, NEW), 63);
}

fn set_size(era: &str, sysctl: &Sysctl, pages: u64, low: u64, cpus: u64) -> SetSize {
    let of = SetBasis {
        pages,
        low,
        cpus,
        geometry: Geometry::PAGES_4K,
    };
    SetSize::new(of, &rules(era), sysctl)
}

fn stat_threshold(pages: u64, cpus: u64) -> i64 {
    unfrag_eras::pcp::size::stat_threshold(pages, cpus, Geometry::PAGES_4K)
}

/// `spec: 3`
#[test]
fn set_sizes_of_768_mib() {
    let size = |pages, low| set_size("6.1", &Sysctl::default(), pages, low, 2);
    let dma32 = size(180_484, 11048);
    assert_eq!(
        (dma32.high_min, dma32.high_max, dma32.batch),
        (5524, 5524, 63)
    );
    let dma = size(3840, 237);
    assert_eq!((dma.high_min, dma.batch), (118, 1));
}

/// `spec: 3.1`
#[test]
fn old_sets_hold_six_batches_or_a_fraction() {
    let sysctl = Sysctl::default();
    let s = set_size("2.6.32", &sysctl, GIB, 1280, 4);
    assert_eq!((s.batch, s.high_min), (31, 186));
    fn fraction(f: u64) -> Sysctl {
        Sysctl::default().with(|s| {
            s.percpu_pagelist_high_fraction = f;
        })
    }
    let s = set_size("2.6.32", &fraction(8), GIB, 1280, 4);
    assert_eq!((s.batch, s.high_min), (96, GIB / 8));
    let s = set_size("2.6.32", &fraction(100), 16_000, 1280, 4);
    assert_eq!((s.batch, s.high_min), (40, 160));
}

/// `spec: 3.2`
#[test]
fn self_tuning_sets_have_a_floor_and_a_ceiling() {
    let sysctl = Sysctl::default();
    let s = set_size("6.18", &sysctl, GIB, 1286, 4);
    assert_eq!((s.batch, s.high_min, s.high_max), (63, 321, GIB / 8 / 4));
    let s = set_size("6.18", &sysctl, GIB, 400, 4);
    assert_eq!(s.high_min, 4 * 63, "at least four batches");
    let fixed = sysctl.with(|s| {
        s.percpu_pagelist_high_fraction = 8;
    });
    let s = set_size("6.18", &fixed, GIB, 1286, 4);
    assert_eq!((s.high_min, s.high_max), (GIB / 32, GIB / 32));
}

#[test]
fn the_stat_threshold_is_that_of_recorded_zones() {
    // Managed pages and `vm stats threshold` of hosts of 6.1 with two CPUs.
    for (pages, recorded) in [(3_840, 4), (148_219, 16), (180_484, 16), (373_627, 20)] {
        assert_eq!(stat_threshold(pages, 2), recorded, "{pages}");
    }
    assert_eq!(stat_threshold(1 << 30, 512), 125, "the most");
}

#[test]
fn marks_are_held_against_a_count_that_is_late_since_2_6_18() {
    // 1 GiB and eight CPUs: each may be 40 pages behind, more than a batch of 31.
    let most = stat_threshold(GIB, 8);
    for (era, late) in [("2.6.14", false), ("2.6.28", true)] {
        let zones = [zone(0, ZoneKind::Normal, 0x10_0000, GIB)];
        let mut m = booted(&zones, 8, rules(era), Sysctl::default());
        let behind = |m: &M| m.zone_view(0).free_counter - m.zone_view(0).free_pages as i64;
        let mut most_behind = 0;
        for i in 0..40_000 {
            m.on(i % 8);
            m.alloc(0, MOV).unwrap();
            let d = behind(&m);
            assert!((0..=8 * most).contains(&d), "{era}: {d}");
            most_behind = most_behind.max(d);
        }
        assert_eq!(most_behind > most, late, "{era}: {most_behind}");
        (0..8).for_each(|cpu| m.vmstat_update(cpu));
        assert_eq!(behind(&m), 0, "{era}: after the workers");
    }
}
