//! Operations on a zone that go beyond placement: they emit tracepoints, boost the marks and keep the count of
//! free pages.

use super::memory_zone::Zone;
use crate::frame::{FrameIx, Frames, MigrateType, Order, Pfn, Span, ZoneKind};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::placement::{BlockRequest, End, Fallback, FreeBlock, FreeTo, RmqueueMode};
use crate::policy::Policy;
use crate::trace::Event;
use crate::tracer::Tracer;

/// What an operation on a zone needs: the zone by `&mut`, the frame table and the rules by `&`, the counter of
/// the CPU that works on it, and the tracer.
pub(crate) struct ZoneOps<'a, 'm, H> {
    pub zone: &'a mut Zone,
    /// The CPU's part of the zone's count of free pages.
    pub delta: &'a mut i32,
    pub frames: &'a Frames<'m>,
    pub policy: &'a Policy,
    pub tracer: Tracer<'a, H>,
}

impl<H: Host> ZoneOps<'_, '_, H> {
    /// Takes a block from the buddy lists, with all that a fallback brings: its event, and the boost
    /// of the marks. Does not touch the free counter. Returns the block and the type of the list
    /// that it came from (`__rmqueue`).
    #[inline(always)]
    pub fn take(
        &mut self,
        request: BlockRequest,
        mode: &mut RmqueueMode,
    ) -> Option<(FrameIx, MigrateType)> {
        if self.is_sourced() {
            return self.take_chosen(request);
        }
        let zone = &mut *self.zone;
        let taken = zone
            .free_area
            .take(self.frames, &self.policy.rules, request, mode)?;
        if let Some(f) = &taken.extfrag {
            self.tracer.emit(|m| Event::PageAllocExtfrag(f.event(m)));
        }
        if taken.boosts > 0 {
            let block = self.frames.geometry.block_order.frames().into();
            for _ in 0..taken.boosts {
                let raised = zone
                    .marks
                    .raise_boost(zone.managed, block, &self.policy.sysctl);
                zone.boosted |= raised && request.wake;
            }
        }
        self.trace_taken(taken.ix, request.order, taken.list);
        Some((taken.ix, taken.list))
    }

    /// Whether the host's source chooses frames.
    #[inline(always)]
    pub fn is_sourced(&self) -> bool {
        H::SOURCES && self.policy.rules.is_sourced()
    }

    /// Takes the block that the source chooses. Its pageblock has the type of what came there first when it was free as a whole,
    /// or of what cannot be moved and came later: that is a fallback, as one for what can be moved in another's is.
    #[cold]
    fn take_chosen(&mut self, request: BlockRequest) -> Option<(FrameIx, MigrateType)> {
        let (id, BlockRequest { order, mt, .. }) = (self.zone.id(), request);
        let pfn = self.tracer.host.source()?.choose(id, order, mt)?;
        let ix = self.tracer.map.ix(pfn)?;
        let block = self.frames.geometry.block_order;
        let (had, head) = (self.frames.block_type(ix), self.frames.buddy_of(ix));
        let from = head.map_or(order, |head| self.frames.state(head).order());
        if !self.zone.free_area.take_at(self.frames, ix, order) {
            // It is not free here, so nobody gets it.
            return None;
        }
        let (is_other, is_whole) = (had != mt, from >= block);
        let holds = self.zone.free_area.holds_block(self.frames, ix);
        let changes = is_other && holds && (is_whole || had == MigrateType::Movable);
        if is_other && !is_whole {
            let fallback = Fallback {
                ix,
                alloc_order: order,
                fallback_order: from,
                alloc_mt: mt,
                fallback_mt: had,
                change_ownership: changes,
            };
            self.tracer
                .emit(|m| Event::PageAllocExtfrag(fallback.event(m)));
        }
        if changes {
            if order < block {
                self.zone.free_area.retype(self.frames, ix, mt, End::Tail);
            }
            self.frames.set_block_types(ix, order, mt);
        }
        self.trace_taken(ix, order, mt);
        Some((ix, mt))
    }

    /// Takes a block that the source has chosen already, or lets somebody else have it.
    pub fn take_place(&mut self, pfn: Pfn, order: Order) -> Option<FrameIx> {
        let ix = self.tracer.map.ix(pfn)?;
        let is_taken = self.zone.free_area.take_at(self.frames, ix, order);
        is_taken.then(|| {
            self.count(-i64::from(order.frames()));
            ix
        })
    }

    /// Takes a free block from the source too, for whoever is about to take it off its list. False, if it cannot be had.
    pub fn claim(&mut self, ix: FrameIx, order: Order, mt: MigrateType) -> bool {
        let (id, pfn) = (self.zone.id(), self.tracer.map.pfn(ix));
        if !self.is_sourced() {
            return true;
        }
        let source = self.tracer.host.source();
        source.is_some_and(|s| s.claim(id, pfn, order, mt))
    }

    /// Tells the source of a block that is free.
    pub fn tell_given(&mut self, ix: FrameIx, order: Order) {
        if self.is_sourced() {
            let (id, pfn) = (self.zone.id(), self.tracer.map.pfn(ix));
            if let Some(source) = self.tracer.host.source() {
                source.give(id, pfn, order);
            }
        }
    }

    /// Tells the source for whom a block is that is in use.
    pub fn tell_taken(&mut self, ix: FrameIx, order: Order, mt: MigrateType) {
        if self.is_sourced() {
            self.tell_given(ix, order);
            self.claim(ix, order, mt);
        }
    }

