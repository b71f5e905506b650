//! [`Report`]: a free range for a host to take back.
//!
//! Invariant: what is being reported is free again at the latest when its [`Report`] is dropped.

use super::shards::Memory;
use super::totals::Floor;
use crate::frame::{Order, Pfn};
use crate::maps::{FreeRun, GiveError};
use lock_api::RawMutex;

/// A free run of frames that is being reported: nobody gets a frame of it until it is
/// [acknowledged](Self::acknowledge). One that is dropped instead is free again, and reported again later.
#[must_use = "it is free again, and was not reported, when it is dropped"]
pub struct Report<'s, 'm, R: RawMutex> {
    shared: &'s Memory<'m, R>,
    shard: usize,
    /// Until it is given back.
    run: Option<FreeRun>,
}

impl<R: RawMutex> Report<'_, '_, R> {
    /// The first frame and the number of frames of each stretch that the host does not know to be free.
    pub fn stretches(&self) -> impl Iterator<Item = (Pfn, u64)> + '_ {
        self.run.iter().flat_map(FreeRun::stretches)
    }

    /// The host has taken it back, or refused to: it is free again. It is not reported again until it has been in use, if
    /// `done`.
    ///
    /// # Errors
    /// [`GiveError`], if somebody freed it meanwhile.
    pub fn acknowledge(mut self, done: bool) -> Result<(), GiveError> {
        self.give_back(done)
    }

    fn give_back(&mut self, done: bool) -> Result<(), GiveError> {
        match self.run.take() {
            Some(run) => self
                .shared
                .counted(self.shard, |e| e.give_reported(run, done)),
            None => Ok(()),
        }
    }
}

impl<R: RawMutex> Drop for Report<'_, '_, R> {
    fn drop(&mut self) {
        if self.give_back(false).is_err() {
            self.shared.count_refused();
        }
    }
}

impl<R: RawMutex> core::fmt::Debug for Report<'_, '_, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.debug_list().entries(self.stretches()).finish()
    }
}

impl<'m, R: RawMutex> Memory<'m, R> {
    /// Takes a free run of `2^order` frames, of which the host does not know some to be free; from order 9 on. `None`, if
    /// there is none, or if it would leave fewer frames than the min watermark meanwhile.
    pub fn report(&self, order: Order) -> Option<Report<'_, 'm, R>> {
        let (shard, run) = (0..self.spans().len()).find_map(|shard| {
            let run = self.with(shard, |e| {
                // What would be reserved in vain would be missing meanwhile.
                let is_there = e.has_unreported(order);
                let may = is_there && self.node(shard).reserve(1, order, Floor::Min) == 1;
                may.then(|| e.take_unreported(order)).flatten()
            });
            Some((shard, run.flatten()?))
        })?;
        Some(Report {
            shared: self,
            shard,
            run: Some(run),
        })
    }
}
