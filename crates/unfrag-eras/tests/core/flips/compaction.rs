//! A machine whose memory is fragmented, and whose tasks want large blocks.

use super::busy::Busy;
use super::scenes::{ATOMIC, MOV, NOWAIT, REC, UNM, request};
use super::support::zone;
use super::world::*;
use unfrag_eras::reclaim::{Context, Lru, PageFlags};
use unfrag_eras::{CpuId, Gfp, Sysctl, ZoneConfig, ZoneKind};

/// Two zones of one node; the second one ends within a pageblock.
pub(super) fn machine() -> Vec<ZoneConfig> {
    vec![
        zone(0, ZoneKind::Dma32, 0x1000, 2048),
        zone(0, ZoneKind::Normal, 0x1800, 5900),
    ]
}

pub(super) fn settings(s: &mut Sysctl, seed: u64) {
    s.compaction_proactiveness = [20, 96, 85, 60, 100, 0][seed as usize % 6];
    s.defrag_mode = seed % 2 == 1;
    s.compact_unevictable_allowed = seed % 3 != 2;
    s.min_free_kbytes = [512, 4096, 8192][seed as usize / 2 % 3];
    s.extfrag_threshold = [500, 100][seed as usize / 2 % 2];
}

const HUGE: Gfp = MOV.union(Gfp::NORETRY).union(Gfp::NOWARN);

/// What the tasks ask for.
fn wish(c: &mut Chance) -> (u8, Gfp) {
    match c.below(16) {
        0..4 => (9, c.of(&[HUGE, HUGE | Gfp::THISNODE, MOV, UNM])),
        4..7 => (
            4 + c.below(5) as u8,
            c.of(&[
                MOV,
                UNM,
                REC,
                HUGE | Gfp::THISNODE,
                UNM | Gfp::RETRY_MAYFAIL,
            ]),
        ),
        7..11 => (1 + c.below(3) as u8, c.of(&[UNM, REC, MOV])),
        11 => (c.of(&[2, 4, 5, 9]), c.of(&[ATOMIC, NOWAIT])),
        12 => (c.of(&[2, 5, 9]), c.of(&[UNM - Gfp::FS, UNM - Gfp::IO])),
        _ => request(c),
    }
}

/// Memory fills with small pages of all sorts, most of them movable, and loses some of them anywhere.
fn fragment(m: &mut M, c: &mut Chance, b: &mut Busy) {
    while let Some(p) = alloc(m, 0, 0, if c.one_in(60) { UNM } else { MOV }) {
        match c.below(40) {
            // Movable, and on no list.
            0 => b.held.push((p, 0)),
            1 => {
                m.pages().lru_add(p, Lru::Unevictable, PageFlags::empty());
                b.cache.push(p);
            }
            _ => b.got(m, c, p, 0, MOV),
        }
    }
    for _ in 0..b.cache.len() / 3 {
        drop_one(m, c, b);
    }
}

fn drop_one(m: &mut M, c: &mut Chance, b: &mut Busy) {
    if b.cache.is_empty() {
        return;
    }
    let i = c.below(b.cache.len() as u64) as usize;
    let page = b.cache.swap_remove(i);
    // It may have been reclaimed, or be freed by reclaim that holds it.
    let on_list = m.inspect().lru_of(page).is_some();
    if on_list {
        free(m, (page, 0));
    }
}

pub(super) fn scene(m: &mut M, c: &mut Chance) {
    let mut b = Busy::new(false);
    fragment(m, c, &mut b);
    for turn in 0..12_000u32 {
        if over(m) {
            return;
        }
        on_cpu(m, c);
        match c.below(32) {
            0..3 if b.tasks.len() < 4 => {
                let (order, gfp) = wish(c);
                let gfp = gfp - Gfp::NOFAIL;
                b.begin_as(m, c, order, gfp, Context::default());
            }
            3..6 => {
                let gfp = if c.one_in(30) { UNM } else { MOV };
                b.begin_as(m, c, 0, gfp, Context::default());
            }
            6..18 => b.step_task(m, c),
            18..25 => b.step_kcompactd(m),
            25 => b.step_kswapd(m, c),
            26 => {
                let (order, gfp) = (c.of(&[2, 3, 4, 5, 6, 9]), c.of(&[ATOMIC, UNM, REC]));
                b.begin_as(m, c, order, gfp, Context::default());
            }
            27 => drop_one(m, c, &mut b),
            28 if !b.held.is_empty() => {
                let i = c.below(b.held.len() as u64) as usize;
                free(m, b.held.swap_remove(i));
            }
            29 => b.touch(m, c),
            _ => {}
        }
        if turn % 1500 == 0 {
            m.vmstat_update(CpuId(0));
            look(m);
            // Some task took all there was, and left.
            for _ in 0..turn / 20 {
                b.begin_as(m, c, 0, MOV, Context::default());
            }
            for _ in 0..turn / 10 {
                drop_one(m, c, &mut b);
            }
        }
    }
}
