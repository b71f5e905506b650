//! Allocations that failed, as the kernel reports them: who asked for what, and what memory was like.
//! `spec: linux-mm 4.3 (9)`
//!
//! The first few are kept whole, all are counted. A request that wants no report (`__GFP_NOWARN`) gets none,
//! and neither does one that is tried again.
//!
//! Invariant: a report only looks; nothing of the run depends on it.

use crate::engine::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use unfrag::MAX_ORDER;

/// Orders of free blocks.
pub(crate) const ORDERS: usize = MAX_ORDER as usize + 1;

/// The failures of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AllocFailures {
    /// Failures that the kernel reports.
    pub reported: u64,
    /// The first of them.
    pub first: Vec<AllocFailure>,
}

/// An allocation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AllocFailure {
    /// When.
    pub at_ns: Nanos,
    /// The task that ran, or that the interrupt interrupted; none on an idle CPU.
    pub task: Option<String>,
    /// The CPU.
    pub cpu: usize,
    /// Whether an interrupt asked.
    pub in_interrupt: bool,
    /// Order of the request.
    pub order: u8,
    /// Its flags, with the bits of Linux 6.1.
    pub gfp: u32,
    /// Memory at that moment.
    pub zones: Vec<ZoneState>,
}

/// A zone at that moment; amounts in pages.
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
    /// Free blocks by order, for each type that has some.
    pub free_blocks: BTreeMap<&'static str, [u64; ORDERS]>,
}
