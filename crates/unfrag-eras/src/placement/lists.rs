//! The buddy lists of a zone: one list for each order and type.
//!
//! Invariants: a block on a list has `FrameKind::Buddy` and its list's order and type in its state; two
//! free buddies of the same order are both on lists only where their merge is not allowed;
//! `free_pages` is the sum over all lists; `fits[t]` has bit `o` set exactly if list `(o, t)` is not
//! empty. `spec: 1.1, 1.2`

use super::list::{End, List};
use crate::frame::{
    FrameIx, FrameKind, Frames, MigrateType, NR_TYPES, ORDER_SLOTS, Order, Span, State,
};
use crate::kernel::Rules;
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// The end of its list that a freed block goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeTo {
    /// By the rules of the era.
    ByRules,
    /// To the tail, whatever the rules (boot, onlining, isolation undone, surplus of exact
    /// allocations).
    Tail,
}

/// A free block, and the list that it is on or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeBlock {
    pub ix: FrameIx,
    pub order: Order,
    pub mt: MigrateType,
}

/// No block is kept aside: above every order.
const NO_LIMIT: u8 = u8::MAX;

#[derive(Clone, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct Lists {
    free_pages: u64,
    list: [[List; NR_TYPES]; ORDER_SLOTS],
    /// Free blocks of each order over all types.
    nr_free: [u32; ORDER_SLOTS],
    fits: [u16; NR_TYPES],
    /// Free pages of each type's lists.
    pages: [u32; NR_TYPES],
    span: Span,
    /// A block that was kept aside; [`FrameIx::NIL`] if there is none.
    captured: FrameIx,
    /// Blocks merge up to this order: the largest one, or that which is to be kept aside.
    merge_limit: u8,
    /// A block of a movable pageblock is kept aside at any order, not only from a whole pageblock on.
    captures_movable: u8,
    pad: [u8; 2],
}

impl Lists {
    pub fn new(span: Span) -> Lists {
        Lists {
            list: [[List::EMPTY; NR_TYPES]; ORDER_SLOTS],
            nr_free: [0; ORDER_SLOTS],
            fits: [0; NR_TYPES],
            pages: [0; NR_TYPES],
            free_pages: 0,
            span,
            captured: FrameIx::NIL,
            merge_limit: NO_LIMIT,
            captures_movable: 0,
            pad: [0; 2],
        }
    }

    /// From now on the next block that merges to exactly `order` is kept aside. `spec: 5.1`
    pub fn begin_capture(&mut self, order: Order, from_movable: bool) {
        self.merge_limit = order.0;
        self.captures_movable = from_movable.into();
    }

    /// Ends that; returns the block that was kept aside.
    pub fn end_capture(&mut self) -> Option<FrameIx> {
        self.merge_limit = NO_LIMIT;
        let ix = core::mem::replace(&mut self.captured, FrameIx::NIL);
        (ix != FrameIx::NIL).then_some(ix)
    }

    /// Whether a block was kept aside.
    pub fn has_captured(&self) -> bool {
        self.captured != FrameIx::NIL
    }

