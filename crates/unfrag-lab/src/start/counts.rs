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
/// Per-CPU lists of orders 0 to 3.
const LISTS: usize = 12;
/// Blocks from this order on are not cut up for the per-CPU lists.
const LARGE: u8 = 9;
/// So many adjacent pages allocated in a row are a refill of a per-CPU list.
const REFILL_ROW: usize = 24;
/// Pages of a pageblock.
const BLOCK: u32 = 512;

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
    /// Time of buddyinfo in nanoseconds of the trace clock.
    pub time: u64,
    /// When vmstat, and zoneinfo next to it, were read, by vmstat's own counter; `None` if it does
    /// not say.
    pub dated: Option<u64>,
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
        let types = snap
            .file("pagetypeinfo")
            .map(PageTypeInfo::parse)
            .transpose()?;
        let mut free = vec![];
        let mut blocks = vec![];
        let mut listed = vec![];
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
        }
        let cpus = zones.iter().map(|z| z.sets.len()).max().unwrap_or(1).max(1);
        let time = snap
            .time_of("buddyinfo")
            .unwrap_or(0)
            .saturating_add_signed(-offset);
        Ok(Anchor {
            zones,
            free,
            listed,
            blocks,
            time,
            cpus,
            dated: None,
        })
    }
}

/// The state at the beginning of `causes`. `held` is how many pages each CPU holds back of each
/// zone (`[zone][cpu]`).
///
/// # Errors
/// If the zones are beyond what can be replayed.
pub fn counts(
    anchor: &Anchor,
    causes: &Causes,
    evidence: &Evidence,
    held: &[Vec<u64>],
) -> Result<Start> {
    let frames = highest_frame(&anchor.zones)?;
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
        let recorded: u64 = z.sets.iter().map(|s| s.0).sum();
        // All free pages at one moment: zoneinfo's where it is dated, or else buddyinfo's.
        let (shown, time) = match anchor.dated {
            Some(time) => (z.free, time),
            None => (pages(&anchor.free[i]), anchor.time),
        };
        let upto = causes.ops.partition_point(|o| o.time < time);
        let before = causes.ops[..upto]
            .iter()
            .filter(|o| inside(place(o, causes)));
        let total = (shown + recorded) as i64 + before.map(net_taken).sum::<i64>();
        let touched = &mut state[lo as usize..hi as usize];
        let waiting = waiting(lo, touched.len(), causes, evidence, &held[i]);
        let free = choose(lo, &waiting.frames, &causes.first, total, &anchor.free[i]);
        let types = block_types(lo, &free, anchor.blocks[i], causes, evidence);
        let movable = movable_first(lo, hi, evidence);
        for (k, f) in touched.iter_mut().enumerate() {
            *f = match free[k] {
                true => Frame::Free,
                false if movable[k] => Frame::Movable,
                false => Frame::Pinned,
            };
        }
        let shown = match anchor.listed[i] {
            Some(by_type) => by_type.to_vec(),
            None => vec![anchor.free[i]],
        };
        start
            .sets
            .extend(sets(i, lo, evidence, &free, &types, waiting, &shown));
        let taken: Vec<u32> = start
            .sets
            .iter()
            .filter(|s| s.zone == i)
            .flat_map(|s| s.lists.iter().flat_map(|l| &l.1))
            .flat_map(|b| b.pfn..b.pfn + (1 << b.order))
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

/// What the trace says of the start, gathered once.
pub struct Evidence {
    /// Allocations that touched a frame for the first time, in turn.
    firsts: Vec<Op>,
    /// For each CPU, by list: what it allocated before the list was first refilled.
    before_refill: Vec<Vec<Vec<u32>>>,
}

impl Evidence {
    /// Walks the operations of a host with so many CPUs.
    pub fn gather(causes: &Causes, cpus: usize) -> Evidence {
        let mut seen = vec![false; causes.first.len()];
        let mut firsts = vec![];
        let mut lists = vec![vec![vec![]; LISTS]; cpus];
        let mut open = cpus * LISTS;
        let mut rows = vec![[0usize; LISTS]; cpus];
        for op in causes.ops.iter().filter(|o| o.act == Do::Alloc) {
            let mut new = false;
            for p in op.pfn..op.pfn + (1 << op.order) {
                new |= !std::mem::replace(&mut seen[p as usize], true);
            }
            if new {
                firsts.push(*op);
            }
            let cpu = usize::from(op.cpu);
            if open == 0 || op.order > 3 || cpu >= cpus {
                continue;
            }
            let mt = Gfp::from_bits_retain(op.other)
                .mobility()
                .filter(|t| t.is_ordinary());
            let Some(mt) = mt else { continue };
            let list = usize::from(op.order) * 3 + mt as usize;
            let (taken, row) = (&mut lists[cpu][list], &mut rows[cpu][list]);
            if *row == usize::MAX {
                continue;
            }
            // A refill shows as a row of adjacent blocks.
            let adjacent = taken.last() == Some(&op.pfn.wrapping_sub(1 << op.order));
            *row = if adjacent { *row + 1 } else { 1 };
            taken.push(op.pfn);
            // Kernel requests mix with what leaves no event, which breaks rows up.
            let long = if mt == MigrateType::Movable {
                REFILL_ROW
            } else {
                REFILL_ROW / 3
            };
            let long = (long >> op.order).max(3);
            if *row >= long {
                taken.truncate(taken.len() - long);
                *row = usize::MAX;
                open -= 1;
            }
        }
        Evidence {
            firsts,
            before_refill: lists,
        }
    }
}

fn pages(free: &[u64; ORDERS]) -> u64 {
    free.iter().enumerate().map(|(o, n)| n << o).sum()
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
fn choose(lo: u32, waiting: &[bool], first: &[u8], total: i64, shown: &[u64; ORDERS]) -> Vec<bool> {
    let len = waiting.len() as u32;
    let at = |k: u32| first[(lo + k) as usize];
    let mut free: Vec<bool> = (0..len).map(|k| at(k) == FIRST_ALLOC).collect();
    let mut missing = total - free.iter().filter(|f| **f).count() as i64;
    let mut covered = vec![false; len as usize];
    for order in (0..ORDERS as u32).rev() {
        let size = 1u32 << order;
        let mut have = 0;
        let mut open: Vec<(bool, u32, u32)> = vec![];
        let mut k = lo.next_multiple_of(size) - lo;
        while k + size <= len {
            let range = k as usize..(k + size) as usize;
            if !covered[k as usize]
                && range
                    .clone()
                    .all(|i| at(i as u32) != FIRST_FREE && !waiting[i])
            {
                match free[range.clone()].iter().filter(|f| !**f).count() as u32 {
                    0 => {
                        have += 1;
                        covered[range].fill(true);
                    }
                    unknown => open.push((is_scattered(&free[range]), unknown, k)),
                }
            }
            k += size;
        }
        // Blocks that need the fewest untouched frames first; high addresses first among equals, for
        // the kernel takes early memory from below.
        open.sort_by_key(|&(scattered, unknown, k)| (scattered, unknown, u32::MAX - k));
        for (_, unknown, k) in open {
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

/// Whether the frames that are known to be free lie here and there. A whole free block is taken from
/// its beginning on, so that what was touched of it has few holes; scattered frames had been waiting
/// on a per-CPU list.
fn is_scattered(free: &[bool]) -> bool {
    let touched = free.iter().filter(|f| **f).count();
    let reach = free.iter().rposition(|f| *f).map_or(0, |last| last + 1);
    (reach - touched) * 8 > touched
}

/// Types of the pageblocks: as many of each as the anchor shows. Unmovable and reclaimable pageblocks
/// are those that served such requests before the first fallback, and beyond them the fullest ones,
/// from low addresses up: were they not full, no fallback would be needed.
fn block_types(
    lo: u32,
    free: &[bool],
    blocks: Option<[u64; 2]>,
    causes: &Causes,
    evidence: &Evidence,
) -> Vec<(u32, MigrateType)> {
    let hi = lo + free.len() as u32;
    let first = lo / BLOCK;
    let n = (hi.div_ceil(BLOCK) - first) as usize;
    let until = causes.extfrag.first().map_or(u64::MAX, |e| e.0);
    let mut votes = vec![[0u32; 3]; n];
    let early = evidence.firsts.iter().take_while(|o| o.time < until);
    for op in early.filter(|o| o.act == Do::Alloc && (lo..hi).contains(&o.pfn)) {
        if causes.first[op.pfn as usize] == FIRST_ALLOC
            && let Some(mt) = Gfp::from_bits_retain(op.other).mobility()
            && mt.is_ordinary()
        {
            votes[(op.pfn / BLOCK - first) as usize][mt as usize] += 1 << op.order;
        }
    }
    let mut empty = vec![0u32; n];
    for (k, _) in free.iter().enumerate().filter(|(_, f)| **f) {
        empty[((lo + k as u32) / BLOCK - first) as usize] += 1;
    }
    let mut types = vec![MigrateType::Movable; n];
    let [unmovable, reclaimable] = blocks.unwrap_or([n as u64, 0]);
    for (mt, wanted) in [
        (MigrateType::Reclaimable, reclaimable),
        (MigrateType::Unmovable, unmovable),
    ] {
        let mut order: Vec<usize> = (0..n)
            .filter(|&b| types[b] == MigrateType::Movable)
            .collect();
        order.sort_by_key(|&b| {
            let v = votes[b];
            let own = v[mt as usize];
            let served = own > v.iter().sum::<u32>() / 2;
            (
                !served,
                std::cmp::Reverse(if served { own } else { 0 }),
                empty[b],
                b,
            )
        });
        for b in order.into_iter().take(wanted as usize) {
            types[b] = mt;
        }
    }
    types
        .into_iter()
        .enumerate()
        .map(|(b, mt)| ((first + b as u32) * BLOCK, mt))
        .collect()
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

/// Per-CPU lists: what is free in small pieces that the anchor's buddy lists do not show had been
/// held back by the CPU that allocated it first; if that is not enough, other small pieces.
fn sets(
    zone: usize,
    lo: u32,
    evidence: &Evidence,
    free: &[bool],
    types: &[(u32, MigrateType)],
    waiting: Waiting,
    shown: &[[u64; ORDERS]],
) -> Vec<SetStart> {
    let Waiting {
        mut lists,
        mut left,
        ..
    } = waiting;
    let hi = lo + free.len() as u32;
    let mut small = vec![false; free.len()];
    let mut pieces = vec![false; free.len()];
    let mut extra: Vec<[i64; ORDERS]> = shown.iter().map(|n| n.map(|n| n as i64)).collect();
    // By type where the anchor tells them apart.
    let row = |b: &FreeBlock| (b.mt as usize).min(shown.len() - 1);
    let mut blocks = coalesce(lo, free, types);
    blocks.sort_by_key(|b| b.order);
    for b in &blocks {
        extra[row(b)][usize::from(b.order)] -= 1;
    }
    for b in blocks.iter().filter(|b| b.order < LARGE) {
        let range = (b.pfn - lo) as usize..(b.pfn - lo) as usize + (1 << b.order);
        small[range.clone()].fill(true);
        let over = &mut extra[row(b)][usize::from(b.order)];
        if *over < 0 {
            *over += 1;
            pieces[range].fill(true);
        }
    }
    let own = |p: u32| types[(p / BLOCK - types[0].0 / BLOCK) as usize].1;
    for candidates in [&mut pieces, &mut small] {
        for &(pfn, order) in lists.iter().flatten().flatten() {
            let k = (pfn - lo) as usize;
            candidates[k..k + (1 << order)].fill(false);
        }
        for op in evidence.firsts.iter().filter(|o| (lo..hi).contains(&o.pfn)) {
            let cpu = usize::from(op.cpu);
            let Some(mt) = Gfp::from_bits_retain(op.other)
                .mobility()
                .filter(|t| t.is_ordinary())
            else {
                continue;
            };
            for p in op.pfn..op.pfn + (1 << op.order.min(3)) {
                if left.get(cpu).is_some_and(|&n| n > 0)
                    && std::mem::take(&mut candidates[(p - lo) as usize])
                {
                    left[cpu] -= 1;
                    lists[cpu][mt as usize].push((p, 0));
                }
            }
        }
        // Pieces that nobody took while the trace ran wait at the far end.
        for (p, candidate) in (lo..).zip(candidates.iter_mut()) {
            let Some(cpu) = left.iter().position(|&n| n > 0) else {
                break;
            };
            if std::mem::take(candidate) {
                left[cpu] -= 1;
                let mt = if own(p).is_ordinary() {
                    own(p)
                } else {
                    MigrateType::Movable
                };
                lists[cpu][mt as usize].push((p, 0));
            }
        }
    }
    let blocks = |l: Vec<(u32, u8)>| {
        l.into_iter()
            .map(|(pfn, order)| FreeBlock {
                pfn,
                order,
                mt: own(pfn),
            })
            .collect()
    };
    lists
        .into_iter()
        .enumerate()
        .map(|(cpu, lists)| SetStart {
            zone,
            cpu,
            tuning: None,
            lists: lists
                .into_iter()
                .enumerate()
                .filter(|(_, l)| !l.is_empty())
                .map(|(i, l)| (i, blocks(l)))
                .collect(),
        })
        .collect()
}

/// Blocks that wait on per-CPU lists, by CPU and list, and pages that are still to be found for each.
struct Waiting {
    lists: Vec<Vec<Vec<(u32, u8)>>>,
    left: Vec<u64>,
    frames: Vec<bool>,
}

/// What the trace itself says was waiting. Movable lists come first: their refills are plain to see.
fn waiting(lo: u32, len: usize, causes: &Causes, evidence: &Evidence, held: &[u64]) -> Waiting {
    let mut w = Waiting {
        lists: vec![vec![vec![]; 12]; held.len()],
        left: held.to_vec(),
        frames: vec![false; len],
    };
    for (cpu, left) in w.left.iter_mut().enumerate() {
        let mut found = free_before_refill(cpu, lo, lo + len as u32, causes, evidence);
        found.sort_by_key(|(list, _)| (list % 3 != MigrateType::Movable as usize, *list));
        for (list, pfns) in found {
            let order = (list / 3) as u8;
            for pfn in pfns {
                let k = (pfn - lo) as usize;
                let block = k..(k + (1 << order)).min(len);
                let whole =
                    block.len() == 1 << order && w.frames[block.clone()].iter().all(|f| !*f);
                if *left >= 1 << order && whole {
                    *left -= 1 << order;
                    w.frames[block].fill(true);
                    w.lists[cpu][list].push((pfn, order));
                }
            }
        }
    }
    w
}

/// What a CPU allocated from each of its lists before it refilled it for the first time: that had been
/// waiting there, if it was free at the start.
fn free_before_refill(
    cpu: usize,
    lo: u32,
    hi: u32,
    causes: &Causes,
    evidence: &Evidence,
) -> Vec<(usize, Vec<u32>)> {
    let Some(lists) = evidence.before_refill.get(cpu) else {
        return vec![];
    };
    let mut all = vec![];
    for (list, pfns) in lists.iter().enumerate() {
        let mut seen = std::collections::HashSet::new();
        let waited = |p: &u32| {
            (lo..hi).contains(p) && causes.first[*p as usize] == FIRST_ALLOC && seen.insert(*p)
        };
        all.push((list, pfns.iter().copied().filter(waited).collect()));
    }
    all
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
            let fits = (pfn as usize).is_multiple_of(size)
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
