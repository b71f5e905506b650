//! Reports of failed allocations: the request and the state of memory. `spec: 4.3 (9)`
//!
//! The first few are kept whole, all are counted. A request with `__GFP_NOWARN` gets no report, and
//! neither does one that is tried again.

use crate::engine::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use unfrag_eras::MAX_ORDER;

/// Orders of free blocks.
pub(crate) const ORDERS: usize = MAX_ORDER as usize + 1;

/// The failed allocations of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AllocFailures {
    /// Number of reports.
    pub reported: u64,
    /// The first reports.
    pub first: Vec<AllocFailure>,
}

/// An allocation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AllocFailure {
    /// Time.
    pub at_ns: Nanos,
    /// The task that ran or was interrupted; none on an idle CPU.
    pub task: Option<String>,
    /// The CPU.
    pub cpu: usize,
    /// Whether the request came from an interrupt.
    pub in_interrupt: bool,
    /// Order of the request.
    pub order: u8,
    /// Its flags, with the bits of Linux 6.1.
    pub gfp: u32,
    /// The zones at that time.
    pub zones: Vec<ZoneState>,
}

/// A zone at that time; amounts in pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are those of the kernel's report")]
pub struct ZoneState {
    pub node: u8,
    pub name: &'static str,
    /// As watermark checks see it.
    pub free: u64,
    pub min: u64,
    pub low: u64,
    pub high: u64,
    pub active_anon: u64,
    pub inactive_anon: u64,
    pub active_file: u64,
    pub inactive_file: u64,
    pub present: u64,
    pub managed: u64,
    pub all_unreclaimable: bool,
    /// Free blocks by order, for each migratetype that has any.
    pub free_blocks: BTreeMap<&'static str, [u64; ORDERS]>,
}
