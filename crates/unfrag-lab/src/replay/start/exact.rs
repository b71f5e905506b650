//! A start from the kernel's own free lists.
//!
//! The lists are exact and in order; what is not on them is in use. Which of that is movable comes
//! from the page flags where the mark has them.

use super::state::{Frame, FreeBlock, SetStart, Start};
use super::zones::{highest_frame, marks, zone_facts};
use crate::era::Era;
use crate::error::{Error, Remedy, Result};
use crate::host::Host;
use crate::input::{Cpus, MAX_CPUS};
use std::collections::BTreeMap;
use unfrag_eras::restore::CompactPositions;
use unfrag_eras::{Geometry, MAX_ORDER, MigrateType, Pfn, ZoneConfig};
use unfrag_linux::freelists::{self, FreeLists, PAGEBLOCK_PAGES, PcpKind};
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

/// A block that free lists name, on a host with so many frame numbers.
fn block(pfn: u64, order: u8, mt: MigrateType, frames: u32) -> Result<FreeBlock> {
    let end = 1u64
        .checked_shl(order.into())
        .and_then(|n| pfn.checked_add(n));
    match end {
        Some(end) if order <= MAX_ORDER && end <= frames.into() => Ok(FreeBlock {
            pfn: pfn as u32,
            order,
            mt,
        }),
        _ => Err(Error::contradiction(format!(
            "freelists name a block of order {order} at frame {pfn:#x}; orders end at {MAX_ORDER}, and the zones at frame {frames:#x}"
        ))
        .remedy(Remedy::StartFromCounts)),
    }
}

/// First frames of the pageblocks of the zones that free lists do not name.
fn holes(lists: &FreeLists, zones: &[ZoneConfig]) -> Vec<u32> {
    if lists.pageblocks.is_empty() {
        return vec![];
    }
    let of_zone = |z: &ZoneConfig| {
        let end = z.start.0 + z.spanned;
        let blocks = z.start.0 / PAGEBLOCK_PAGES..end.div_ceil(PAGEBLOCK_PAGES);
        let start = z.start.0;
        blocks.map(move |b| (b * PAGEBLOCK_PAGES).max(start))
    };
    let all = zones.iter().flat_map(of_zone);
    let unnamed = all.filter(|&pfn| lists.pageblock(pfn).is_none());
    unnamed.map(|pfn| pfn as u32).collect()
}

/// Each CPU with lists in a mark: its index. One that neither events nor zoneinfo name comes after all others.
fn indexes(lists: &FreeLists, cpus: &Cpus) -> Result<BTreeMap<u32, usize>> {
    let mut indexes: BTreeMap<u32, usize> = cpus.numbers().iter().copied().zip(0..).collect();
    for pcp in lists.zones.iter().flat_map(|z| &z.pcps) {
        let next = indexes.len();
        indexes.entry(pcp.cpu).or_insert(next);
    }
    match indexes.len() {
        n if n > MAX_CPUS => Err(Error::contradiction(format!(
            "freelists name {n} CPUs, and Linux has {MAX_CPUS} at most"
        ))
        .remedy(Remedy::StartFromCounts)),
        _ => Ok(indexes),
    }
}

/// Reads the state out of a mark. `offset` is what to take from a snapshot's time to get the
/// trace's; `cpus` are those of the recording.
///
/// # Errors
/// If the mark has no free lists, or they were torn while they were read.
pub fn exact(snap: &Snapshot, era: Era, offset: i64, cpus: &Cpus) -> Result<Start> {
    let text = snap.file("freelists").ok_or_else(|| {
        Error::lacking(format!("snapshot `{}` has no freelists", snap.name))
            .remedy(Remedy::StartFromCounts)
    })?;
    let lists = FreeLists::parse(text)?;
    // The recorder of these lists knows hosts of these sizes alone, and so does their text.
    let geometry = Geometry::PAGES_4K;
    let mut zones = zone_facts(&Host::recorded(snap)?)?;
    let configs: Vec<ZoneConfig> = zones.iter().map(|z| z.config).collect();
    let frames = highest_frame(&zones, geometry)?;
    let flags = PageFlags::of(snap)?;
    let mut state = vec![Frame::None; frames as usize];
    let torn = || {
        Error::contradiction(format!(
            "the free lists of snapshot `{}` were torn while being read",
            snap.name
        ))
        .remedy(Remedy::StartFromCounts)
    };
    let indexes = indexes(&lists, cpus)?;
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
                let blocks = list.pfns.iter().map(|&p| block(p, area.order, mt, frames));
                free.append(&mut blocks.collect::<Result<Vec<_>>>()?);
            }
        }
        for p in &l.pcps {
            let mut set = SetStart {
                zone: i,
                cpu: indexes[&p.cpu],
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
                let waiting = |&p: &u64| {
                    // A page waits under the type that it will be freed to: its pageblock's.
                    let mt = lists
                        .pageblock(p)
                        .and_then(|(t, _)| era.migratetype_without_cma(t.into()));
                    let mt = mt.unwrap_or(MigrateType::Movable);
                    block(p, list.order, mt, frames)
                };
                let blocks = list.pfns.iter().map(waiting).collect::<Result<_>>()?;
                set.lists.push((index, blocks));
            }
            sets.push(set);
        }
        // A CPU that comes later begins with the smallest lists that another one has.
        let of_zone = || sets.iter().filter(|s: &&SetStart| s.zone == i);
        let least = of_zone().filter_map(|s| s.tuning).min();
        let absent: Vec<usize> = indexes.values().copied().collect();
        let absent = absent
            .into_iter()
            .filter(|&c| of_zone().all(|s| s.cpu != c));
        let absent: Vec<SetStart> = absent
            .map(|cpu| SetStart {
                zone: i,
                cpu,
                tuning: least,
                lists: vec![],
            })
            .collect();
        sets.extend(absent);
    }
    let holes = holes(&lists, &configs);
    for &pfn in &holes {
        let end = (u64::from(pfn) / PAGEBLOCK_PAGES + 1) * PAGEBLOCK_PAGES;
        let end = end.min(frames.into()) as usize;
        state[pfn as usize..end].fill(Frame::None);
    }
    for b in free
        .iter()
        .chain(sets.iter().flat_map(|s| s.lists.iter().flat_map(|l| &l.1)))
    {
        let begin = b.pfn as usize;
        state[begin..begin + (1 << b.order)].fill(Frame::Free);
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
            let pfn = run.start_pfn.saturating_add(i as u64 * PAGEBLOCK_PAGES);
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
    let mut numbers = vec![0; indexes.len()];
    for (number, index) in indexes {
        numbers[index] = number;
    }
    Ok(Start {
        zones,
        cpus: numbers,
        time,
        free,
        order_shown: None,
        geometry,
        holes,
        sets,
        compact,
        skipped,
        block_types,
        freed_later: vec![false; frames as usize],
        frames: state,
    })
}
