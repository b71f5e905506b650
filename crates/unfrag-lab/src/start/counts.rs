//! A start from what any host shows.
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
//! `spec: linux-6.1 7.6, 9`

use super::arrange::{Ground, Known, ORDERS, coalesce};
use super::evidence::Evidence;
use super::evidence::{Before, Touched};
use super::percpu::{Sets, Sources, waiting};
use super::waited::Waited;
use super::{Frame, SetStart, Start, ZoneFacts, highest_frame, zone_facts};
use crate::cause::{Causes, Op};
use crate::replay::{ReplayHost, Sim};
use unfrag::{CpuId, Gfp, Manager, MigrateType, Order, Rules, Sysctl, ZoneId};
use unfrag_linux::kpageflags::PageFlags;
use unfrag_linux::procfs::buddyinfo::BuddyInfo;
use unfrag_linux::procfs::pagetypeinfo::PageTypeInfo;
use unfrag_linux::recording::Snapshot;
use unfrag_linux::{Error, Result};

/// What the anchor shows, and what is assumed of the per-CPU lists at the start.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// Zones as recorded.
    pub zones: Vec<ZoneFacts>,
    /// Free blocks of each order, by zone.
    pub free: Vec<[u64; ORDERS]>,
    /// The same by type: unmovable, movable and reclaimable; `None` without pagetypeinfo.
    pub listed: Vec<Option<[[u64; ORDERS]; 3]>>,
    /// Pageblocks that are unmovable and reclaimable, by zone; `None` without pagetypeinfo.
    pub blocks: Vec<Option<[u64; 2]>>,
    /// Pageblocks of any type, by zone; `None` without pagetypeinfo.
    pub pageblocks: Vec<Option<u64>>,
    /// Flags of all frames, where they were read with the snapshot.
    pub flags: Option<PageFlags>,
    /// Time of buddyinfo in nanoseconds of the trace clock.
    pub time: u64,
    /// When vmstat, and zoneinfo next to it, were read, by vmstat's own counter; `None` if it does
    /// not say.
    pub dated: Option<u64>,
    /// CPUs.
    pub cpus: usize,
    /// What the trace up to the anchor did, where the replay begins at the anchor.
    pub before: Option<Before>,
    /// What waited on the per-CPU lists then, where the trace shows it.
    pub waited: Option<Waited>,
}

impl Anchor {
    /// Reads a snapshot; `time` is when its buddyinfo was read, in nanoseconds of the trace's clock.
    ///
    /// # Errors
    /// If it lacks buddyinfo or zoneinfo.
    pub fn read(snap: &Snapshot, time: u64) -> Result<Anchor> {
        let zones = zone_facts(snap)?;
        let text = snap.file("buddyinfo").ok_or_else(|| {
            Error::malformed(format!("snapshot `{}` has no buddyinfo", snap.name))
        })?;
        let info = BuddyInfo::parse(text)?;
        let types = snap
            .file("pagetypeinfo")
            .map(PageTypeInfo::parse)
            .transpose()?;
        let mut free = vec![];
        let mut blocks = vec![];
        let mut pageblocks = vec![];
        let mut listed = vec![];
        for z in &zones {
            let (node, name) = (u32::from(z.config.node.0), z.config.kind.name());
            let row = info.zone(node, name).ok_or_else(|| {
                Error::malformed(format!("buddyinfo of `{}` lacks zone {name}", snap.name))
            })?;
            let mut n = [0; ORDERS];
            for (to, from) in n.iter_mut().zip(&row.free) {
                *to = *from;
            }
            free.push(n);
            let on = |t: &str| {
                let mut n = [0; ORDERS];
                let row = types.as_ref()?.row(node, name, t)?;
                for (to, from) in n.iter_mut().zip(&row.counts) {
                    *to = from.blocks;
                }
                Some(n)
            };
            let all = on("Unmovable").zip(on("Movable")).zip(on("Reclaimable"));
            listed.push(all.map(|((u, m), r)| [u, m, r]));
            let of = |t: &str| types.as_ref()?.blocks.get(node, name, t);
            blocks.push(of("Unmovable").zip(of("Reclaimable")).map(|(u, r)| [u, r]));
            pageblocks.push(types.as_ref().and_then(|t| t.blocks.of_zone(node, name)));
        }
        let cpus = zones.iter().map(|z| z.sets.len()).max().unwrap_or(1).max(1);
        Ok(Anchor {
            zones,
            free,
            listed,
            blocks,
            pageblocks,
            flags: snap.file("kpageflags").map(PageFlags::parse).transpose()?,
            time,
            cpus,
            dated: None,
            before: None,
            waited: None,
        })
    }

