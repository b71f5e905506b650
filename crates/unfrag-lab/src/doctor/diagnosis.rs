//! The result of an examination, as data: the shape of `--json`.
//!
//! Invariant: what could not be seen is `null`, never 0.

use super::advice::Advice;
use super::atomic::AtomicRisk;
use super::compactor::StuckFolio;
use super::forecast::Forecast;
use super::frames::FrameUse;
use super::slabs::SlabCache;
use super::work::Work;
use crate::inspect::Unread;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of an examination. Pages are of 4 KiB, blocks and huge pages of 2 MiB.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// Where the evidence came from.
    pub source: String,
    /// `uname -r`; `null` if not known.
    pub kernel_release: Option<String>,
    /// Seconds since boot.
    pub uptime_seconds: Option<f64>,
    /// One for each node.
    pub nodes: Vec<NodeDiagnosis>,
    /// One for each populated zone.
    pub zones: Vec<ZoneDiagnosis>,
    /// Huge pages that can be had, on all nodes together.
    pub huge_pages: Forecast,
    /// `vm.percpu_pagelist_high_fraction`, to be put back after per-CPU lists were emptied; `null` where
    /// compaction does not need that (before 6.7).
    pub pcp_fraction: Option<u64>,
    /// Huge pages in the hugetlb pool by now; `null` without meminfo.
    pub huge_pages_in_pool: Option<u64>,
    /// What stands in the way, over all zones; `null` without page flags.
    pub obstacles: Option<Vec<Obstacle>>,
    /// Pages of processes that are pinned, by the kernel's count; page flags do not show where.
    pub pinned_pages: Option<u64>,
    /// Requests that may not wait.
    pub atomic: Vec<AtomicRisk>,
    /// Slab caches: those that grew most, then the largest.
    pub slabs: Vec<SlabCache>,
    /// Stalls, failures and compaction.
    pub work: Vec<Work>,
    /// What to change.
    pub advice: Vec<Advice>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Files that would have told more, and why they did not.
    pub unread: Vec<Unread>,
}

/// A node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeDiagnosis {
    /// Node id.
    pub node: u32,
    /// Score of proactive compaction, 0 to 100.
    pub score: u64,
    /// Scores at which proactive compaction ends and begins; `null` where the kernel has none or it is off.
    pub proactive_low_high: Option<[u64; 2]>,
    /// Huge pages that can be had.
    pub huge_pages: Forecast,
}

/// A zone.
#[derive(Clone, Debug, Serialize)]
pub struct ZoneDiagnosis {
    /// Node id.
    pub node: u32,
    /// Zone name.
    pub zone: String,
    /// Pages that the allocator manages; `null` without zoneinfo.
    pub managed_pages: Option<u64>,
    /// Pages on the buddy lists.
    pub free_pages: u64,
    /// Pages on per-CPU lists.
    pub pcp_pages: u64,
    /// min, low and high, with the boost; `null` without zoneinfo.
    pub watermarks: Option<[u64; 3]>,
    /// Pages kept from requests that could use any zone.
    pub protection_pages: u64,
    /// Free 2 MiB blocks.
    pub free_huge_blocks: u64,
    /// Percent of free memory outside 2 MiB blocks.
    pub extfrag_for_order_9: u64,
    /// Share of free memory that orders 3, 4 and 9 cannot use, 0 to 1.
    pub unusable_index: BTreeMap<u8, f64>,
    /// Why a request of order 3, 4 or 9 would fail: near 0 for lack of memory, near 1 for fragmentation; -1 if it
    /// would not.
    pub fragmentation_index: BTreeMap<u8, f64>,
    /// How fragmented it is and why, as a sentence.
    pub verdict: String,
    /// Huge pages that can be had.
    pub huge_pages: Forecast,
    /// The folio at which `vm.compact_memory` would end early.
    pub compaction_stops: Option<StuckFolio>,
    /// What stands in the way; `null` without page flags.
    pub obstacles: Option<Vec<Obstacle>>,
    /// Blocks with memory of the allocator, by page flags.
    pub blocks: Option<u64>,
}

/// A use of memory that stands in the way of huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// The use.
    pub kind: FrameUse,
    /// Pages in this use.
    pub pages: u64,
    /// Blocks that hold at least one of them.
    pub blocks: u64,
    /// Blocks that hold no other obstacle.
    pub blocks_alone: u64,
}
