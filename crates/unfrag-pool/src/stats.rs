//! Numbers of a pool.

use crate::pool::Pool;
use std::sync::atomic::Ordering::Relaxed;

/// Numbers of a pool. What threads keep for themselves counts as free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Frames of all arenas.
    pub present: u64,
    /// Free frames.
    pub free: u64,
    /// Blocks of 2 MiB that are free as a whole.
    pub whole_blocks: u32,
    /// Blocks of 2 MiB that hold something that cannot be moved.
    pub tainted_blocks: u32,
    /// Gigabytes that do.
    pub tainted_gigabytes: u32,
    /// Frames that were allocated since the pool began.
    pub pgalloc: u64,
    /// Frames that were given back.
    pub pgfree: u64,
    /// Blocks that were refused when they were given back: they had been freed twice.
    pub refused: u64,
    /// Allocations that had to wait, by how long it took: place `n` has those of less than `2^n` nanoseconds that are in no
    /// lower place.
    pub stalls: Vec<u64>,
    /// Rarer events, with the names that Linux gives them, and `owner_panic`: calls of owners that panicked.
    pub events: Vec<(&'static str, u64)>,
}

impl Stats {
    /// An event's count.
    pub fn event(&self, name: &str) -> u64 {
        let of = self.events.iter().find(|(n, _)| *n == name);
        of.map_or(0, |(_, count)| *count)
    }
}

impl Pool {
    /// Its numbers now. It looks at each block's record.
    pub fn stats(&self) -> Stats {
        let memory = &self.inner.base.memory;
        let (pgalloc, pgfree) = memory.allocs_and_frees();
        let mut stats = Stats {
            pgalloc,
            pgfree,
            refused: memory.refused.load(Relaxed),
            stalls: self.inner.events.stalls.get().to_vec(),
            events: self.inner.events.all(),
            ..Stats::default()
        };
        let c = memory.shared.counts();
        stats.present = c.present;
        stats.whole_blocks = c.whole;
        stats.tainted_blocks = c.tainted;
        stats.tainted_gigabytes = c.tainted_gigabytes;
        stats.refused += memory.shared.refused();
        // Of threads that are at work, a free may be counted before the allocation that another one made.
        let in_use = (pgalloc.wrapping_sub(pgfree) as i64).max(0) as u64;
        stats.free = stats.present.saturating_sub(in_use);
        stats
    }
}