    /// Takes from the high-atomic reserve.
    pub fn take_highatomic(&mut self, order: Order) -> Option<FrameIx> {
        let reserve = MigrateType::HighAtomic;
        let ix = self.zone.free_area.take_of(self.frames, order, reserve)?;
        self.trace_taken(ix, order, reserve);
        Some(ix)
    }

    #[inline]
    fn trace_taken(&mut self, ix: FrameIx, order: Order, list: MigrateType) {
        let huge = self.frames.geometry.huge_order;
        let percpu_refill = self.policy.rules.pcp.serves(order, huge) && list.is_ordinary();
        self.tracer.emit(|m| Event::PageAllocZoneLocked {
            pfn: m.pfn(ix),
            order,
            migratetype: list,
            percpu_refill,
        });
    }

    /// Frees a block to the buddy lists, to the list of its pageblock's type.
    pub fn give(&mut self, ix: FrameIx, order: Order, to: FreeTo) {
        self.tell_given(ix, order);
        self.put(ix, order, to);
    }

    /// The same for a block that is free already, for a source.
    fn put(&mut self, ix: FrameIx, order: Order, to: FreeTo) {
        let (frames, rules) = (self.frames, &self.policy.rules);
        let block_order = frames.geometry.block_order;
        // Since 6.10 no list holds a block of several pageblocks that was not merged on it.
        let cut = order > block_order && rules.lists_follow_blocks();
        let piece = if cut { block_order } else { order };
        let end = ix.plus(order.frames());
        let (mut ix, mut counted) = (ix, 0);
        while ix < end {
            let mt = frames.block_type(ix);
            let block = FreeBlock {
                ix,
                order: piece,
                mt,
            };
            if mt != MigrateType::Isolate {
                counted += i64::from(piece.frames());
            }
            self.zone.free_area.give(frames, rules, block, to);
            ix = ix.plus(piece.frames());
        }
        self.count(counted);
    }

    /// Takes a free block off its list, for pages to be moved to, or for whoever set its pageblock apart.
    pub fn isolate(&mut self, ix: FrameIx) -> Order {
        let rules = &self.policy.rules;
        let is_counted = self.frames.state(ix).mt() != MigrateType::Isolate;
        let order = self.zone.free_area.isolate(self.frames, rules, ix);
        if is_counted {
            self.count(-i64::from(order.frames()));
        }
        order
    }

    /// Sets the pageblocks of a span apart (`start_isolate_page_range`): what is free in them, or will be, is on lists
    /// that serve no request, and does not count as free. The span begins and ends with a pageblock, or with the zone.
    pub fn set_apart(&mut self, span: Span) {
        let free = self.zone.free_area.pages_of(MigrateType::Isolate);
        self.cut_free_at(span.start);
        self.cut_free_at(span.end);
        for (at, end) in self.pageblocks(span) {
            self.frames.set_apart(at);
            let apart = MigrateType::Isolate;
            let area = &mut self.zone.free_area;
            area.retype_span(self.frames, (at, end), apart, End::Tail);
        }
        let now = self.zone.free_area.pages_of(MigrateType::Isolate);
        self.count(free as i64 - now as i64);
    }

    /// Ends that (`undo_isolate_page_range`): each pageblock has the type that it had, and what is free as a whole merges
    /// with what lies beside it.
    pub fn rejoin(&mut self, span: Span) {
        self.cut_free_at(span.start);
        self.cut_free_at(span.end);
        let block_order = self.frames.geometry.block_order;
        let mut behind = span.start;
        for (at, end) in self.pageblocks(span) {
            if at < behind {
                // It was part of a larger free block.
                continue;
            }
            let s = self.frames.state(at);
            if s.is_buddy() && s.order() >= block_order {
                let order = self.isolate(at);
                behind = at.plus(order.frames());
                for (at, _) in self.pageblocks(Span {
                    start: at,
                    end: behind,
                }) {
                    self.frames.rejoin(at);
                }
                self.put(at, order, FreeTo::Tail);
            } else {
                let mt = self.frames.rejoin(at);
                let area = &mut self.zone.free_area;
                let free = area.retype_span(self.frames, (at, end), mt, End::Tail);
                self.count(free.into());
            }
        }
    }

    /// Where each pageblock of a span begins and ends in it.
    fn pageblocks(&self, span: Span) -> impl Iterator<Item = (FrameIx, FrameIx)> + use<H> {
        let order = self.frames.geometry.block_order;
        let mut at = span.start;
        core::iter::from_fn(move || {
            let start = at;
            at = start.head(order).plus(order.frames()).min(span.end);
            (start < span.end).then_some((start, at))
        })
    }

    /// Cuts the free block that begins before `ix` and reaches over it, if there is one.
    fn cut_free_at(&mut self, ix: FrameIx) {
        let zone = self.zone.span;
        if ix <= zone.start || ix >= zone.end {
            return;
        }
        if let Some(head) = self.frames.buddy_of(ix)
            && head < ix
        {
            self.zone.free_area.cut_at(self.frames, head, ix);
        }
    }

    /// Adds to the count of free pages.
    #[inline]
    pub fn count(&mut self, pages: i64) {
        self.zone.count(self.delta, pages);
    }

    /// Whether free memory is above the high mark.
    pub fn above_high(&self) -> bool {
        let flags = AllocFlags::WMARK_HIGH;
        let mark = self.zone.marks.of(flags);
        let rules = &self.policy.rules;
        self.zone
            .passes(rules, Order::ZERO, mark, ZoneKind::Movable, flags)
    }
}
