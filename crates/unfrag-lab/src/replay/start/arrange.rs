//! Which frames of a zone were free, where the recording does not say.
//!
//! Some frames are known: one first seen allocated was free at the start, one first seen freed was in
//! use. The others are arranged so that the free blocks add up to what the anchor shows, by order and
//! by type: untouched frames complete the largest blocks first, and each block that is shown as it is
//! has a frame in use in its buddy, or the two would be one.
//!
//! Invariant: a state that is known from the recording does not change.

use super::evidence::{BeforeAnchor, LeftAs, Taker};
use super::shown::ORDERS;
use super::state::FreeBlock;
use super::used_up::UsedUp;
use crate::replay::causes::{FIRST_ALLOC, FIRST_FREE};
use unfrag_eras::{Geometry, MigrateType, Order};
use unfrag_linux::kpageflags::{BUDDY, NOPAGE, PageFlags};

/// What is known of a frame at the start, or was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameState {
    /// Nothing.
    Unknown,
    /// On a buddy list.
    Free,
    /// Free, on a known per-CPU list.
    OnPcp,
    /// Free, on the per-CPU list of an unknown CPU: page flags show it on no buddy list.
    AnyPcp,
    /// Free since a traced free before the anchor, or an untraced one after its flags were read: on a buddy
    /// list, or still on a per-CPU list.
    Freed,
    /// Without page flags: it was on a per-CPU list when they were read, or is the kernel's.
    Unflagged,
    /// In use.
    Used,
    /// In use, though page flags show it on a buddy list: it was allocated without an event soon after. The
    /// anchor still shows the block that it is from.
    TakenUnseen,
    /// Nothing is known. It is assumed to be in use, so that two free blocks do not merge.
    AssumedUsed,
    /// Not managed by the allocator.
    Absent,
}

impl FrameState {
    pub(super) fn is_free(self) -> bool {
        matches!(
            self,
            FrameState::Free | FrameState::OnPcp | FrameState::AnyPcp | FrameState::Freed
        )
    }

    /// Whether the anchor's buddy lists show it.
    fn is_listed(self) -> bool {
        matches!(self, FrameState::Free | FrameState::TakenUnseen)
    }
}

/// A zone's frames: the first one's number, and what is known of each.
pub(super) struct ZoneFrames {
    pub(super) lo: u32,
    pub(super) states: Vec<FrameState>,
    pub(super) geometry: Geometry,
}

/// The type of each pageblock of a zone: first frame and type, ascending without gaps.
pub(super) struct BlockTypes {
    pub(super) geometry: Geometry,
    pub(super) all: Vec<(u32, MigrateType)>,
}

impl BlockTypes {
    /// Type of the pageblock that holds a frame.
    pub(super) fn at(&self, pfn: u32) -> MigrateType {
        let shift = self.geometry.block_order.0;
        self.all[((pfn >> shift) - (self.all[0].0 >> shift)) as usize].1
    }
}

impl ZoneFrames {
    /// What the trace knows, and the page flags of the anchor, if there are any. `before` is what the
    /// trace up to then did, where `first` begins at the anchor. `blocks` is how many pageblocks the
    /// zone has: where that is fewer than it spans, those of which nothing is known are taken to be
    /// absent, from the highest down.
    pub(super) fn new(
        lo: u32,
        held: &[bool],
        first: &[u8],
        flags: Option<&PageFlags>,
        before: &BeforeAnchor,
        blocks: Option<u64>,
        geometry: Geometry,
    ) -> ZoneFrames {
        let flags = |k: usize| Some(flags?.frame(u64::from(lo) + k as u64));
        let of = |(k, held): (usize, &bool)| match (held, first[lo as usize + k], flags(k)) {
            (true, ..) => FrameState::OnPcp,
            _ if before.left(lo + k as u32) == LeftAs::Used => FrameState::Used,
            (.., Some(f))
                if f & BUDDY == 0
                    && let Some(block) = before.freed(lo + k as u32) =>
            {
                match is_cached(block.order, geometry) {
                    true => FrameState::Freed,
                    false => FrameState::Free,
                }
            }
            (false, FIRST_ALLOC, Some(0)) => FrameState::AnyPcp,
            (false, FIRST_ALLOC, Some(f)) if f & BUDDY == 0 => FrameState::Freed,
            (false, FIRST_ALLOC, _) => FrameState::Free,
            (false, FIRST_FREE, Some(f)) if f & BUDDY != 0 => FrameState::TakenUnseen,
            (false, FIRST_FREE, _) => FrameState::Used,
            (false, _, None) => FrameState::Unknown,
            (false, _, Some(0)) => FrameState::Unflagged,
            (false, _, Some(f)) if f & BUDDY != 0 => FrameState::Free,
            (false, _, Some(f)) if f & NOPAGE != 0 => FrameState::Absent,
            (false, ..) => FrameState::Used,
        };
        let states = held.iter().enumerate().map(of).collect();
        let mut zone_frames = ZoneFrames {
            lo,
            states,
            geometry,
        };
        let all = zone_frames.pageblocks();
        let mut absent = (all as u64).saturating_sub(blocks.unwrap_or(u64::MAX));
        for b in (0..all).rev() {
            let range = zone_frames.pageblock(b);
            let untouched = |k: &FrameState| {
                matches!(
                    k,
                    FrameState::Unknown | FrameState::Unflagged | FrameState::Absent
                )
            };
            if absent > 0 && zone_frames.states[range.clone()].iter().all(untouched) {
                zone_frames.states[range].fill(FrameState::Absent);
                absent -= 1;
            }
        }
        zone_frames
    }

