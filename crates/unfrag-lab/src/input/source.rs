//! Where events come from.

use crate::error::Result;
use std::ops::RangeInclusive;
use unfrag_linux::file::Wanted;
use unfrag_linux::recording::Events;

/// The events of a recording, which come in batches.
pub trait EventSource: Sync {
    /// Number of events.
    fn len(&self) -> u64;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Times of the first and last event, in nanoseconds of the trace clock; `None` without events.
    fn span(&self) -> Option<(u64, u64)>;

    /// Number of events of each kind of the recording.
    fn rows(&self) -> Vec<u64>;

    /// Gives the events one batch after the other, in the order of time, with what is wanted of them at least. What is outside
    /// of `times` may be left out.
    ///
    /// # Errors
    /// If they cannot be read; and those of `each`.
    fn each(
        &self,
        times: RangeInclusive<u64>,
        wanted: Wanted,
        each: &mut dyn FnMut(&Events) -> Result<()>,
    ) -> Result<()>;
}

impl EventSource for Events {
    fn len(&self) -> u64 {
        self.time.len() as u64
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.time.first().copied().zip(self.time.last().copied())
    }

    fn rows(&self) -> Vec<u64> {
        let mut rows = vec![0; self.tables.len()];
        self.kind.iter().for_each(|&k| rows[usize::from(k)] += 1);
        rows
    }

    fn each(
        &self,
        _: RangeInclusive<u64>,
        _: Wanted,
        each: &mut dyn FnMut(&Events) -> Result<()>,
    ) -> Result<()> {
        each(self)
    }
}
