//! The situations that a run meets.

use super::busy::Busy;
use super::compaction;
use super::support::zone;
use super::world::*;
use unfrag_eras::reclaim::{Context, PageFlags};
use unfrag_eras::{CpuId, Gfp, NodeId, Pfn, Rules, Sysctl, ZoneConfig, ZoneKind};

pub(crate) const UNM: Gfp = Gfp::KERNEL;
pub(crate) const REC: Gfp = Gfp::KERNEL.union(Gfp::RECLAIMABLE);
pub(crate) const MOV: Gfp = Gfp::HIGHUSER_MOVABLE;
pub(crate) const ATOMIC: Gfp = Gfp::HIGH.union(Gfp::KSWAPD_RECLAIM);
pub(crate) const NOWAIT: Gfp = Gfp::KSWAPD_RECLAIM;

/// A request of a mobility and urgency by chance.
pub(crate) fn request(c: &mut Chance) -> (u8, Gfp) {
    let order = match c.below(100) {
        0..60 => 0,
        60..84 => 1 + c.below(3) as u8,
        84..95 => 4 + c.below(5) as u8,
        _ => 9 + c.below(2) as u8,
    };
    let mut gfp = c.of(&[
        UNM,
        UNM,
        REC,
        REC,
        MOV,
        MOV,
        MOV,
        Gfp::USER | Gfp::MOVABLE,
        UNM | Gfp::DMA,
        UNM | Gfp::DMA32,
        ATOMIC,
        ATOMIC,
        Gfp::ATOMIC_MASK,
        Gfp::ATOMIC_MASK - Gfp::HIGH,
        NOWAIT,
        Gfp::empty(),
        Gfp::HIGH,
        ATOMIC | Gfp::RECLAIMABLE,
    ]);
    for (flag, times) in [
        (Gfp::NORETRY, 8),
        (Gfp::RETRY_MAYFAIL, 8),
        (Gfp::NOFAIL, 16),
        (Gfp::NOMEMALLOC, 6),
        (Gfp::MEMALLOC, 64),
    ] {
        if c.one_in(times) {
            gfp |= flag;
        }
    }
    (order, gfp)
}

/// A machine of 160 MiB in two nodes, with reserved pages, holes, a pageblock that two zones share, and
/// a zone for movable pages.
pub(crate) fn machine() -> Vec<ZoneConfig> {
    let part = |node, kind, start, spanned, present, managed| ZoneConfig {
        present,
        managed,
        ..zone(node, kind, start, spanned)
    };
    vec![
        part(0, ZoneKind::Dma, 0, 4096, 4000, 3900),
        part(0, ZoneKind::Dma32, 4096, 12_544, 12_544, 12_000),
        part(0, ZoneKind::Normal, 16_640, 12_288, 12_000, 11_300),
        part(0, ZoneKind::Movable, 28_928, 6144, 6144, 6144),
        part(1, ZoneKind::Normal, 35_840, 5120, 5120, 5000),
    ]
}