    /// How far the buddy lists of a model are from those shown, in pages, by order and by type where
    /// the anchor tells types apart.
    pub fn distance(&self, model: &Manager<'_, ReplayHost>) -> u64 {
        const TYPES: [MigrateType; 3] = [
            MigrateType::Unmovable,
            MigrateType::Movable,
            MigrateType::Reclaimable,
        ];
        let mut far = 0;
        for (zone, shown) in self.free.iter().enumerate() {
            for (order, &all) in shown.iter().enumerate() {
                let lists = model.inspect();
                let on = |mt| lists.free_list_len(ZoneId(zone as u8), Order(order as u8), mt);
                let apart: u64 = match &self.listed[zone] {
                    Some(rows) => {
                        let rows = TYPES.iter().zip(rows);
                        rows.map(|(&t, row)| on(t).abs_diff(row[order])).sum()
                    }
                    None => TYPES.map(on).iter().sum::<u64>().abs_diff(all),
                };
                far += apart << order;
            }
        }
        far
    }

    /// Operations before the anchor.
    pub fn upto(&self, causes: &Causes) -> usize {
        causes.ops.partition_point(|o| o.time < self.time)
    }

    /// Pages of a zone that were free at the anchor, those on per-CPU lists among them.
    fn free_pages(&self, zone: usize, causes: &Causes) -> i64 {
        let z = &self.zones[zone];
        let held: u64 = z.sets.iter().map(|s| s.0).sum();
        let Some(dated) = self.dated else {
            return (pages(&self.free[zone]) + held) as i64;
        };
        // zoneinfo has free pages and per-CPU lists of one moment, a little later than buddyinfo.
        let lo = z.config.start.0 as u32;
        let zone = lo..lo + z.config.spanned as u32;
        let until = causes.ops.partition_point(|o| o.time < dated);
        let between = causes.ops[..until].iter().skip(self.upto(causes));
        let inside = between.filter(|o| zone.contains(&o.frame(causes)));
        (z.free + held) as i64 + inside.map(Op::pages_taken).sum::<i64>()
    }
}

/// The state at the beginning of `causes`. `held` is how many pages each CPU holds back of each
/// zone (`[zone][cpu]`). What neither anchor nor trace tells is whether the pages of kernel requests
/// are the first to have waited there (`kernel_first`), or movable ones; that start is right from
/// which the replay comes closest to the anchor.
///
/// # Errors
/// If the zones are beyond what can be replayed.
fn counts(
    anchor: &Anchor,
    causes: &Causes,
    evidence: &Evidence,
    held: &[Vec<u64>],
    kernel_first: bool,
) -> Result<Start> {
    let frames = highest_frame(&anchor.zones)?;
    let mut state = vec![Frame::None; frames as usize];
    let mut start = Start {
        zones: anchor.zones.clone(),
        cpus: anchor.cpus,
        time: match anchor.before {
            Some(_) => anchor.time,
            None => causes.ops.first().map_or(0, |o| o.time),
        },
        free: vec![],
        sets: vec![],
        block_types: vec![],
        freed_later: vec![],
        frames: vec![],
    };
    let touched = Touched::before(&causes.ops[..anchor.upto(causes)], causes);
    let nothing = Before::default();
    let before = anchor.before.as_ref().unwrap_or(&nothing);
    for (i, z) in anchor.zones.iter().enumerate() {
        let lo = z.config.start.0 as u32;
        let hi = lo + z.config.spanned as u32;
        let len = (hi - lo) as usize;
        let flags = anchor.flags.as_ref();
        let sources = Sources {
            causes,
            evidence,
            waited: anchor.waited.as_ref(),
            flags,
            before,
            kernel_first,
        };
        let waiting = waiting(lo, len, &held[i], &sources);
        let mut ground = Ground::new(
            lo,
            &waiting.frames,
            &causes.first,
            flags,
            before,
            anchor.pageblocks[i],
        );
        let types = ground.block_types(anchor.blocks[i], &sources);
        // Which pageblock is of which type is a guess; flags, which are none, should not yield to it.
        let shown = match anchor.listed[i] {
            Some(by_type) if flags.is_none() => by_type.to_vec(),
            _ => vec![anchor.free[i]],
        };
        // What is arranged is the anchor; the trace leads from there back to the start.
        let at_start = ground.known.clone();
        touched.apply(&mut ground);
        ground.choose(anchor.free_pages(i, causes), &shown, &types);
        let takers = evidence.takers(lo, len);
        let turn = |p: u32| takers[(p - lo) as usize].map_or(usize::MAX, |t| t.0);
        let beyond = ground.beyond(&shown, &types, turn);
        touched.undo(&mut ground, &at_start);
        let movable = movable_first(lo, hi, evidence);
        let pfn = |k: usize| u64::from(lo) + k as u64;
        for (k, f) in state[lo as usize..hi as usize].iter_mut().enumerate() {
            *f = match ground.known[k] {
                Known::Absent => Frame::None,
                known if known.is_free() => Frame::Free,
                _ if movable[k] || flags.is_some_and(|f| f.is_movable(pfn(k))) => Frame::Movable,
                _ => Frame::Pinned,
            };
        }
        let sets = Sets {
            zone: i,
            ground: &ground,
            beyond: &beyond,
            touched: &touched,
            before,
            waited: anchor.waited.as_ref(),
            types: &types,
            takers: &takers,
        };
        let sets = sets.fill(waiting, &z.sets);
        let mut on_lists: Vec<bool> = ground.known.iter().map(|k| k.is_free()).collect();
        for p in sets.iter().flat_map(SetStart::frames) {
            on_lists[(p - lo) as usize] = false;
        }
        start.sets.extend(sets);
        // Lists give from their head: what was taken first stood there.
        let mut free = coalesce(lo, &on_lists, &types);
        free.sort_by_cached_key(|b| (b.pfn..b.pfn + (1 << b.order)).map(turn).min());
        start.free.extend(free);
        start.block_types.extend(types);
    }
    start.frames = state;
    Ok(start)
}

