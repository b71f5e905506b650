//! [`Report`]: a free range for a host to take back.

use super::memory::Shared;
use crate::frame::{Order, Pfn};
use crate::maps::{FreeRun, GiveError};
use lock_api::RawMutex;

/// A free run of frames that is being reported: nobody gets a frame of it until it is
/// [acknowledged](Shared::acknowledge). It is acknowledged once, since that takes it away.
#[derive(Debug)]
#[must_use = "its frames stay in use until it is acknowledged"]
pub struct Report {
    shard: usize,
    base: Pfn,
    run: FreeRun,
}

impl Report {
    /// The first frame and the number of frames of each stretch that the host does not know to be free.
    pub fn stretches(&self) -> impl Iterator<Item = (Pfn, u32)> + '_ {
        let all = self.run.stretches();
        all.map(|(start, frames)| (Pfn(self.base.0 + u64::from(start)), frames))
    }
}

impl<R: RawMutex> Shared<'_, R> {
    /// Takes a free run of `2^order` frames, of which the host does not know some to be free; from order 9 on. `None`, if
    /// there is none.
    pub fn report(&self, order: Order) -> Option<Report> {
        (0..self.shards()).find_map(|shard| {
            let run = self.with_counted(shard, |e| e.take_unreported(order))??;
            Some(Report {
                shard,
                base: self.start_of(shard),
                run,
            })
        })
    }

    /// The host has taken a run back, or refused to: it is free again. It is not reported again until it has been in use, if
    /// `done`.
    ///
    /// # Errors
    /// [`GiveError`], if somebody freed it meanwhile.
    pub fn acknowledge(&self, report: Report, done: bool) -> Result<(), GiveError> {
        let given = self.with_counted(report.shard, |e| e.give_reported(report.run, done));
        given.unwrap_or(Err(GiveError::NotABlock(0)))
    }
}