    /// Frames in a pageblock.
    pub(super) fn block_frames(&self) -> u32 {
        self.geometry.block_order.frames()
    }

    pub(super) fn pageblocks(&self) -> usize {
        let block = self.block_frames();
        let hi = self.lo + self.states.len() as u32;
        (hi.div_ceil(block) - self.lo / block) as usize
    }

    /// First frames of the pageblocks of which nothing is memory.
    pub(super) fn holes(&self) -> impl Iterator<Item = u32> {
        let is_hole = |b: &usize| {
            let frames = &self.states[self.pageblock(*b)];
            frames.iter().all(|f| *f == FrameState::Absent)
        };
        let first = |b| self.lo + self.pageblock(b).start as u32;
        (0..self.pageblocks()).filter(is_hole).map(first)
    }

    /// Frames of the pageblock with this number, from the zone's first one on.
    pub(super) fn pageblock(&self, b: usize) -> std::ops::Range<usize> {
        let block = self.block_frames();
        let first = (self.lo / block + b as u32) * block;
        let end = (first + block - self.lo) as usize;
        first.saturating_sub(self.lo) as usize..end.min(self.states.len())
    }

    /// Decides which unknown frames were free, so that `total` pages of the zone are. `shown` is how
    /// many blocks of each order the anchor shows, by type or (one row) in all.
    pub(super) fn choose(
        &mut self,
        total: i64,
        shown: &[[u64; ORDERS]],
        types: &BlockTypes,
        used_up: &UsedUp,
    ) {
        let there = |k: &&FrameState| k.is_free() || k.is_listed();
        let states = self.states.iter().filter(there).count();
        let mut missing = total - states as i64;
        missing -= self.complete(used_up, types);
        let mut covered = vec![false; self.states.len()];
        for order in (0..=self.geometry.max_order.0).rev() {
            let mut rows = vec![(0u64, vec![]); shown.len()];
            for k in self.windows(order) {
                let row = &mut rows[self.row(k, types, shown.len())];
                let frames = &self.states[k..k + (1 << order)];
                if !covered[k] && frames.iter().all(|f| f.is_listed()) {
                    row.0 += 1;
                    covered[k..k + (1 << order)].fill(true);
                    self.keep_apart(k, order);
                    continue;
                }
                let Some(unknown) = self.unknown_in(k, order, &covered) else {
                    continue;
                };
                if unknown > 0 && self.is_used_up(k, order, types, used_up) {
                    continue;
                }
                // A block of which nothing but the lack of flags is known may be the kernel's.
                let frames = &self.states[k..k + (1 << order)];
                let bare = !frames.iter().any(|f| *f != FrameState::Unflagged);
                row.1.push((bare, is_scattered(frames), unknown, k));
            }
            for ((have, mut open), row) in rows.into_iter().zip(shown) {
                // Blocks that need the fewest unknown frames first; high addresses first among
                // equals, for the kernel takes early memory from below.
                open.sort_by_key(|&(bare, scattered, unknown, k)| {
                    (bare, scattered, unknown, usize::MAX - k)
                });
                let mut wanted = row[usize::from(order)].saturating_sub(have);
                for (.., k) in open {
                    if wanted == 0 {
                        break;
                    }
                    // Blocks taken before may have settled some of its frames.
                    let Some(unknown) = self.unknown_in(k, order, &covered) else {
                        continue;
                    };
                    if unknown as i64 > missing || !self.keep_apart(k, order) {
                        continue;
                    }
                    missing -= unknown as i64;
                    wanted -= 1;
                    self.states[k..k + (1 << order)].fill(FrameState::Free);
                    covered[k..k + (1 << order)].fill(true);
                }
            }
        }
        self.scatter(missing, types, used_up);
        // What was freed and is on no buddy list by now waits on a per-CPU list.
        let freed = self.states.iter_mut().filter(|f| **f == FrameState::Freed);
        freed.for_each(|f| *f = FrameState::AnyPcp);
    }