/// Requests of all sorts come and go, at times more than there is.
pub(crate) fn churn(m: &mut M, c: &mut Chance) {
    let mut held: Vec<(Pfn, u8)> = Vec::new();
    for turn in 0..6000u32 {
        if over(m) {
            return;
        }
        on_cpu(m, c);
        // Memory fills, and is emptied by half, in turns.
        let filling = turn / 700 % 3 != 2;
        match c.below(if filling { 12 } else { 24 }) {
            0..8 => {
                let (order, gfp) = request(c);
                let got = alloc(m, u8::from(c.one_in(5)), order, gfp);
                held.extend(got.map(|p| (p, order)));
            }
            8 => {
                // Many of a kind fill up what is left in pageblocks of theirs.
                let (order, gfp) = request(c);
                for _ in 0..if order < 4 { 100 } else { 4 } {
                    let got = alloc(m, 0, order, gfp);
                    held.extend(got.map(|p| (p, order)));
                }
            }
            9 => {
                let mut out = [Pfn(0); 12];
                let request = ask_for(m, 0, 0, c.of(&[UNM, MOV, ATOMIC]));
                let got = m.alloc_bulk(&request, &mut out);
                for &p in &out[..got.unwrap_or(0)] {
                    see(m, Observation::Got(Ok(p)));
                    held.push((p, 0));
                }
            }
            10 => {
                let node = NodeId(c.below(2) as u8);
                let kind = c.of(&[ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable]);
                match c.below(3) {
                    0 => m.lab().set_reclaim_active(node, kind, true),
                    1 => m.lab().set_reclaim_active(node, kind, false),
                    _ => m.lab().lower_boost(node, kind, 512),
                }
            }
            11 => match c.below(8) {
                0 => m.drain_all(),
                1..4 => m.vmstat_update(CpuId(c.below(2) as u32)),
                _ => {}
            },
            12..22 if !held.is_empty() => {
                for _ in 0..1 + c.below(40) {
                    if !held.is_empty() {
                        let i = c.below(held.len() as u64) as usize;
                        free(m, held.swap_remove(i));
                    }
                }
            }
            _ => {
                for _ in 0..c.below(30) {
                    held.pop().into_iter().for_each(|b| free(m, b));
                }
            }
        }
        if turn % 500 == 0 {
            look(m);
        }
    }
}

pub(crate) fn reclaim(m: &mut M, c: &mut Chance, starved: bool) {
    let mut b = Busy::new(starved);
    if starved {
        m.host_mut().swap = 0;
        m.set_nr_swap_pages(0);
    }
    for turn in 0..60_000u32 {
        if over(m) {
            return;
        }
        on_cpu(m, c);
        // Quiet times, in which kswapd may rest, and others.
        let busy = turn / 4000 % 3 != 2;
        match c.below(if busy { 20 } else { 60 }) {
            0..8 if b.tasks.len() < 5 => b.begin(m, c),
            0..11 => b.step_task(m, c),
            11..14 => b.step_kswapd(m, c),
            14 => b.step_kcompactd(m),
            15..18 => b.touch(m, c),
            18 if c.one_in(3) && !b.held.is_empty() => {
                let i = c.below(b.held.len() as u64) as usize;
                free(m, b.held.swap_remove(i));
            }
            19 if c.one_in(if starved { 150 } else { 600 }) => b.use_up(m),
            19 if c.one_in(200) => {
                for _ in 0..c.below(400) {
                    b.held.pop().into_iter().for_each(|h| free(m, h));
                }
            }
            20..36 => b.step_kswapd(m, c),
            36..40 => b.step_kcompactd(m),
            40..50 => b.step_task(m, c),
            50 => {
                let page = m.host_mut().writing.pop();
                page.into_iter().for_each(|p| m.pages().end_writeback(p));
            }
            _ => {}
        }
        if turn % 4000 == 0 {
            m.vmstat_update(CpuId(0));
            look(m);
        }
    }
}

/// Files are read, each page once, and kswapd alone makes room: its passes may free more than they are to.
pub(crate) fn stream(m: &mut M, c: &mut Chance) {
    let mut b = Busy::new(false);
    for _ in 0..16_000 {
        if over(m) {
            return;
        }
        if let Some(p) = alloc(m, 0, 0, MOV) {
            m.pages().lru_add_new(p, true, PageFlags::empty());
        }
        for _ in 0..1000 {
            if b.answer.is_none() && !m.host().woken {
                break;
            }
            b.step_kswapd(m, c);
        }
    }
}

