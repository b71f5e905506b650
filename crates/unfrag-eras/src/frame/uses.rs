//! How many frames of each pageblock are in use, by type of the request, counted as the states of frames change. With
//! feature `lab`.
//!
//! Invariant: the counts of a pageblock are the sums over the blocks in use that begin in it, and its share of those that are
//! larger than it.

use super::state::State;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use unfrag::frame::{FrameIx, NR_TYPES, Order};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Frames of one pageblock in use, by type.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Uses([AtomicU32; NR_TYPES]);

/// The counts of all pageblocks.
#[derive(Clone, Copy)]
pub(crate) struct UseTable<'m> {
    uses: &'m [Uses],
    block_order: Order,
}

impl<'m> UseTable<'m> {
    /// Counts that are all 0, of pageblocks of this order.
    pub fn new(uses: &'m [Uses], block_order: Order) -> UseTable<'m> {
        UseTable { uses, block_order }
    }

    /// The state of a frame changes.
    #[inline]
    pub fn change(self, ix: FrameIx, was: State, is: State) {
        if was.has_same_use(is) {
            return;
        }
        if was.heads_use() {
            self.add(ix, was, u32::wrapping_sub);
        }
        if is.heads_use() {
            self.add(ix, is, u32::wrapping_add);
        }
    }

    #[inline]
    fn add(self, ix: FrameIx, state: State, sum: fn(u32, u32) -> u32) {
        let (order, of) = (state.order(), self.block_order);
        let first = (ix.0 >> of.0) as usize;
        let blocks = 1 << order.0.saturating_sub(of.0);
        for uses in self.uses.iter().skip(first).take(blocks) {
            let count = &uses.0[state.mt() as usize];
            count.store(sum(count.load(Relaxed), order.min(of).frames()), Relaxed);
        }
    }

    /// Frames in use of the pageblock that holds `ix`, by type.
    pub fn of(self, ix: FrameIx) -> [u32; NR_TYPES] {
        let uses = &self.uses[(ix.0 >> self.block_order.0) as usize];
        uses.0.each_ref().map(|n| n.load(Relaxed))
    }
}