    /// Keeps a block that has the order asked for aside, if its type allows that.
    #[cold]
    fn capture(&mut self, frames: &Frames, block: FreeBlock) -> bool {
        let FreeBlock { ix, order, mt } = block;
        let small = order < frames.geometry.block_order && mt == MigrateType::Movable;
        let may = !small || self.captures_movable != 0;
        if order.0 != self.merge_limit || self.has_captured() || !mt.is_ordinary() || !may {
            return false;
        }
        frames.set_state(ix, State::TAIL);
        self.captured = ix;
        true
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
    #[inline]
    pub fn nr_free(&self) -> &[u32; ORDER_SLOTS] {
        &self.nr_free
    }
    /// The list of an order and a type.
    #[inline]
    pub fn list(&self, order: Order, mt: MigrateType) -> &List {
        &self.list[order.index()][mt as usize]
    }
    /// The same, for a change of its order alone.
    pub fn list_mut(&mut self, order: Order, mt: MigrateType) -> &mut List {
        &mut self.list[order.index()][mt as usize]
    }
    /// Orders whose list of this type is not empty, one bit each.
    #[inline]
    pub fn fits(&self, mt: MigrateType) -> u16 {
        self.fits[mt as usize]
    }
    /// Orders of which one of the three ordinary types has a block, one bit each.
    #[inline]
    pub fn ordinary(&self) -> u16 {
        self.fits[0] | self.fits[1] | self.fits[2]
    }
    #[inline]
    pub fn is_empty(&self, order: Order, mt: MigrateType) -> bool {
        self.fits[mt as usize] >> order.0 & 1 == 0
    }

    /// Puts a free block on a list.
    #[inline(always)]
    pub fn push(&mut self, frames: &Frames, block: FreeBlock, end: End) {
        let FreeBlock { ix, order, mt } = block;
        frames.set_state(ix, State::new(FrameKind::Buddy, order, mt));
        let list = &mut self.list[order.index()][mt as usize];
        list.push(frames.table, ix, end);
        self.fits[mt as usize] |= 1 << order.0;
        self.nr_free[order.index()] += 1;
        self.pages[mt as usize] += order.frames();
        self.free_pages += u64::from(order.frames());
    }

    /// Takes the block at `ix` off its list; its frame becomes a tail until the caller sets another
    /// state.
    #[inline(always)]
    pub fn remove(&mut self, frames: &Frames, ix: FrameIx) -> (Order, MigrateType) {
        let s = frames.state(ix);
        debug_assert!(s.is_buddy(), "frame {ix:?} is not on a buddy list");
        let (order, mt) = (s.order(), s.mt());
        let list = &mut self.list[order.index()][mt as usize];
        list.unlink(frames.table, ix);
        if list.is_empty() {
            self.fits[mt as usize] &= !(1 << order.0);
        }
        self.nr_free[order.index()] -= 1;
        self.pages[mt as usize] -= order.frames();
        self.free_pages -= u64::from(order.frames());
        frames.set_state(ix, State::TAIL);
        (order, mt)
    }

    /// Whether a free block of exactly `order` starts at `ix`.
    #[inline]
    fn is_buddy(&self, frames: &Frames, ix: FrameIx, order: Order) -> bool {
        self.span.holds(ix) && frames.state(ix).is_buddy_of(order)
    }

    /// Frees a block: merges it with its buddies as far as they are free, and puts the result on a
    /// list of the block's type.
    #[inline(always)]
    pub fn free(&mut self, frames: &Frames, rules: &Rules, block: FreeBlock, to: FreeTo) {
        let FreeBlock {
            mut ix,
            mut order,
            mt,
        } = block;
        let geometry = &frames.geometry;
        while order < geometry.max_order {
            if order.0 >= self.merge_limit && self.capture(frames, FreeBlock { ix, order, mt }) {
                return;
            }
            let buddy = ix.buddy(order);
            if !self.is_buddy(frames, buddy, order) {
                break;
            }
            if order >= geometry.block_order {
                let theirs = frames.block_type(buddy);
                if theirs != mt && !may_mix(rules, theirs, mt) {
                    break;
                }
                if rules.lists_follow_blocks() && theirs != mt {
                    frames.set_block_types(buddy, order, mt);
                }
            }
            self.remove(frames, buddy);
            // The upper half heads no block now.
            frames.set_state(FrameIx(ix.0 | buddy.0), State::TAIL);
            ix = FrameIx(ix.0 & buddy.0);
            order.0 += 1;
        }
        if order.0 == self.merge_limit && self.capture(frames, FreeBlock { ix, order, mt }) {
            return;
        }
        let tail = to == FreeTo::Tail
            || rules.tail_if_merge_likely && self.merge_likely(frames, ix, order);
        self.push(frames, FreeBlock { ix, order, mt }, End::tail_if(tail));
    }

    /// Whether the buddy of the next larger block is free as a whole, so that this block would merge
    /// twice once its own buddy comes back. Considered up to two orders below the largest.
    /// `spec: 1.2`
    #[inline]
    fn merge_likely(&self, frames: &Frames, ix: FrameIx, order: Order) -> bool {
        let next = Order(order.0 + 1);
        if next >= frames.geometry.max_order {
            return false;
        }
        let parent = ix.0 & !order.frames();
        self.is_buddy(frames, FrameIx(parent).buddy(next), next)
    }

    /// Smallest order from `order` up whose list of this type is not empty: takes its head, and
    /// returns the upper halves to the lists of the same type.
    #[inline(always)]
    pub fn smallest_fit(
        &mut self,
        frames: &Frames,
        order: Order,
        mt: MigrateType,
    ) -> Option<FrameIx> {
        let fits = self.fits[mt as usize] >> order.0;
        if fits == 0 {
            return None;
        }
        let found = Order(order.0 + fits.trailing_zeros() as u8);
        let ix = self.list[found.index()][mt as usize].head;
        self.remove(frames, ix);
        self.expand(
            frames,
            FreeBlock {
                ix,
                order: found,
                mt,
            },
            order,
        );
        Some(ix)
    }

    /// Returns all of a block but its first `2^to` frames to the lists of its type.
    #[inline]
    pub fn expand(&mut self, frames: &Frames, block: FreeBlock, to: Order) {
        let FreeBlock { ix, mut order, mt } = block;
        while order > to {
            order.0 -= 1;
            let upper = FreeBlock {
                ix: ix.plus(order.frames()),
                order,
                mt,
            };
            self.push(frames, upper, End::Head);
        }
    }

    /// Takes one frame out of the free block at `head`; the rest goes back in as large blocks as it
    /// makes.
    pub fn cut_out(&mut self, frames: &Frames, head: FrameIx, frame: FrameIx) {
        let (mut order, mt) = self.remove(frames, head);
        let mut rest = head;
        while order > Order::ZERO {
            order.0 -= 1;
            let upper = rest.plus(order.frames());
            let (keep, ix) = if frame < upper {
                (rest, upper)
            } else {
                (upper, rest)
            };
            self.push(frames, FreeBlock { ix, order, mt }, End::Head);
            rest = keep;
        }
    }

    /// Takes the block of an order at `ix`, out of a larger free one or of several smaller ones. False, with nothing changed,
    /// if some of it is not free.
    pub fn take_at(&mut self, frames: &Frames, ix: FrameIx, order: Order) -> bool {
        if let Some(head) = frames.buddy_of(ix)
            && frames.state(head).order() >= order
        {
            let (mut size, mt) = self.remove(frames, head);
            let mut at = head;
            while size > order {
                size.0 -= 1;
                let upper = at.plus(size.frames());
                let (keep, ix) = if ix < upper { (at, upper) } else { (upper, at) };
                let order = size;
                self.push(frames, FreeBlock { ix, order, mt }, End::Head);
                at = keep;
            }
            return true;
        }
        let end = ix.plus(order.frames());
        let mut at = ix;
        while at < end {
            let s = frames.state(at);
            if !s.is_buddy() {
                return false;
            }
            at = at.plus(s.order().frames());
        }
        let mut at = ix;
        while at < end {
            let (order, _) = self.remove(frames, at);
            at = at.plus(order.frames());
        }
        true
    }

    /// Moves all free blocks of the pageblock that holds `ix` to the lists of `mt`. Returns the free and movable
    /// frames of the pageblock. A pageblock that reaches beyond the zone's end is left alone; one that begins
    /// before the zone is moved from `ix` on. `spec: 2.6`
    pub fn move_block(
        &mut self,
        frames: &Frames,
        ix: FrameIx,
        mt: MigrateType,
        end: End,
    ) -> BlockCounts {
        let block = block_of(frames, ix);
        if block.end > self.span.end {
            return BlockCounts::default();
        }
        let from = if block.start < self.span.start {
            ix
        } else {
            block.start
        };
        let n = self.count(frames, from, block.end);
        self.move_span(frames, (from, block.end), mt, end);
        n
    }

    /// Moves all free blocks from `from` up to `to` to the lists of `mt`. Returns their frames.
    pub fn move_span(
        &mut self,
        frames: &Frames,
        (from, to): (FrameIx, FrameIx),
        mt: MigrateType,
        end: End,
    ) -> u32 {
        let (mut at, mut free) = (from, 0);
        while at < to {
            let s = frames.state(at);
            if s.is_buddy() {
                free += s.order().frames();
                if s.mt() != mt {
                    self.remove(frames, at);
                    let order = s.order();
                    self.push(frames, FreeBlock { ix: at, order, mt }, end);
                } else {
                    self.requeue(frames, at, end);
                }
            }
            at = at.plus(s.extent());
        }
        free
    }

    /// Cuts the free block that begins before `ix` and reaches over it, so that none does.
    pub fn cut_at(&mut self, frames: &Frames, head: FrameIx, ix: FrameIx) {
        let (mut order, mt) = self.remove(frames, head);
        let mut at = head;
        while at < ix {
            order.0 -= 1;
            let upper = at.plus(order.frames());
            let (done, rest) = if ix < upper { (upper, at) } else { (at, upper) };
            self.push(
                frames,
                FreeBlock {
                    ix: done,
                    order,
                    mt,
                },
                End::Tail,
            );
            at = rest;
        }
        self.push(frames, FreeBlock { ix, order, mt }, End::Tail);
    }

    /// Whether the pageblock that holds `ix` lies in this zone as a whole.
    pub fn holds_block(&self, frames: &Frames, ix: FrameIx) -> bool {
        let block = block_of(frames, ix);
        block.start >= self.span.start && block.end <= self.span.end
    }

    /// Moves a block to an end of its list.
    fn requeue(&mut self, frames: &Frames, ix: FrameIx, end: End) {
        let s = frames.state(ix);
        let list = &mut self.list[s.order().index()][s.mt() as usize];
        list.unlink(frames.table, ix);
        list.push(frames.table, ix, end);
    }

    /// Free and movable frames of the pageblock that holds `ix`, as far as it lies in this zone.
    pub fn count_block(&self, frames: &Frames, ix: FrameIx) -> BlockCounts {
        let block = block_of(frames, ix);
        self.count(
            frames,
            block.start.max(self.span.start),
            block.end.min(self.span.end),
        )
    }

    /// Free and movable frames from `from` up to `end`, which lie in one pageblock.
    fn count(&self, frames: &Frames, from: FrameIx, end: FrameIx) -> BlockCounts {
        let mut n = BlockCounts::default();
        let mut at = from;
        if let Some(s) = frames
            .larger_block(from)
            .filter(|s| s.kind() == FrameKind::Used)
        {
            n.movable += if s.is_movable() { end.0 - from.0 } else { 0 };
            return n;
        }
        while at < end {
            let s = frames.state(at);
            let frames = s.extent().min(end.0 - at.0);
            if s.is_buddy() {
                n.free += frames;
            } else if s.kind() == FrameKind::Used && s.is_movable() {
                n.movable += frames;
            }
            at = at.plus(frames);
        }
        n
    }
}

/// Frames of a pageblock, by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockCounts {
    pub free: u32,
    pub movable: u32,
}

/// Whether free pageblocks of two types may merge. Those that are set apart stay apart in every era.
fn may_mix(rules: &Rules, a: MigrateType, b: MigrateType) -> bool {
    let apart = MigrateType::Isolate;
    a.is_ordinary() && b.is_ordinary() || rules.merges_all() && a != apart && b != apart
}

/// The pageblock that holds `ix`.
fn block_of(frames: &Frames, ix: FrameIx) -> Span {
    let order = frames.geometry.block_order;
    let start = ix.head(order);
    Span {
        start,
        end: start.plus(order.frames()),
    }
}
