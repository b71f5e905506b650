//! The buddy lists of a zone: one list for each order and type.
//!
//! Invariants: a block on a list has `Kind::Buddy` and its list's order and type in its state; two
//! free buddies of the same order are both on lists only where their merge is not allowed;
//! `free_pages` is the sum over all lists; `fits[t]` has bit `o` set exactly if list `(o, t)` is not
//! empty. `spec: linux-mm 1.1, 1.2; linux-6.1 1.2`

use super::{End, List};
use crate::frame::{
    Frames, Ix, Kind, MAX_BLOCK, MAX_ORDER, MigrateType, NR_ORDERS, NR_TYPES, State,
};
use crate::kernel::Rules;

/// Where a freed block goes on its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// As the era's rules say.
    Rule,
    /// The tail, whatever the rules say (boot, onlining, isolation undone, surplus of exact
    /// allocations).
    Tail,
}

pub(crate) struct Lists {
    list: [[List; NR_TYPES]; NR_ORDERS],
    /// Free blocks of each order over all types.
    nr_free: [u32; NR_ORDERS],
    fits: [u16; NR_TYPES],
    /// Free pages of each type's lists.
    pages: [u32; NR_TYPES],
    free_pages: u64,
    zone: u8,
    start: Ix,
    end: Ix,
}

impl Lists {
    pub fn new(zone: u8, start: Ix, end: Ix) -> Lists {
        Lists {
            list: [[List::EMPTY; NR_TYPES]; NR_ORDERS],
            nr_free: [0; NR_ORDERS],
            fits: [0; NR_TYPES],
            pages: [0; NR_TYPES],
            free_pages: 0,
            zone,
            start,
            end,
        }
    }

    /// Free pages on all lists.
    #[inline]
    pub fn free_pages(&self) -> u64 {
        self.free_pages
    }
    /// Free pages on the lists of a type.
    #[inline]
    pub fn pages_of(&self, mt: MigrateType) -> u64 {
        u64::from(self.pages[mt as usize])
    }
    /// Free blocks of each order.
    pub fn nr_free(&self) -> &[u32; NR_ORDERS] {
        &self.nr_free
    }
    /// The list of an order and a type.
    pub fn list(&self, order: u8, mt: MigrateType) -> &List {
        &self.list[order as usize][mt as usize]
    }
    /// Orders whose list of this type is not empty, one bit each.
    #[inline]
    pub fn fits(&self, mt: MigrateType) -> u16 {
        self.fits[mt as usize]
    }
    /// The same of the three ordinary types.
    #[inline]
    pub fn ordinary(&self) -> u16 {
        self.fits[0] | self.fits[1] | self.fits[2]
    }
    #[inline]
    pub fn is_empty(&self, order: u8, mt: MigrateType) -> bool {
        self.fits[mt as usize] >> order & 1 == 0
    }

    /// Puts a free block on a list.
    #[inline(always)]
    pub fn push(&mut self, frames: &mut Frames, ix: Ix, order: u8, mt: MigrateType, tail: bool) {
        frames.set_state(ix, State::new(Kind::Buddy, order, mt, self.zone));
        let list = &mut self.list[order as usize][mt as usize];
        list.push(frames.meta, ix, End::tail_if(tail));
        self.fits[mt as usize] |= 1 << order;
        self.nr_free[order as usize] += 1;
        self.pages[mt as usize] += 1 << order;
        self.free_pages += 1 << order;
    }

    /// Takes the block at `ix` off its list; its frame becomes a tail until somebody says otherwise.
    #[inline(always)]
    pub fn remove(&mut self, frames: &mut Frames, ix: Ix) -> (u8, MigrateType) {
        let s = frames.state(ix);
        debug_assert!(s.is_buddy(), "frame {ix} is not on a buddy list");
        let (order, mt) = (s.order(), s.mt());
        let list = &mut self.list[order as usize][mt as usize];
        list.unlink(frames.meta, ix);
        if list.is_empty() {
            self.fits[mt as usize] &= !(1 << order);
        }
        self.nr_free[order as usize] -= 1;
        self.pages[mt as usize] -= 1 << order;
        self.free_pages -= 1 << order;
        frames.set_state(
            ix,
            State::new(Kind::Tail, 0, MigrateType::Unmovable, self.zone),
        );
        (order, mt)
    }

    /// Whether a free block of exactly `order` starts at `ix`.
    #[inline]
    fn is_buddy(&self, frames: &Frames, ix: Ix, order: u8) -> bool {
        if ix < self.start || ix >= self.end {
            return false;
        }
        let s = frames.state(ix);
        s.is_buddy() && s.order() == order && s.zone() == self.zone
    }

    /// Frees a block: merges it with its buddies as far as they are free, and puts the result on a
    /// list of type `mt`.
    #[inline(always)]
    pub fn free(
        &mut self,
        frames: &mut Frames,
        sw: &Rules,
        ix: Ix,
        order: u8,
        mt: MigrateType,
        at: At,
    ) {
        let (mut ix, mut order) = (ix, order);
        while order < MAX_ORDER {
            let buddy = ix ^ 1 << order;
            if !self.is_buddy(frames, buddy, order) {
                break;
            }
            if order >= frames.block_order && !sw.merges_all() {
                let theirs = frames.block_type(buddy);
                if theirs != mt && !(theirs.is_ordinary() && mt.is_ordinary()) {
                    break;
                }
                if sw.lists_follow_blocks() && theirs != mt {
                    frames.set_block_types(buddy, order, mt);
                }
            }
            self.remove(frames, buddy);
            // The upper half is no longer the head of anything.
            frames.set_state(
                ix | buddy,
                State::new(Kind::Tail, 0, MigrateType::Unmovable, self.zone),
            );
            ix &= buddy;
            order += 1;
        }
        let tail =
            at == At::Tail || sw.tail_if_merge_likely && self.merge_likely(frames, ix, order);
        self.push(frames, ix, order, mt, tail);
    }

