//! A start from the kernel's own free lists.
//!
//! The lists are exact and in order; what is not on them is in use. Which of that is movable comes
//! from the page flags where the mark has them.

use super::state::{Frame, FreeBlock, SetStart, Start};
use super::zones::{highest_frame, marks, zone_facts};
use crate::era::Era;
use crate::error::{Error, Remedy, Result};
use unfrag::restore::CompactPositions;
use unfrag::{MigrateType, Pfn, ZoneConfig};
use unfrag_linux::freelists::{self, FreeLists, PcpKind};
use unfrag_linux::kpageflags::PageFlags;
use unfrag_linux::recording::Snapshot;

/// The lists of a zone. They name no node: where several nodes have a zone of that name, its first frame
/// decides.
fn lists_of<'l>(
    lists: &'l FreeLists,
    zone: &ZoneConfig,
    zones: &[ZoneConfig],
) -> Option<&'l freelists::Zone> {
    let several = zones.iter().filter(|z| z.kind == zone.kind).count() > 1;
    let is_it = |l: &&freelists::Zone| {
        l.name == zone.kind.name() && (!several || l.start_pfn == zone.start.0)
    };
    lists.zones.iter().find(is_it)
}

/// What a zone remembers of compactions. A position outside the zone was never set: then runs begin at its ends.
fn positions(zone: &ZoneConfig, c: &freelists::Compact) -> CompactPositions {
    let (start, end) = (zone.start.0, zone.start.0 + zone.spanned);
    let or = |pfn: u64, at: u64| Pfn(if (start..end).contains(&pfn) { pfn } else { at });
    CompactPositions {
        migrate: [c.cached_migrate_pfn_async, c.cached_migrate_pfn_sync].map(|p| or(p, start)),
        free: or(c.cached_free_pfn, end - 1),
        considered: c.considered,
        defer_shift: c.defer_shift.min(u32::from(u8::MAX)) as u8,
        order_failed: c.order_failed.clamp(0, i32::from(u8::MAX)) as u8,
    }
}

/// Reads the state out of a mark. `offset` is what to take from a snapshot's time to get the
/// trace's.
///
/// # Errors
/// If the mark has no free lists, or they were torn while they were read.
pub fn exact(snap: &Snapshot, era: Era, offset: i64) -> Result<Start> {
    let text = snap.file("freelists").ok_or_else(|| {
        Error::lacking(format!("snapshot `{}` has no freelists", snap.name))
            .remedy(Remedy::StartFromCounts)
    })?;
    let lists = FreeLists::parse(text)?;
    let mut zones = zone_facts(snap)?;
    let configs: Vec<ZoneConfig> = zones.iter().map(|z| z.config).collect();
    let frames = highest_frame(&zones)?;
    let flags = PageFlags::of(snap)?;
    let mut state = vec![Frame::None; frames as usize];
    let torn = || {
        Error::contradiction(format!(
            "the free lists of snapshot `{}` were torn while being read",
            snap.name
        ))
        .remedy(Remedy::StartFromCounts)
    };
    let mut free = vec![];
    let mut sets = vec![];
    for (i, z) in zones.iter_mut().enumerate() {
        let (node, name) = (z.config.node.0, z.config.kind.name());
        let Some(l) = lists_of(&lists, &z.config, &configs) else {
            return Err(Error::contradiction(format!(
                "freelists lack zone {name} of node {node}"
            )));
        };
        let w = &l.watermarks;
        z.marks = marks(w.min, w.low, w.high, w.promo, l.boost);
        z.highatomic = l.highatomic;
        let start = z.config.start.0 as usize;
        for (pfn, f) in state
            .iter_mut()
            .enumerate()
            .skip(start)
            .take(z.config.spanned as usize)
        {
            let lru = flags.as_ref().is_some_and(|k| k.is_movable(pfn as u64));
            *f = if lru { Frame::Movable } else { Frame::Pinned };
        }
        for area in &l.orders {
            for list in &area.lists {
                if list.torn.is_some() {
                    return Err(torn());
                }
                let mt = era
                    .migratetype_without_cma(list.migratetype.into())
                    .ok_or_else(|| {
                        Error::contradiction(format!("migratetype {}", list.migratetype))
                    })?;
                free.extend(list.pfns.iter().map(|&p| FreeBlock {
                    pfn: p as u32,
                    order: area.order,
                    mt,
                }));
            }
        }
        for p in &l.pcps {
            let mut set = SetStart {
                zone: i,
                cpu: p.cpu as usize,
                tuning: Some((p.high, p.batch, p.free_factor.into())),
                lists: vec![],
            };
            for list in &p.lists {
                if list.torn.is_some() {
                    return Err(torn());
                }
                let index = match list.kind {
                    PcpKind::MigrateType(t) => usize::from(list.order) * 3 + usize::from(t),
                    PcpKind::Thp(i) => usize::from(i),
                };
                let block = |&p: &u64| {
                    // A page waits under the type that it will be freed to: its pageblock's.
                    let mt = lists
                        .pageblock(p)
                        .and_then(|(t, _)| era.migratetype_without_cma(t.into()));
                    let mt = mt.unwrap_or(MigrateType::Movable);
                    FreeBlock {
                        pfn: p as u32,
                        order: list.order,
                        mt,
                    }
                };
                set.lists
                    .push((index, list.pfns.iter().map(block).collect()));
            }
            sets.push(set);
        }
    }
    for b in free
        .iter()
        .chain(sets.iter().flat_map(|s| s.lists.iter().flat_map(|l| &l.1)))
    {
        for p in b.pfn..b.pfn + (1 << b.order) {
            match state.get_mut(p as usize) {
                Some(f) => *f = Frame::Free,
                None => {
                    return Err(Error::contradiction(format!(
                        "freelists name frame {p}, beyond all zones"
                    )));
                }
            }
        }
    }
    let mut compact = vec![];
    for (i, z) in zones.iter().enumerate() {
        let remembered = lists_of(&lists, &z.config, &configs);
        compact.extend(remembered.map(|l| (i, positions(&z.config, &l.compact))));
    }
    let mut block_types = vec![];
    let mut skipped = vec![];
    for run in &lists.pageblocks {
        for (i, &t) in run.types.iter().enumerate() {
            let pfn = run.start_pfn + i as u64 * 512;
            if pfn >= u64::from(frames) {
                break;
            }
            let mt = era
                .migratetype_without_cma(t.into())
                .ok_or_else(|| Error::contradiction(format!("pageblock type {t}")))?;
            block_types.push((pfn as u32, mt));
            if run.skip.get(i) == Some(&true) {
                skipped.push(pfn as u32);
            }
        }
    }
    // The walk happens within a few milliseconds; what it shows is the state at its end.
    let time = snap
        .files
        .iter()
        .find(|f| f.name == "freelists")
        .and_then(|f| f.time)
        .map_or(0, |(_, end)| end.saturating_add_signed(-offset));
    let cpus = sets.iter().map(|s| s.cpu + 1).max().unwrap_or(1);
    Ok(Start {
        zones,
        cpus,
        time,
        free,
        order_shown: None,
        sets,
        compact,
        skipped,
        block_types,
        freed_later: vec![false; frames as usize],
        frames: state,
    })
}