    /// Frames that were taken when small blocks were used up had been in a large one: what is unknown there was
    /// free too. Returns how many frames that were.
    fn complete(&mut self, used_up: &UsedUp, types: &BlockTypes) -> i64 {
        let mut completed = 0;
        let Geometry {
            max_order,
            block_order,
            ..
        } = self.geometry;
        for order in (block_order.0..=max_order.0).rev() {
            for k in self.windows(order) {
                let mt = types.at(self.lo + k as u32);
                if used_up.below(mt) != Some(order) {
                    continue;
                }
                let size = 1 << order;
                let frames = &self.states[k..k + size];
                let may_be_free =
                    |f: &FrameState| matches!(f, FrameState::Free | FrameState::Unknown);
                let unknown = frames.iter().filter(|f| **f == FrameState::Unknown).count();
                let late = (k..k + size).filter(|&k| used_up.least_order(k) == Some(order));
                if unknown > 0 && frames.iter().all(may_be_free) && late.count() > size / 2 {
                    self.states[k..k + size].fill(FrameState::Free);
                    completed += unknown as i64;
                }
            }
        }
        // A free buddy would have been one block with it.
        for pfn in used_up.finished() {
            let block = self.block_frames();
            let buddy = ((pfn ^ block).wrapping_sub(self.lo)) as usize;
            let frames = self.states.get_mut(buddy..buddy + block as usize);
            let frames = frames.filter(|f| f.iter().all(|f| *f == FrameState::Unknown));
            if let Some(frames) = frames {
                frames.fill(FrameState::AssumedUsed);
            }
        }
        completed
    }

    /// Chooses single frames for the free pages that are still missing, first where they do not merge. Of
    /// frames without a flag, those in movable pageblocks are the likeliest, because the kernel's own pages
    /// lie in others; then those next to a free one.
    fn scatter(&mut self, mut missing: i64, types: &BlockTypes, used_up: &UsedUp) {
        for (movable, beside_free) in [(true, true), (true, false), (false, true), (false, false)] {
            for k in (0..self.states.len()).rev() {
                let beside = [k.wrapping_sub(1), k + 1];
                let free = |k: usize| self.states.get(k).is_some_and(|f| f.is_free());
                let own = || types.at(self.lo + k as u32) == MigrateType::Movable;
                if missing > 0
                    && self.states[k] == FrameState::Unflagged
                    && !self.is_used_up(k, 0, types, used_up)
                    && (!movable || own())
                    && (!beside_free || beside.into_iter().any(free))
                {
                    self.states[k] = FrameState::AnyPcp;
                    missing -= 1;
                }
            }
        }
        for single in [true, false] {
            for k in (0..self.states.len()).rev() {
                let open = match self.states[k] {
                    FrameState::Unknown => true,
                    FrameState::AssumedUsed => !single,
                    _ => false,
                };
                let open = open && !self.is_used_up(k, 0, types, used_up);
                if missing > 0 && open && (!single || self.keep_apart(k, 0)) {
                    self.states[k] = FrameState::Free;
                    missing -= 1;
                }
            }
        }
    }

    /// Whether blocks of an order and of the type that frame `k` has were used up.
    fn is_used_up(&self, k: usize, order: u8, types: &BlockTypes, used_up: &UsedUp) -> bool {
        let mt = types.at(self.lo + k as u32);
        used_up.below(mt).is_some_and(|below| order < below)
    }

