//! Frames on their way between what a CPU keeps and the maps: a batch at a time.

use crate::frame::{MigrateType, Order, Pfn};
use crate::maps::GiveError;
use crate::memory::Memory;
use crate::memory::totals::Floor;
use crate::request::AllocError;
use lock_api::RawMutex;

/// Blocks that are taken or given at a time, at most.
pub(crate) const BATCH: usize = 64;

impl<R: RawMutex> Memory<'_, R> {
    /// Takes up to `out.len()` blocks, of at most a batch. Returns how many, at least one.
    pub(crate) fn take_frames(
        &self,
        out: &mut [u64],
        order: Order,
        mt: MigrateType,
        from: (usize, Floor),
    ) -> Result<usize, AllocError> {
        let mut numbers = [0; BATCH];
        let wanted = out.len().min(BATCH);
        let got = self.take(&mut numbers[..wanted], order, mt, from)?;
        for (out, n) in out.iter_mut().zip(&numbers[..got]) {
            *out = self.frame(*n).0;
        }
        Ok(got)
    }

    /// Takes one block.
    pub(crate) fn take_frame(
        &self,
        order: Order,
        mt: MigrateType,
        from: (usize, Floor),
    ) -> Result<u64, AllocError> {
        let mut one = [0];
        self.take_frames(&mut one, order, mt, from).map(|_| one[0])
    }

    /// Gives blocks back, of at most a batch. A block that is refused stays out.
    pub(crate) fn give_frames(
        &self,
        frames: &mut [u64],
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let (mut numbers, mut count) = ([0; BATCH], 0);
        let mut result = Ok(());
        for &frame in frames.iter() {
            match self.number(Pfn(frame)) {
                Some(n) => {
                    numbers[count] = n;
                    count += 1;
                }
                None => result = Err(GiveError::NoMemory(Pfn(frame))),
            }
        }
        result.and(self.give(&mut numbers[..count], order, mt))
    }
}
