//! What an operation on a zone needs, in one bundle, and the operations that placement alone cannot
//! do: those that tell tracepoints, raise the marks and keep the count of free pages.

use super::memory_zone::Zone;
use crate::env::Env;
use crate::frame::{FrameIx, Frames, MigrateType, Order, ZoneKind};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::place::{At, FreeBlock, Memory, Want};
use crate::trace::Event;
use crate::tracer::Tracer;

/// A zone by `&mut`, the frame table and the rules by `&`, the counter of the CPU that works on it, and
/// who listens.
pub(crate) struct ZoneOps<'a, 'm, H> {
    pub zone: &'a mut Zone,
    /// The CPU's part of the zone's count of free pages.
    pub delta: &'a mut i32,
    pub frames: &'a Frames<'m>,
    pub env: &'a Env,
    pub tracer: Tracer<'a, H>,
}

impl<H: Host> ZoneOps<'_, '_, H> {
    /// Takes a block from the buddy lists, with all that a fallback brings: its event, and the boost
    /// of the marks. Does not touch the free counter. Returns the block and the type of the list
    /// that it came from (`__rmqueue`).
    #[inline(always)]
    pub fn take(&mut self, want: Want, memory: &mut Memory) -> Option<(FrameIx, MigrateType)> {
        let zone = &mut *self.zone;
        let taken = zone
            .place
            .take(self.frames, &self.env.rules, want, memory)?;
        if let Some(f) = &taken.extfrag {
            self.tracer.emit(|m| Event::PageAllocExtfrag(f.event(m)));
        }
        if taken.boosts > 0 {
            let block = self.frames.geometry.block_order.frames().into();
            for _ in 0..taken.boosts {
                let raised = zone
                    .marks
                    .raise_boost(zone.managed, block, &self.env.sysctl);
                zone.boosted |= raised && want.wake;
            }
        }
        self.tell_taken(taken.ix, want.order, taken.list);
        Some((taken.ix, taken.list))
    }

    /// Takes from the high-atomic reserve.
    pub fn take_highatomic(&mut self, order: Order) -> Option<FrameIx> {
        let reserve = MigrateType::HighAtomic;
        let ix = self.zone.place.take_of(self.frames, order, reserve)?;
        self.tell_taken(ix, order, reserve);
        Some(ix)
    }

    #[inline]
    fn tell_taken(&mut self, ix: FrameIx, order: Order, list: MigrateType) {
        let percpu_refill = self.env.rules.pcp.serves(order) && list.is_ordinary();
        self.tracer.emit(|m| Event::PageAllocZoneLocked {
            pfn: m.pfn(ix),
            order,
            migratetype: list,
            percpu_refill,
        });
    }

    /// Frees a block to the buddy lists, to the list of its pageblock's type.
    pub fn give(&mut self, ix: FrameIx, order: Order, at: At) {
        let (frames, rules) = (self.frames, &self.env.rules);
        let block_order = frames.geometry.block_order;
        // Since 6.10 no list holds a block of several pageblocks that was not merged on it.
        let cut = order > block_order && rules.lists_follow_blocks();
        let piece = if cut { block_order } else { order };
        let end = ix.plus(order.frames());
        let mut ix = ix;
        while ix < end {
            let mt = frames.block_type(ix);
            let block = FreeBlock {
                ix,
                order: piece,
                mt,
            };
            self.zone.place.give(frames, rules, block, at);
            ix = ix.plus(piece.frames());
        }
        self.count(order.frames().into());
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
        let rules = &self.env.rules;
        self.zone
            .passes(rules, Order::ZERO, mark, ZoneKind::Movable, flags)
    }
}
