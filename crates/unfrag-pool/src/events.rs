//! Counters of events, with the names that Linux gives them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Events that are rare: none is counted on the way of an allocation that succeeds at once.
        #[derive(Debug, Default)]
        pub(crate) struct Events {
            $($(#[$doc])* pub $name: Counter,)*
        }

        impl Events {
            /// All counters with their names.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)*]
            }
        }
    };
}

events! {
    /// Allocations that could not be served at once, and reclaimed, compacted or waited.
    allocstall,
    /// Frames that owners gave back to kswapd.
    pgsteal_kswapd,
    /// Frames that owners gave back to an allocation.
    pgsteal_direct,
    /// Times that kswapd was woken.
    kswapd_wake,
    /// Frames that were moved.
    pgmigrate_success,
    /// Blocks that should have moved, and stayed.
    pgmigrate_fail,
    /// Allocations that compacted.
    compact_stall,
    /// Those that got a block of 2 MiB.
    compact_success,
    /// Those that did not.
    compact_fail,
    /// Times that kcompactd was woken.
    compact_daemon_wake,
    /// Blocks of 2 MiB that kcompactd made.
    compact_daemon_success,
    /// Blocks of 2 MiB that an extent got.
    thp_fault_alloc,
    /// Blocks of 2 MiB that an extent did not get.
    thp_fault_fallback,
}
