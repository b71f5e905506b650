//! A start from what any host shows.
//!
//! The anchor, the first snapshot taken while the trace ran, says how many blocks of each order were
//! free, how many pages each CPU held back, and how many pageblocks there were of each type. The
//! trace says where: a frame first seen allocated was free at the start, one first seen freed was in
//! use. Walking the trace back from the anchor gives the number of free pages at its start. What
//! neither says is chosen so that the blocks add up: frames that were never touched complete the
//! largest blocks that the anchor shows. `spec: linux-6.1 9`

use super::{Frame, FreeBlock, SetStart, Start, ZoneFacts, highest_frame, zone_facts};
use crate::cause::{Causes, Do, FIRST_ALLOC, FIRST_FREE, Op};
use unfrag::{Gfp, MigrateType};
use unfrag_linux::procfs::buddyinfo::BuddyInfo;
use unfrag_linux::procfs::pagetypeinfo::PageTypeInfo;
use unfrag_linux::recording::Snapshot;
use unfrag_linux::{Error, Result};

const ORDERS: usize = 11;
/// Pages of a pageblock.
const BLOCK: u32 = 512;

/// What the anchor shows, and what is assumed of the per-CPU lists at the start.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// Zones as recorded.
    pub zones: Vec<ZoneFacts>,
    /// Free blocks of each order, by zone.
    pub free: Vec<[u64; ORDERS]>,
    /// Pageblocks that are unmovable and reclaimable, by zone; `None` without pagetypeinfo.
    pub blocks: Vec<Option<[u64; 2]>>,
    /// Time of buddyinfo and of zoneinfo in nanoseconds of the trace clock.
    pub time: u64,
    /// CPUs.
    pub cpus: usize,
}

impl Anchor {
    /// Reads a snapshot. `offset` is what to take from its time to get the trace's.
    ///
    /// # Errors
    /// If it lacks buddyinfo or zoneinfo.
    pub fn read(snap: &Snapshot, offset: i64) -> Result<Anchor> {
        let zones = zone_facts(snap)?;
        let text = snap.file("buddyinfo").ok_or_else(|| {
            Error::malformed(format!("snapshot `{}` has no buddyinfo", snap.name))
        })?;
        let info = BuddyInfo::parse(text)?;
        let types = snap.file("pagetypeinfo").map(PageTypeInfo::parse).transpose()?;
        let mut free = vec![];
        let mut blocks = vec![];
        for z in &zones {
            let (node, name) = (u32::from(z.config.node), z.config.kind.name());
            let row = info.zone(node, name).ok_or_else(|| {
                Error::malformed(format!("buddyinfo of `{}` lacks zone {name}", snap.name))
            })?;
            let mut n = [0; ORDERS];
            for (to, from) in n.iter_mut().zip(&row.free) {
                *to = *from;
            }
            free.push(n);
            let of = |t: &str| types.as_ref()?.blocks.get(node, name, t);
            blocks.push(of("Unmovable").zip(of("Reclaimable")).map(|(u, r)| [u, r]));
        }
        let cpus = zones.iter().map(|z| z.sets.len()).max().unwrap_or(1).max(1);
        let time = snap.time_of("buddyinfo").unwrap_or(0).saturating_add_signed(-offset);
        Ok(Anchor { zones, free, blocks, time, cpus })
    }
}