    /// Whether the buddy of the next larger block is free as a whole, so that this block would merge
    /// twice once its own buddy comes back. Considered for orders up to 8. `spec: linux-6.1 1.2`
    #[inline]
    fn merge_likely(&self, frames: &Frames, ix: Ix, order: u8) -> bool {
        if order >= MAX_ORDER - 1 {
            return false;
        }
        let parent = ix & !(1 << order);
        self.is_buddy(frames, parent ^ 1 << (order + 1), order + 1)
    }

    /// Smallest order from `order` up whose list of this type is not empty: takes its head, and
    /// returns the upper halves to the lists of the same type.
    #[inline(always)]
    pub fn smallest_fit(&mut self, frames: &mut Frames, order: u8, mt: MigrateType) -> Option<Ix> {
        let fits = self.fits[mt as usize] >> order;
        if fits == 0 {
            return None;
        }
        let found = order + fits.trailing_zeros() as u8;
        let ix = self.list[found as usize][mt as usize].head;
        self.remove(frames, ix);
        self.expand(frames, ix, found, order, mt);
        Some(ix)
    }

    /// Returns all of a block of order `from` but its first `2^to` frames to the lists of `mt`.
    #[inline]
    pub fn expand(&mut self, frames: &mut Frames, ix: Ix, from: u8, to: u8, mt: MigrateType) {
        let mut order = from;
        while order > to {
            order -= 1;
            self.push(frames, ix + (1 << order), order, mt, false);
        }
    }

    /// Moves all free blocks of the pageblock that holds `ix` to the lists of `mt`, and counts what
    /// it went over. A pageblock that reaches beyond the zone's end is left alone; one that begins
    /// before the zone is moved from `ix` on. `spec: linux-6.1 2.6, steal 4`
    pub fn move_block(
        &mut self,
        frames: &mut Frames,
        ix: Ix,
        mt: MigrateType,
        tail: bool,
    ) -> Counted {
        let (block, end) = self.block_of(frames, ix);
        if end > self.end {
            return Counted::default();
        }
        let from = if block < self.start { ix } else { block };
        let n = self.count(frames, from, end);
        let mut at = from;
        while at < end {
            let s = frames.state(at);
            if s.is_buddy() {
                if s.mt() != mt {
                    self.remove(frames, at);
                    self.push(frames, at, s.order(), mt, tail);
                } else {
                    self.requeue(frames, at, tail);
                }
            }
            at += step(s);
        }
        n
    }

    /// First frame of the pageblock that holds `ix`, and the one after it.
    fn block_of(&self, frames: &Frames, ix: Ix) -> (Ix, Ix) {
        let size = 1 << frames.block_order;
        let block = ix & !(size - 1);
        (block, block + size)
    }

    /// Whether the pageblock that holds `ix` lies in this zone as a whole.
    pub fn holds_block(&self, frames: &Frames, ix: Ix) -> bool {
        let (block, end) = self.block_of(frames, ix);
        block >= self.start && end <= self.end
    }

    /// Moves a block to the end of its list.
    fn requeue(&mut self, frames: &mut Frames, ix: Ix, tail: bool) {
        let s = frames.state(ix);
        let list = &mut self.list[s.order() as usize][s.mt() as usize];
        list.unlink(frames.meta, ix);
        list.push(frames.meta, ix, End::tail_if(tail));
    }

    /// Free and movable frames of the pageblock that holds `ix`, as far as it lies in this zone.
    pub fn count_block(&self, frames: &Frames, ix: Ix) -> Counted {
        let (block, end) = self.block_of(frames, ix);
        self.count(frames, block.max(self.start), end.min(self.end))
    }

    /// Free and movable frames from `from` up to `end`, which lie in one pageblock.
    fn count(&self, frames: &Frames, from: Ix, end: Ix) -> Counted {
        let mut n = Counted::default();
        let mut at = from;
        // A block larger than a pageblock may have begun in the one before.
        let head = from & !(MAX_BLOCK - 1);
        let s = frames.state(head);
        if head < from && s.kind() == Kind::Used && s.order() > frames.block_order {
            n.movable += if s.is_movable() { end - from } else { 0 };
            return n;
        }
        while at < end {
            let s = frames.state(at);
            let frames = step(s).min(end - at);
            if s.is_buddy() {
                n.free += frames;
            } else if s.kind() == Kind::Used && s.is_movable() {
                n.movable += frames;
            }
            at += frames;
        }
        n
    }
}

/// Frames of a pageblock, by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub free: u32,
    pub movable: u32,
}

/// Frames to the next possible head.
#[inline]
fn step(s: State) -> u32 {
    match s.kind() {
        Kind::Used | Kind::Buddy | Kind::Pcp | Kind::Isolated => 1 << s.order(),
        Kind::Absent | Kind::Reserved | Kind::Tail => 1,
    }
}
