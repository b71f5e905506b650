//! Fallback in the V19 patches (October 2005): blocks of the largest order, four types, and an
//! eighth of memory kept for fallbacks.
//!
//! The remainder of a whole block that is relabelled goes to the lists of its label, as V19 frees by label. The
//! known mails do not say so (part 3/7 is missing).
//! `spec: 2.1-2.3`

use super::block_request::{BlockRequest, Fallback, Taken};
use super::free_area::FreeArea;
use super::lists::FreeBlock;
use super::v19_stats::{LARGE_ORDER, V19_TYPES, number};
use crate::frame::{FrameIx, Frames, MigrateType, Order};
use MigrateType::{Fallback as Spare, Movable, Reclaimable, Unmovable};

/// A block of another type: where, of which order, on whose list.
type Found = (FrameIx, Order, MigrateType);

const fn row(mt: MigrateType) -> [MigrateType; 3] {
    match mt {
        Movable => [Spare, Unmovable, Reclaimable],
        Reclaimable => [Spare, Unmovable, Movable],
        _ => [Spare, Reclaimable, Movable],
    }
}

impl FreeArea {
    pub(super) fn take_v19(&mut self, frames: &Frames, request: BlockRequest) -> Option<Taken> {
        self.steal_whole(frames, request)
            .or_else(|| self.fall_back(frames, request))
    }

    /// The label for a block that a request of type `mt` takes over.
    fn label(&self, mt: MigrateType) -> MigrateType {
        if self.v19.fallback_reserve < self.v19.fallback_needed {
            Spare
        } else {
            mt
        }
    }

    /// Takes a block of the largest order from any type, and with it the whole block.
    fn steal_whole(&mut self, frames: &Frames, request: BlockRequest) -> Option<Taken> {
        let largest = frames.geometry.max_order;
        let victim = V19_TYPES
            .into_iter()
            .find(|&t| t != request.mt && !self.lists.is_empty(largest, t))?;
        let ix = self.lists.list(largest, victim).head;
        let old = frames.block_type(ix);
        let label = self.label(request.mt);
        self.lists.remove(frames, ix);
        frames.set_block_type(ix, label);
        self.relabel(frames, old, label);
        self.expand(frames, (ix, largest, label), request.order);
        Some(self.taken(frames, request, (ix, largest, victim), label))
    }

    /// Takes the largest block that is larger than the request from the types in turn.
    fn fall_back(&mut self, frames: &Frames, request: BlockRequest) -> Option<Taken> {
        let mut reserve_empty = false;
        let mut found = None;
        'rows: for victim in row(request.mt) {
            for order in Order(request.order.0 + 1)
                .up_to(frames.geometry.max_order)
                .rev()
            {
                if !self.lists.is_empty(order, victim) {
                    found = Some((order, victim));
                    break 'rows;
                }
            }
            reserve_empty |= victim == Spare;
        }
        if reserve_empty {
            self.v19.fallbacks[number(request.mt)] += 1;
        }
        let (order, victim) = found?;
        let ix = self.lists.list(order, victim).head;
        self.lists.remove(frames, ix);
        let mut owner = victim;
        if request.mt == Unmovable {
            owner = Unmovable;
            if order >= LARGE_ORDER {
                let (old, label) = (frames.block_type(ix), self.label(request.mt));
                frames.set_block_type(ix, label);
                self.relabel(frames, old, label);
                self.v19.full_steal += 1;
            } else {
                self.v19.partial_steal += 1;
            }
        }
        self.expand(frames, (ix, order, owner), request.order);
        Some(self.taken(frames, request, (ix, order, victim), owner))
    }

    fn relabel(&mut self, frames: &Frames, from: MigrateType, to: MigrateType) {
        let block = u64::from(frames.geometry.max_order.frames());
        self.v19.relabel(from, to, block);
    }

    fn expand(&mut self, frames: &Frames, (ix, order, mt): Found, to: Order) {
        self.lists.expand(frames, FreeBlock { ix, order, mt }, to);
    }

    fn taken(
        &self,
        frames: &Frames,
        request: BlockRequest,
        (ix, order, victim): Found,
        list: MigrateType,
    ) -> Taken {
        let f = Fallback {
            ix,
            alloc_order: request.order,
            fallback_order: order,
            alloc_mt: request.mt,
            fallback_mt: victim,
            change_ownership: frames.block_type(ix) == request.mt,
        };
        Taken {
            ix,
            list,
            extfrag: Some(f),
            boosts: 0,
        }
    }
}
