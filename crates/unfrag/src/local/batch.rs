//! Frames on their way between what a CPU keeps and the maps: a batch at a time.

use crate::frame::{MigrateType, Order, Pfn};
use crate::local::arrays::{BATCH, Shelf};
use crate::maps::GiveError;
use crate::memory::Memory;
use crate::memory::totals::Floor;
use crate::request::AllocError;
use lock_api::RawMutex;

impl<R: RawMutex> Memory<'_, R> {
    /// Takes up to `wanted` blocks, of at most a batch: one for the caller, the others for a shelf that is empty.
    pub(crate) fn take_batch(
        &self,
        shelf: Shelf<'_>,
        wanted: usize,
        order: Order,
        mt: MigrateType,
        from: (usize, Floor),
    ) -> Result<Pfn, AllocError> {
        let mut blocks = [0; BATCH];
        let wanted = wanted.min(BATCH);
        let got = self.take(&mut blocks[..wanted], order, mt, from)?;
        // The lowest is handed out first.
        let base = self.frame(0).0;
        shelf.fill(&blocks[1..got], |n| Pfn(base + u64::from(n)));
        Ok(self.frame(blocks[0]))
    }

    /// Takes one block.
    pub(crate) fn take_frame(
        &self,
        order: Order,
        mt: MigrateType,
        from: (usize, Floor),
    ) -> Result<Pfn, AllocError> {
        let mut one = [0];
        self.take(&mut one, order, mt, from)?;
        Ok(self.frame(one[0]))
    }

    /// Gives blocks back, of at most a batch, each of which [`block`](Self::block) has seen. A block that is refused stays out.
    pub(crate) fn give_frames(
        &self,
        frames: &mut [u64],
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let mut numbers = [0; BATCH];
        for (n, frame) in numbers.iter_mut().zip(frames.iter()) {
            *n = self.number_of(Pfn(*frame));
        }
        let count = frames.len().min(BATCH);
        self.give(&mut numbers[..count], order, mt)
    }
}