/// Next to nothing can be reclaimed, and tasks want more than there is: reclaim gives up.
pub(crate) fn hopeless(m: &mut M, c: &mut Chance) {
    let mut b = Busy::new(true);
    b.hopeless = true;
    m.host_mut().swap = 0;
    m.set_nr_swap_pages(0);
    for _ in 0..40 {
        let got = alloc(m, 0, 0, MOV);
        got.into_iter().for_each(|p| b.got(m, c, p, 0, MOV));
    }
    b.use_up(m);
    for _ in 0..20_000 {
        if over(m) {
            return;
        }
        match c.below(8) {
            0 if b.tasks.len() < 3 => {
                let order = c.of(&[0, 0, 1, 3, 4, 4, 5, 8]);
                b.begin_as(m, c, order, UNM, Context::default());
            }
            0..6 => b.step_task(m, c),
            _ => b.step_kswapd(m, c),
        }
    }
}

pub(crate) const SCENES: [&str; 11] = [
    "hopeless",
    "churn",
    "churn, low marks",
    "reclaim",
    "reclaim, one zone",
    "starved",
    "generations",
    "generations, starved",
    "stream",
    "compaction",
    "large",
];
/// Seeds of each scene; the scene of compaction has more, since its rules meet in fewer places.
pub(crate) const SEEDS: u64 = 6;
pub(crate) const COMPACTION_SEEDS: u64 = 800;

/// One run of a scene, written down or held against another.
pub(crate) fn run<'a>(
    scene: &str,
    rules: &Rules,
    by: (u64, Option<&'a [Observation]>),
) -> Record<'a> {
    let small = [
        zone(0, ZoneKind::Dma, 0, 2048),
        zone(0, ZoneKind::Normal, 2048, 6144),
    ];
    let cached = Sysctl::default().with(|s| {
        s.transparent_hugepage = false;
    });
    match scene {
        "churn" => with_manager(&machine(), rules, Sysctl::default(), by, churn),
        "churn, low marks" => {
            let sysctl = Sysctl::default().with(|s| {
                s.min_free_kbytes = 600;
                s.lowmem_reserve_ratio = [0, 256, 32, 32, 0];
                s.defrag_mode = by.0 % 2 == 1;
            });
            with_manager(&machine(), rules, sysctl, by, churn)
        }
        "reclaim" => with_manager(&small, rules, cached, by, |m, c| {
            reclaim(m, c, false);
        }),
        "compaction" => {
            let sysctl = cached.with(|s| compaction::settings(s, by.0));
            with_manager(&compaction::machine(), rules, sysctl, by, compaction::scene)
        }
        "hopeless" => with_manager(&small, rules, cached, by, hopeless),
        "generations" | "generations, starved" => {
            let sysctl = cached.with(|s| s.lru_gen = true);
            let starved = scene == "generations, starved";
            with_manager(&small, rules, sysctl, by, |m, c| reclaim(m, c, starved))
        }
        "stream" => {
            let one = [zone(0, ZoneKind::Normal, 0x400, 12_288)];
            let sysctl = cached.with(|s| {
                s.lru_gen = true;
                s.min_free_kbytes = 128;
                s.watermark_boost_factor = 0;
            });
            with_manager(&one, rules, sysctl, by, stream)
        }
        "starved" => with_manager(&small, rules, cached, by, |m, c| reclaim(m, c, true)),
        "reclaim, one zone" => {
            let one = [zone(0, ZoneKind::Normal, 0x400, 6144)];
            with_manager(&one, rules, cached, by, |m, c| reclaim(m, c, false))
        }
        _ => with_manager(
            &[zone(0, ZoneKind::Normal, 0, 200_000)],
            rules,
            // Above two pageblocks.
            Sysctl::default().with(|s| {
                s.min_free_kbytes = 8192;
            }),
            by,
            |m, c| {
                for _ in 0..400 {
                    let (order, gfp) = request(c);
                    alloc(m, 0, order, gfp);
                }
                // All of it, and what is reserved at the end.
                while alloc(m, 0, 9, MOV).is_some() {}
                for _ in 0..200 {
                    let order = c.below(4) as u8;
                    alloc(m, 0, order, c.of(&[ATOMIC, UNM, REC]));
                }
            },
        ),
    }
}

// The flips.
