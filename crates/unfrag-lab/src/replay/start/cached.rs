//! Which frames in use at the start hold page cache.
//!
//! Page flags say it of each frame. Without them, the trace says it of those that leave the page cache later, and
//! zoneinfo how many there are in all.
//!
//! Invariant: no frame is named twice, and none that is free, or that the recorded kernel's reclaim took.

use super::state::{Frame, Start};
use super::zones::holds;
use crate::error::Result;
use crate::host::Host;
use crate::replay::causes::RecordedReclaim;
use std::collections::BTreeSet;
use unfrag_eras::{MigrateType, Pfn};
use unfrag_linux::kpageflags::{self, ANON, LRU, PageFlags};
use unfrag_linux::recording::{Recording, Snapshot};

/// The frames. `first` is the first snapshot after the start; snapshots' times are `offset` ahead of the trace's.
///
/// # Errors
/// If a snapshot cannot be read.
pub(crate) fn cached_at_start(
    start: &Start,
    reclaim: &RecordedReclaim,
    first: &Snapshot,
    rec: &Recording,
    offset: i64,
) -> Result<Vec<u32>> {
    let mut is_open: Vec<bool> = start
        .frames
        .iter()
        .map(|f| matches!(f, Frame::Movable | Frame::Pinned))
        .collect();
    for &p in &reclaim.cold_at_start {
        is_open[p as usize] = false;
    }
    let mut all: Vec<u32> = vec![];
    let mut take = |pfn: u32, all: &mut Vec<u32>| {
        let was_open = is_open.get_mut(pfn as usize).is_some_and(std::mem::take);
        if was_open {
            all.push(pfn);
        }
        was_open
    };
    if let Some(flags) = flags_at(rec, start.time, offset)? {
        for pfn in 0..start.frames.len() as u32 {
            let f = flags.frame(pfn.into());
            if f & LRU != 0 && f & ANON == 0 {
                take(pfn, &mut all);
            }
        }
        return Ok(all);
    }
    for &pfn in &reclaim.cache.at_start {
        take(pfn, &mut all);
    }
    let host = Host::recorded(first)?;
    let block = start.geometry.block_order.frames();
    let others = start.block_types.iter();
    let others = others.filter(|b| b.1 != MigrateType::Movable);
    let others: BTreeSet<u32> = others.map(|b| b.0 / block).collect();
    let movable = |pfn: u32| !others.contains(&(pfn / block));
    for z in &start.zones {
        let c = &z.config;
        let Some(shown) = host.zone(c.node.0.into(), c.kind.name()) else {
            continue;
        };
        let lists = ["nr_zone_inactive_file", "nr_zone_active_file"];
        let pages: u64 = lists.iter().filter_map(|l| shown.counted(l)).sum();
        let inside = |p: &&u32| holds(c, Pfn(u64::from(**p)));
        let known = all
            .iter()
            .chain(&reclaim.cold_at_start)
            .filter(inside)
            .count() as u64;
        let mut left = pages.saturating_sub(known);
        // Which ones is not known: those that the trace never touches, in pageblocks of movable pages.
        for pfn in c.start.0..c.start.0 + c.spanned {
            if left == 0 {
                break;
            }
            let pfn = pfn as u32;
            let later = start.freed_later.get(pfn as usize).is_some_and(|l| *l);
            if !later && movable(pfn) && take(pfn, &mut all) {
                left -= 1;
            }
        }
    }
    Ok(all)
}

/// The page flags read last before a time of the trace, or those that are read with the state at it.
fn flags_at(rec: &Recording, time: u64, offset: i64) -> Result<Option<PageFlags>> {
    let read = |s: &&Snapshot| {
        let file = s.files.iter().find(|f| f.name == kpageflags::NAME)?;
        Some(file.time?.0.saturating_add_signed(-offset))
    };
    let before = |s: &&Snapshot| read(s).is_some_and(|t| t <= time);
    let last = rec.snapshots.iter().filter(before).max_by_key(read);
    Ok(last.map(PageFlags::of).transpose()?.flatten())
}