/// Rounds that fit the per-CPU lists of the start to those of the anchor.
const FIT_ROUNDS: usize = 4;

/// The start from which a replay under the recorded kernel's `rules` comes closest to the anchor.
/// The anchor shows how many pages each CPU held back then; at the start it held what leads there.
///
/// # Errors
/// If the zones are beyond what can be replayed.
pub fn fitted(anchor: &Anchor, causes: &Causes, rules: Rules, sysctl: Sysctl) -> Result<Start> {
    let frames = highest_frame(&anchor.zones)?;
    let on = |z: &ZoneFacts, c: usize| z.sets.get(c).map_or(0, |s| s.0);
    let row = |z: &ZoneFacts| (0..anchor.cpus).map(|c| on(z, c)).collect();
    let recorded: Vec<Vec<u64>> = anchor.zones.iter().map(row).collect();
    let before = &causes.ops[..anchor.upto(causes)];
    let evidence = Evidence::gather(causes, anchor.cpus);
    let mut best: Option<(u64, Start)> = None;
    for kernel_first in [false, true] {
        let mut held = recorded.clone();
        let mut fit = u64::MAX;
        for _ in 0..FIT_ROUNDS {
            let start = counts(anchor, causes, &evidence, &held, kernel_first)?;
            let mut memory = vec![0; start.words(rules, sysctl)?];
            let mut sim = Sim::new(start.manager(rules, sysctl, true, &mut memory)?, frames);
            for op in before {
                sim.apply(op, causes);
            }
            let mut far = 0;
            for (z, row) in held.iter_mut().enumerate() {
                for (c, n) in row.iter_mut().enumerate() {
                    let (zone, cpu) = (ZoneId(z as u8), CpuId(c as u32));
                    let now = sim.manager.inspect().set(zone, cpu).count as u64;
                    far += now.abs_diff(recorded[z][c]);
                    *n = (*n + recorded[z][c]).saturating_sub(now);
                }
            }
            let all = far + anchor.distance(&sim.manager);
            if best.as_ref().is_none_or(|b| all < b.0) {
                best = Some((all, start));
            }
            // Where nothing leads to the anchor, nothing can be fitted to it.
            if far == 0 || far >= fit || before.is_empty() {
                break;
            }
            fit = far;
        }
    }
    match best {
        Some((_, start)) => Ok(start),
        None => unreachable!("there is a round"),
    }
}

fn pages(free: &[u64; ORDERS]) -> u64 {
    free.iter().enumerate().map(|(o, n)| n << o).sum()
}

/// Frames in use at the start that a movable page followed in the trace: most likely movable
/// themselves.
fn movable_first(lo: u32, hi: u32, evidence: &Evidence) -> Vec<bool> {
    let mut movable = vec![false; (hi - lo) as usize];
    let mut seen = vec![false; (hi - lo) as usize];
    for op in evidence.firsts.iter().filter(|o| (lo..hi).contains(&o.pfn)) {
        let k = (op.pfn - lo) as usize;
        if !std::mem::replace(&mut seen[k], true) {
            movable[k] = Gfp::from_bits_retain(op.other).mobility() == Some(MigrateType::Movable);
        }
    }
    movable
}
