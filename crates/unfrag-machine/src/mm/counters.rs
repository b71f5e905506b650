//! Event counters of the simulated kernel.

use crate::engine::Nanos;

/// Event counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the names are those of /proc/vmstat, or say it"
)]
pub struct VmCounters {
    pub pgfault: u64,
    pub pgmajfault: u64,
    pub cow_copies: u64,
    pub pswpin: u64,
    pub pswpout: u64,
    pub pgpgin: u64,
    pub pgpgout: u64,
    pub read_errors: u64,
    /// Objects of transfers that came from their pools.
    pub mempool_used: u64,
    pub write_errors: u64,
    pub slabs_scanned: u64,
    pub inode_pages_dropped: u64,
    pub oom_victims: u64,
    pub thp_fault_alloc: u64,
    pub thp_fault_fallback: u64,
    pub thp_split_page: u64,
    pub busy_injected: u64,
    /// Time that tasks spent waiting for congestion to end.
    pub congestion_wait: Nanos,
    /// Time that tasks spent throttled by reclaim.
    pub throttled: Nanos,
    /// Time that writers were throttled.
    pub dirty_pause: Nanos,
    /// Time spent in direct reclaim, waits included.
    pub direct_reclaim: Nanos,
}