/// The state at the beginning of `causes`. `held` is how many pages each CPU holds back of each
/// zone (`[zone][cpu]`).
///
/// # Errors
/// If the zones are beyond what can be replayed.
pub fn counts(anchor: &Anchor, causes: &Causes, held: &[Vec<u64>]) -> Result<Start> {
    let frames = highest_frame(&anchor.zones)?;
    let upto = causes.ops.partition_point(|o| o.time < anchor.time);
    let before = &causes.ops[..upto];
    let mut state = vec![Frame::None; frames as usize];
    let mut start = Start {
        zones: anchor.zones.clone(),
        cpus: anchor.cpus,
        time: causes.ops.first().map_or(0, |o| o.time),
        free: vec![],
        sets: vec![],
        block_types: vec![],
        freed_later: vec![],
        frames: vec![],
    };
    for (i, z) in anchor.zones.iter().enumerate() {
        let lo = z.config.start.0 as u32;
        let hi = lo + z.config.spanned as u32;
        let inside = |p: u32| (lo..hi).contains(&p);
        let net: i64 = before.iter().filter(|o| inside(place(o, causes))).map(net_taken).sum();
        let shown: u64 = anchor.free[i].iter().enumerate().map(|(o, n)| n << o).sum();
        let recorded: u64 = z.sets.iter().map(|s| s.0).sum();
        let total = (shown + recorded) as i64 + net;
        let touched = &mut state[lo as usize..hi as usize];
        let free = choose(lo, touched.len() as u32, &causes.first, total, &anchor.free[i]);
        let types = block_types(lo, hi, anchor.blocks[i], causes);
        let movable = movable_first(lo, hi, causes);
        for (k, f) in touched.iter_mut().enumerate() {
            *f = match free[k] {
                true => Frame::Free,
                false if movable[k] => Frame::Movable,
                false => Frame::Pinned,
            };
        }
        start.sets.extend(sets(i, lo, hi, causes, &free, &types, &held[i]));
        let taken: Vec<u32> = start
            .sets
            .iter()
            .filter(|s| s.zone == i)
            .flat_map(|s| s.lists.iter().flat_map(|l| l.1.iter().map(|b| b.pfn)))
            .collect();
        let mut on_lists = free;
        for p in taken {
            on_lists[(p - lo) as usize] = false;
        }
        start.free.extend(coalesce(lo, &on_lists, &types));
        start.block_types.extend(types);
    }
    start.frames = state;
    Ok(start)
}

/// Pages that an operation takes from the free ones.
fn net_taken(op: &Op) -> i64 {
    match op.act {
        Do::Alloc => 1 << op.order,
        Do::Free | Do::FreeGiven => -(1 << op.order),
        Do::Stack => 4,
        _ => 0,
    }
}

/// A frame that an operation is about.
fn place(op: &Op, causes: &Causes) -> u32 {
    match op.act {
        Do::Stack => causes.stacks[op.pfn as usize][0],
        _ => op.pfn,
    }
}

/// Which frames of a zone are free: those first seen allocated, and as many of the untouched ones as
/// are missing, in the places where they make the blocks that the anchor shows.
fn choose(lo: u32, len: u32, first: &[u8], total: i64, shown: &[u64; ORDERS]) -> Vec<bool> {
    let at = |k: u32| first[(lo + k) as usize];
    let mut free: Vec<bool> = (0..len).map(|k| at(k) == FIRST_ALLOC).collect();
    let mut missing = total - free.iter().filter(|f| **f).count() as i64;
    let mut covered = vec![false; len as usize];
    for order in (0..ORDERS as u32).rev() {
        let size = 1u32 << order;
        let mut have = 0;
        let mut open: Vec<(u32, u32)> = vec![];
        let mut k = lo.next_multiple_of(size) - lo;
        while k + size <= len {
            let range = k as usize..(k + size) as usize;
            if !covered[k as usize] && range.clone().all(|i| at(i as u32) != FIRST_FREE) {
                match free[range].iter().filter(|f| !**f).count() as u32 {
                    0 => {
                        have += 1;
                        covered[k as usize..(k + size) as usize].fill(true);
                    }
                    unknown => open.push((unknown, k)),
                }
            }
            k += size;
        }
        // Blocks that need the fewest untouched frames first; high addresses first among equals, for
        // the kernel takes early memory from below.
        open.sort_by_key(|&(unknown, k)| (unknown, u32::MAX - k));
        for (unknown, k) in open {
            if have >= shown[order as usize] || missing <= 0 {
                break;
            }
            if i64::from(unknown) > missing {
                continue;
            }
            missing -= i64::from(unknown);
            have += 1;
            let range = k as usize..(k + size) as usize;
            free[range.clone()].fill(true);
            covered[range].fill(true);
        }
    }
    // What is left lies anywhere untouched.
    for k in (0..len).rev() {
        if missing > 0 && !free[k as usize] && at(k) == 0 {
            free[k as usize] = true;
            missing -= 1;
        }
    }
    free
}

