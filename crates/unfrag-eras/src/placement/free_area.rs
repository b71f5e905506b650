//! The free frames of a zone.
//!
//! Invariant: no code outside this module links, unlinks or counts a free block of the zone.

use super::block_request::{BlockRequest, RmqueueMode, Taken};
use super::list::{BadLink, End, List};
use super::lists::{FreeBlock, FreeTo, Lists};
use super::v19_stats::{self, V19Stats};
use crate::frame::{FrameIx, Frames, MigrateType, ORDER_SLOTS, Order, Span};
use crate::kernel::{Placement, Rules};
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// The free frames of one zone.
#[derive(Clone, TryFromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct FreeArea {
    pub(super) lists: Lists,
    /// V19's reserve and statistics.
    pub v19: V19Stats,
    /// Memory is too small to group by mobility.
    pub ungrouped: bool,
    pad: [u8; 7],
}

impl FreeArea {
    pub fn new(span: Span, v19: V19Stats, ungrouped: bool) -> FreeArea {
        FreeArea {
            lists: Lists::new(span),
            v19,
            ungrouped,
            pad: [0; 7],
        }
    }

    /// Takes a block of `request.order` for `request.mt` from the lists of that type or, failing
    /// that, by the era's fallback (`__rmqueue`).
    #[inline(always)]
    pub fn take(
        &mut self,
        frames: &Frames,
        rules: &Rules,
        request: BlockRequest,
        mode: &mut RmqueueMode,
    ) -> Option<Taken> {
        if matches!(rules.placement, Placement::V19) {
            self.v19.allocs[v19_stats::number(request.mt)] += 1;
        }
        if *mode == RmqueueMode::Normal
            && let Some(ix) = self.lists.smallest_fit(frames, request.order, request.mt)
        {
            return Some(Taken {
                ix,
                list: request.mt,
                extfrag: None,
                boosts: 0,
            });
        }
        match &rules.placement {
            Placement::Ungrouped => None,
            Placement::V19 => self.take_v19(frames, request),
            Placement::Pageblocks(rules) => self.take_fallback(frames, rules, request, mode),
        }
    }

    /// Takes the smallest block of a type that fits, without a fallback.
    pub fn take_of(&mut self, frames: &Frames, order: Order, mt: MigrateType) -> Option<FrameIx> {
        self.lists.smallest_fit(frames, order, mt)
    }

    /// Takes the block of an order at `ix`. False, if some of it is not free.
    pub fn take_at(&mut self, frames: &Frames, ix: FrameIx, order: Order) -> bool {
        self.lists.take_at(frames, ix, order)
    }

    /// Takes one frame out of the free block at `head`.
    pub fn claim(&mut self, frames: &Frames, head: FrameIx, frame: FrameIx) {
        self.lists.cut_out(frames, head, frame);
    }

    /// Frees a block: it merges with its free buddies, and goes to the list of its type.
    #[inline(always)]
    pub fn give(&mut self, frames: &Frames, rules: &Rules, block: FreeBlock, to: FreeTo) {
        self.lists.free(frames, rules, block, to);
    }

    /// Puts a free block at the tail of its list as it is: it does not merge.
    pub fn put(&mut self, frames: &Frames, block: FreeBlock) {
        self.lists.push(frames, block, End::Tail);
    }

    /// Moves the free blocks of the pageblock that holds `ix` to the lists of a type.
    pub fn retype(&mut self, frames: &Frames, ix: FrameIx, mt: MigrateType, end: End) {
        self.lists.move_block(frames, ix, mt, end);
    }

    /// Moves the free blocks from `from` up to `to` to the lists of a type. Returns their frames.
    pub fn retype_span(
        &mut self,
        frames: &Frames,
        span: (FrameIx, FrameIx),
        mt: MigrateType,
        end: End,
    ) -> u32 {
        self.lists.move_span(frames, span, mt, end)
    }

    /// Cuts the free block at `head`, which reaches over `ix`, so that a block begins there.
    pub fn cut_at(&mut self, frames: &Frames, head: FrameIx, ix: FrameIx) {
        self.lists.cut_at(frames, head, ix);
    }