    /// Frames of free blocks that the anchor does not show, each with the order of its block: they were on
    /// per-CPU lists. `None` for all others. Of the blocks of an order, those are chosen that were allocated
    /// first, of huge ones those that were allocated as such.
    pub(super) fn beyond(
        &self,
        shown: &[[u64; ORDERS]],
        types: &BlockTypes,
        takers: &[Option<Taker>],
    ) -> Vec<Option<u8>> {
        let free: Vec<bool> = self.states.iter().map(|k| *k == FrameState::Free).collect();
        let mut blocks = coalesce(self.lo, &free, types);
        let huge = self.geometry.huge_order.0;
        blocks.sort_by_key(|b| {
            let taker = takers[(b.pfn - self.lo) as usize];
            let cut = b.order >= huge && taker.is_some_and(|t| t.order < huge);
            (cut, taker.map_or(usize::MAX, |t| t.turn))
        });
        let mut extra: Vec<[i64; ORDERS]> = shown.iter().map(|n| n.map(|n| -(n as i64))).collect();
        let mut beyond = vec![None; free.len()];
        let at = |b: &FreeBlock| (b.pfn - self.lo) as usize;
        for b in &blocks {
            extra[self.row(at(b), types, shown.len())][usize::from(b.order)] += 1;
        }
        for b in &blocks {
            let over = &mut extra[self.row(at(b), types, shown.len())][usize::from(b.order)];
            if *over > 0 {
                *over -= 1;
                beyond[at(b)..at(b) + (1 << b.order)].fill(Some(b.order));
            }
        }
        beyond
    }

    /// Where blocks of an order may begin.
    fn windows(&self, order: u8) -> impl Iterator<Item = usize> + use<> {
        let size = 1u32 << order;
        let begin = (self.lo.next_multiple_of(size) - self.lo) as usize;
        let end = (self.states.len() + 1).saturating_sub(size as usize);
        (begin..end).step_by(size as usize)
    }

    fn row(&self, k: usize, types: &BlockTypes, rows: usize) -> usize {
        (types.at(self.lo + k as u32) as usize).min(rows - 1)
    }

    /// Frames of a block of which nothing is known, if it may be free as a whole.
    fn unknown_in(&self, k: usize, order: u8, covered: &[bool]) -> Option<usize> {
        let mut unknown = 0;
        if covered[k] {
            return None;
        }
        for f in &self.states[k..k + (1 << order)] {
            match f {
                FrameState::Free | FrameState::Freed => {}
                FrameState::Unknown | FrameState::Unflagged => unknown += 1,
                _ => return None,
            }
        }
        Some(unknown)
    }

    /// Makes sure that a block's buddy is not free as a whole. Returns false if it is known to be.
    fn keep_apart(&mut self, k: usize, order: u8) -> bool {
        let size = 1u32 << order;
        let buddy = (self.lo + k as u32) ^ size;
        let Some(at) = buddy.checked_sub(self.lo) else {
            return true;
        };
        let Some(frames) = self.states.get_mut(at as usize..(at + size) as usize) else {
            return true;
        };
        // What has no flag is on no buddy list.
        let may_merge = |f: &FrameState| {
            matches!(
                f,
                FrameState::Free | FrameState::Freed | FrameState::Unknown
            )
        };
        if order == self.geometry.max_order.0 || !frames.iter().all(may_merge) {
            return true;
        }
        for (from, to) in [
            (FrameState::Unknown, FrameState::AssumedUsed),
            (FrameState::Freed, FrameState::AnyPcp),
        ] {
            if let Some(f) = frames.iter_mut().find(|f| **f == from) {
                *f = to;
                return true;
            }
        }
        false
    }
}

/// Whether a freed block of an order waits on a per-CPU list, in the kernels that have page flags to
/// read and lists for more than single pages. `spec: 3`
pub(crate) fn is_cached(order: u8, geometry: Geometry) -> bool {
    order <= Order::COSTLY.0 || order == geometry.huge_order.0
}

/// Whether the frames that are known to be free are scattered. A free block is allocated from its beginning
/// on, so that the part that was touched has few holes. Scattered frames had been on a per-CPU list.
fn is_scattered(frames: &[FrameState]) -> bool {
    let touched = frames.iter().filter(|f| f.is_free()).count();
    let last = frames.iter().rposition(|f| f.is_free());
    let reach = last.map_or(0, |last| last + 1);
    (reach - touched) * 8 > touched
}

/// The largest aligned blocks of the free frames, ascending.
pub(super) fn coalesce(lo: u32, free: &[bool], types: &BlockTypes) -> Vec<FreeBlock> {
    let mut out = vec![];
    let mut k = 0;
    while k < free.len() {
        if !free[k] {
            k += 1;
            continue;
        }
        let pfn = lo + k as u32;
        let mut order = 0u8;
        while order < types.geometry.max_order.0 {
            let size = 1usize << (order + 1);
            let fits = (pfn as usize).is_multiple_of(size)
                && k + size <= free.len()
                && free[k..k + size].iter().all(|f| *f);
            if !fits {
                break;
            }
            order += 1;
        }
        let mt = types.at(pfn);
        out.push(FreeBlock { pfn, order, mt });
        k += 1 << order;
    }
    out
}
