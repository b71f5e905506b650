//! A start from what every host shows.
//!
//! The anchor, the first snapshot taken while the trace ran, says how many blocks of each order were
//! free, how many pages each CPU held back, and how many pageblocks there were of each type. The
//! trace says where: a frame first seen allocated was free at the start, one first seen freed was in
//! use. Walking the trace back from the anchor gives the number of free pages at its start. What
//! neither says is chosen so that the blocks add up: frames that were never touched complete the
//! largest blocks that the anchor shows.
//!
//! With page flags each frame at the anchor is known. The replay then begins there; the trace before
//! it says who freed what still waits on a per-CPU list, and after it what else waited.
//!
//! `spec: 7.6, 9`

use super::anchor::Anchor;
use super::arrange::{FrameState, ZoneFrames, coalesce};
use super::evidence::{Allocation, BeforeAnchor, Evidence};
use super::list_order::ListOrder;
use super::percpu::{Sources, ZonePcp, waiting};
use super::refills::left_over;
use super::state::{Frame, SetStart, Start};
use super::touched::TouchedFrames;
use super::used_up::UsedUp;
use super::zones::highest_frame;
use crate::error::Result;
use crate::replay::causes::Causes;
use unfrag_eras::MigrateType;

/// The state at the beginning of `causes`. `held` is how many pages each CPU holds back of each
/// zone (`[zone][cpu]`). What neither anchor nor trace tells is whether the pages of kernel requests
/// are the first to have waited there (`kernel_first`), or movable ones; that start is right from
/// which the replay comes closest to the anchor.
///
/// # Errors
/// If the zones are beyond what can be replayed.
pub fn counts(
    anchor: &Anchor,
    causes: &Causes,
    evidence: &Evidence,
    held: &[Vec<u64>],
    kernel_first: bool,
) -> Result<Start> {
    let geometry = anchor.geometry;
    let frames = highest_frame(&anchor.zones, geometry)?;
    let mut state = vec![Frame::None; frames as usize];
    let mut start = Start {
        zones: anchor.zones.clone(),
        geometry,
        cpus: anchor.cpus.clone(),
        time: match anchor.before {
            Some(_) => anchor.time,
            None => causes.ops.time(0)?.unwrap_or(0),
        },
        free: vec![],
        order_shown: None,
        sets: vec![],
        block_types: vec![],
        holes: vec![],
        compact: vec![],
        skipped: vec![],
        freed_later: vec![],
        frames: vec![],
    };
    let mut order_shown = ListOrder::default();
    let touched = TouchedFrames::before(anchor.upto(causes)?, causes)?;
    let nothing = BeforeAnchor::default();
    let before = anchor.before.as_ref().unwrap_or(&nothing);
    for (i, z) in anchor.zones.iter().enumerate() {
        let lo = z.config.start.0 as u32;
        let hi = lo + z.config.spanned as u32;
        let len = (hi - lo) as usize;
        let flags = anchor.flags.as_ref();
        let takers = evidence.takers(lo, len);
        let used_up = UsedUp::of(lo, &takers, &causes.first, geometry);
        let sources = Sources {
            causes,
            evidence,
            pcp_trace: anchor.pcp_trace.as_ref(),
            flags,
            before,
            kernel_first,
            used_up: &used_up,
            takers: &takers,
        };
        let waiting = waiting(lo, len, &held[i], &sources);
        let mut zone_frames = ZoneFrames::new(
            lo,
            &waiting.frames,
            &causes.first,
            flags,
            before,
            anchor.pageblocks[i],
            geometry,
        );
        let types = zone_frames.block_types(anchor.blocks[i], &sources);
        // Types of pageblocks are guessed, and page flags are not: with flags, blocks are not told apart by type.
        let shown = match anchor.listed[i] {
            Some(by_type) if flags.is_none() => by_type.to_vec(),
            _ => vec![anchor.free[i]],
        };
        // The frames are arranged as at the anchor; then the trace is undone, back to the start.
        let at_start = zone_frames.states.clone();
        touched.apply(&mut zone_frames);
        zone_frames.choose(anchor.free_pages(i, causes)?, &shown, &types, &used_up);
        let turn = |p: u32| takers[(p - lo) as usize].map_or(usize::MAX, |t| t.turn);
        let beyond = zone_frames.beyond(&shown, &types, &takers);
        touched.undo(&mut zone_frames, &at_start);
        let movable = movable_first(lo, hi, evidence);
        let pfn = |k: usize| u64::from(lo) + k as u64;
        for (k, f) in state[lo as usize..hi as usize].iter_mut().enumerate() {
            *f = match zone_frames.states[k] {
                FrameState::Absent => Frame::None,
                states if states.is_free() => Frame::Free,
                _ if movable[k] || flags.is_some_and(|f| f.is_movable(pfn(k))) => Frame::Movable,
                _ => Frame::Pinned,
            };
        }
        let sets = ZonePcp {
            zone: i,
            zone_frames: &zone_frames,
            beyond: &beyond,
            touched: &touched,
            before,
            pcp_trace: anchor.pcp_trace.as_ref(),
            types: &types,
            takers: &takers,
            used_up: &used_up,
        };
        let mut sets = sets.fill(waiting, &anchor.sets[i]);
        let mut on_lists: Vec<bool> = zone_frames.states.iter().map(|k| k.is_free()).collect();
        for p in sets.iter().flat_map(SetStart::frames) {
            on_lists[(p - lo) as usize] = false;
        }
        // Lists give from their head: what was taken first stood there.
        let in_turn = |on_lists: &[bool]| {
            let mut free = coalesce(lo, on_lists, &types);
            free.sort_by_cached_key(|b| (b.pfn..b.pfn + (1 << b.order)).map(turn).min());
            free
        };
        let free = in_turn(&on_lists);
        for mt in [
            MigrateType::Unmovable,
            MigrateType::Movable,
            MigrateType::Reclaimable,
        ] {
            let batch = z.sets.first().map_or(0, |s| s.batch);
            let taker = |p: u32| takers[(p - lo) as usize];
            let Some((cpu, pages)) = left_over(&free, mt, batch, taker) else {
                continue;
            };
            if let Some(set) = sets.iter_mut().find(|s| s.cpu == cpu) {
                for p in &pages {
                    on_lists[(p - lo) as usize] = false;
                }
                order_shown.refilled_pages += pages.len() as u64;
                set.append(mt, pages);
            }
        }
        start.sets.extend(sets);
        let free = in_turn(&on_lists);
        order_shown.add(free.iter().map(|b| (b.pfn, b.order)), |p| {
            turn(p) != usize::MAX
        });
        start.free.extend(free);
        start.holes.extend(zone_frames.holes());
        start.block_types.extend(types.all);
    }
    start.order_shown = Some(order_shown);
    start.frames = state;
    Ok(start)
}

/// Frames in use at the start that a movable page followed in the trace: most likely movable
/// themselves.
fn movable_first(lo: u32, hi: u32, evidence: &Evidence) -> Vec<bool> {
    let mut movable = vec![false; (hi - lo) as usize];
    let mut seen = vec![false; (hi - lo) as usize];
    let inside = |o: &&Allocation| (lo..hi).contains(&o.block.pfn);
    for first in evidence.firsts.iter().filter(inside) {
        let k = (first.block.pfn - lo) as usize;
        if !std::mem::replace(&mut seen[k], true) {
            movable[k] = first.gfp.mobility() == Some(MigrateType::Movable);
        }
    }
    movable
}