/// Types of the pageblocks that are not movable: as many as the anchor shows, where the trace shows
/// such allocations, and from low addresses up.
fn block_types(lo: u32, hi: u32, blocks: Option<[u64; 2]>, causes: &Causes) -> Vec<(u32, MigrateType)> {
    let first = lo / BLOCK;
    let n = (hi.div_ceil(BLOCK) - first) as usize;
    let mut votes = vec![[0u32; 3]; n];
    for op in causes.ops.iter().filter(|o| o.act == Do::Alloc && (lo..hi).contains(&o.pfn)) {
        if causes.first[op.pfn as usize] == FIRST_ALLOC
            && let Some(mt) = Gfp::from_bits_retain(op.other).mobility()
            && mt.is_ordinary()
        {
            votes[(op.pfn / BLOCK - first) as usize][mt as usize] += 1 << op.order;
        }
    }
    let mut types = vec![MigrateType::Movable; n];
    let [unmovable, reclaimable] = blocks.unwrap_or([n as u64, 0]);
    for (mt, wanted) in
        [(MigrateType::Reclaimable, reclaimable), (MigrateType::Unmovable, unmovable)]
    {
        let mut order: Vec<usize> = (0..n).filter(|&b| types[b] == MigrateType::Movable).collect();
        // Most votes of the own kind first, then those without movable ones from below.
        order.sort_by_key(|&b| {
            let v = votes[b];
            let (own, movable) = (v[mt as usize], v[MigrateType::Movable as usize]);
            (std::cmp::Reverse(u32::from(own > movable) * own), movable, b)
        });
        for b in order.into_iter().take(wanted as usize) {
            types[b] = mt;
        }
    }
    types.into_iter().enumerate().map(|(b, mt)| ((first + b as u32) * BLOCK, mt)).collect()
}

/// Frames in use at the start that a movable page followed in the trace: most likely movable
/// themselves.
fn movable_first(lo: u32, hi: u32, causes: &Causes) -> Vec<bool> {
    let mut movable = vec![false; (hi - lo) as usize];
    let mut seen = vec![false; (hi - lo) as usize];
    for op in causes.ops.iter().filter(|o| o.act == Do::Alloc && (lo..hi).contains(&o.pfn)) {
        let k = (op.pfn - lo) as usize;
        if !std::mem::replace(&mut seen[k], true) {
            movable[k] = Gfp::from_bits_retain(op.other).mobility() == Some(MigrateType::Movable);
        }
    }
    movable
}

/// Per-CPU lists: the pages that each CPU allocated first had been waiting there.
fn sets(
    zone: usize,
    lo: u32,
    hi: u32,
    causes: &Causes,
    free: &[bool],
    types: &[(u32, MigrateType)],
    held: &[u64],
) -> Vec<SetStart> {
    let mut taken = vec![false; (hi - lo) as usize];
    let mut lists = vec![vec![vec![]; 3]; held.len()];
    let mut left: Vec<u64> = held.to_vec();
    for op in &causes.ops {
        let cpu = usize::from(op.cpu);
        if left.iter().all(|&n| n == 0) {
            break;
        }
        if op.act != Do::Alloc || op.order != 0 || !(lo..hi).contains(&op.pfn) {
            continue;
        }
        let k = (op.pfn - lo) as usize;
        let Some(mt) = Gfp::from_bits_retain(op.other).mobility() else { continue };
        if left.get(cpu).is_none_or(|&n| n == 0)
            || causes.first[op.pfn as usize] != FIRST_ALLOC
            || !free[k]
            || taken[k]
        {
            continue;
        }
        taken[k] = true;
        left[cpu] -= 1;
        let own = types[(op.pfn / BLOCK - types[0].0 / BLOCK) as usize].1;
        lists[cpu][mt as usize].push(FreeBlock { pfn: op.pfn, order: 0, mt: own });
    }
    lists
        .into_iter()
        .enumerate()
        .map(|(cpu, lists)| SetStart {
            zone,
            cpu,
            tuning: None,
            lists: lists.into_iter().enumerate().filter(|(_, l)| !l.is_empty()).collect(),
        })
        .collect()
}

/// The largest aligned blocks of the free frames, ascending.
fn coalesce(lo: u32, free: &[bool], types: &[(u32, MigrateType)]) -> Vec<FreeBlock> {
    let mut out = vec![];
    let mut k = 0;
    while k < free.len() {
        if !free[k] {
            k += 1;
            continue;
        }
        let pfn = lo + k as u32;
        let mut order = 0u8;
        while usize::from(order) + 1 < ORDERS {
            let size = 1usize << (order + 1);
            let fits = pfn as usize % size == 0
                && k + size <= free.len()
                && free[k..k + size].iter().all(|f| *f);
            if !fits {
                break;
            }
            order += 1;
        }
        let mt = types[(pfn / BLOCK - types[0].0 / BLOCK) as usize].1;
        out.push(FreeBlock { pfn, order, mt });
        k += 1 << order;
    }
    out
}
