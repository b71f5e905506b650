//! Where events go while they are read.
//!
//! Invariant: what was given away is in the order of time, and nothing given later is earlier.

use crate::error::{Cause, Error, Result};
use crate::recording::Events;

/// Events given away at a time.
pub(crate) const BATCH: usize = 1 << 19;

/// Takes events in batches.
pub(crate) struct Batches<'a> {
    /// Events after which a batch is given away.
    pub limit: usize,
    /// Takes them.
    pub give: &'a mut dyn FnMut(Events) -> Result<()>,
}

/// Reads without giving any batch away: all events stay in memory.
pub(crate) fn all_at_once<T>(read: impl FnOnce(&mut Batches<'_>) -> T) -> T {
    read(&mut Batches {
        limit: usize::MAX,
        give: &mut |_| Ok(()),
    })
}

impl Batches<'_> {
    /// Events that are held back of a batch, so that one that comes a little late finds its place.
    pub fn held_back(&self) -> usize {
        self.limit / 8
    }
}

/// The error of a recording that has to be read as a whole, for this reason.
pub(crate) fn not_in_batches(why: &'static str) -> Error {
    Error::new(Cause::NotInBatches(why)).help("read it again with all events in memory")
}
