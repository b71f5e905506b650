//! Counters of events, with the names that Linux gives them.
//!
//! They are numbers to look at: nobody concludes from one what another thread has done, so none orders anything.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Durations, counted by powers of two of nanoseconds: place `n` has those of less than `2^n` that are in no lower one.
#[derive(Debug)]
pub(crate) struct Durations([AtomicU64; DURATIONS]);

/// Up to 2^39 ns, which is nine minutes.
pub(crate) const DURATIONS: usize = 40;

impl Default for Durations {
    fn default() -> Durations {
        Durations([const { AtomicU64::new(0) }; DURATIONS])
    }
}

impl Durations {
    pub fn add(&self, of: Duration) {
        let bits = u64::BITS - (of.as_nanos() as u64).leading_zeros();
        self.0[(bits as usize).min(DURATIONS - 1)].fetch_add(1, Relaxed);
    }
    pub fn get(&self) -> [u64; DURATIONS] {
        self.0.each_ref().map(|n| n.load(Relaxed))
    }
}

/// Events that are rare: none is counted on the way of an allocation that succeeds at once.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Allocations that could not be served at once, and reclaimed, compacted or waited.
    pub allocstall: Counter,
    /// How long these took.
    pub stalls: Durations,
    /// Frames that owners gave back to kswapd.
    pub pgsteal_kswapd: Counter,
    /// Frames that owners gave back to an allocation.
    pub pgsteal_direct: Counter,
    /// Times that kswapd was woken.
    pub kswapd_wake: Counter,
    /// Frames that were moved.
    pub pgmigrate_success: Counter,
    /// Blocks that should have moved, and stayed.
    pub pgmigrate_fail: Counter,
    /// Allocations that compacted.
    pub compact_stall: Counter,
    /// Those that got a block of 2 MiB.
    pub compact_success: Counter,
    /// Those that did not.
    pub compact_fail: Counter,
    /// Times that kcompactd was woken.
    pub compact_daemon_wake: Counter,
    /// Blocks of 2 MiB that kcompactd made.
    pub compact_daemon_success: Counter,
    /// Blocks of 2 MiB that an extent got.
    pub thp_fault_alloc: Counter,
    /// Blocks of 2 MiB that an extent did not get.
    pub thp_fault_fallback: Counter,
    /// Calls of owners that panicked.
    pub owner_panic: Counter,
}

impl Events {
    /// All counters with their names.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("allocstall", &self.allocstall),
            ("pgsteal_kswapd", &self.pgsteal_kswapd),
            ("pgsteal_direct", &self.pgsteal_direct),
            ("kswapd_wake", &self.kswapd_wake),
            ("pgmigrate_success", &self.pgmigrate_success),
            ("pgmigrate_fail", &self.pgmigrate_fail),
            ("compact_stall", &self.compact_stall),
            ("compact_success", &self.compact_success),
            ("compact_fail", &self.compact_fail),
            ("compact_daemon_wake", &self.compact_daemon_wake),
            ("compact_daemon_success", &self.compact_daemon_success),
            ("thp_fault_alloc", &self.thp_fault_alloc),
            ("thp_fault_fallback", &self.thp_fault_fallback),
            ("owner_panic", &self.owner_panic),
        ];
        all.map(|(name, counter)| (name, counter.get())).to_vec()
    }
}