    /// Takes a free block off its list, for pages to be moved to. From half a pageblock on, the ordinary pageblocks that
    /// it lies in become movable. `spec: 5.1`
    pub fn isolate(&mut self, frames: &Frames, rules: &Rules, ix: FrameIx) -> Order {
        let (order, _) = self.lists.remove(frames, ix);
        let block = frames.geometry.block_order;
        if order.0 + 1 >= block.0 && !rules.lists_follow_blocks() && rules.pageblocks().is_some() {
            let mut at = ix;
            while at < ix.plus(order.frames()) {
                if frames.block_type(at).is_ordinary() {
                    frames.set_block_type(at, MigrateType::Movable);
                }
                at = at.plus(block.frames());
            }
        }
        order
    }

    /// Moves the blocks of the list that `ix` is on to its end, up to and with this one.
    pub fn rotate_behind(&mut self, frames: &Frames, ix: FrameIx) {
        let s = frames.state(ix);
        let list = self.lists.list_mut(s.order(), s.mt());
        list.rotate_behind(frames.table, ix);
    }

    /// Moves the blocks before `ix` to the end of its list, so that this one is the first.
    pub fn rotate_to(&mut self, frames: &Frames, ix: FrameIx) {
        let s = frames.state(ix);
        let list = self.lists.list_mut(s.order(), s.mt());
        list.rotate_to(frames.table, ix);
    }

    /// From now on the next block that merges to exactly `order` is kept aside. `from_movable`: also one of a movable
    /// pageblock that is smaller than a pageblock.
    pub fn begin_capture(&mut self, order: Order, from_movable: bool) {
        self.lists.begin_capture(order, from_movable);
    }

    /// Ends that; returns the block that was kept aside.
    pub fn end_capture(&mut self) -> Option<FrameIx> {
        self.lists.end_capture()
    }

    /// Whether a block was kept aside.
    pub fn has_captured(&self) -> bool {
        self.lists.has_captured()
    }

    /// Whether a fallback for a request could take over a whole pageblock (`find_suitable_fallback`).
    pub fn could_claim(
        &self,
        frames: &Frames,
        rules: &Rules,
        order: Order,
        mt: MigrateType,
    ) -> bool {
        let Placement::Pageblocks(rules) = &rules.placement else {
            return false;
        };
        order
            .up_to(frames.geometry.max_order)
            .any(|o| self.may_claim_from(frames, rules, o, mt))
    }

    /// Whether the pageblock that holds `ix` lies in this zone as a whole.
    pub fn holds_block(&self, frames: &Frames, ix: FrameIx) -> bool {
        self.lists.holds_block(frames, ix)
    }

    /// Free pages on all lists.
    #[inline]
    pub fn free_pages(&self) -> u64 {
        self.lists.free_pages()
    }
    /// Free pages on the lists of a type.
    #[inline]
    pub fn pages_of(&self, mt: MigrateType) -> u64 {
        self.lists.pages_of(mt)
    }
    /// Free blocks of each order.
    #[inline]
    pub fn nr_free(&self) -> &[u32; ORDER_SLOTS] {
        self.lists.nr_free()
    }
    /// Orders of which a type has a free block, one bit each.
    #[inline]
    pub fn fits(&self, mt: MigrateType) -> u16 {
        self.lists.fits(mt)
    }
    /// Orders of which one of the three ordinary types has a free block, one bit each.
    #[inline]
    pub fn ordinary(&self) -> u16 {
        self.lists.ordinary()
    }
    /// The blocks of an order and a type, next to be handed out first.
    #[inline]
    pub fn list(&self, order: Order, mt: MigrateType) -> &List {
        self.lists.list(order, mt)
    }

    /// Checks the lists and their counts; `visit` is asked about each block. `None`: a count is wrong.
    pub fn validate<E: From<BadLink>>(
        &self,
        frames: &Frames,
        mut visit: impl FnMut(FreeBlock) -> Result<(), E>,
    ) -> Result<Option<()>, E> {
        let mut nr_free = [0u32; ORDER_SLOTS];
        let mut pages = 0;
        for order in frames.geometry.orders() {
            for mt in MigrateType::ALL {
                let list = self.list(order, mt);
                list.validate(frames.table, |ix| visit(FreeBlock { ix, order, mt }))?;
                if self.lists.is_empty(order, mt) != list.is_empty() {
                    return Ok(None);
                }
                nr_free[order.index()] += list.len;
                pages += u64::from(list.len) << order.0;
            }
        }
        let right = nr_free == *self.nr_free() && pages == self.free_pages();
        Ok(right.then_some(()))
    }
}
