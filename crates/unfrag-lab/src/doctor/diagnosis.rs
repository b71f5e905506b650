//! The result of an examination, as data: the shape of `--json`.
//!
//! Invariant: what could not be seen is `null`, never 0.

use super::advice::{Advice, JudgedSetting, NotGiven};
use super::atomic::AtomicRisk;
use super::call_sites::Place;
use super::compactor::StuckFolio;
use super::features::Features;
use super::forecast::Forecast;
use super::frames::FrameUse;
use super::history::Past;
use super::hugetlb::Pool;
use super::memory_blocks::Unpluggable;
use super::slabs::SlabCache;
use super::watch::Watched;
use super::withheld::{Pins, Withheld};
use super::work::Work;
use crate::geometry::PageSizeFrom;
use crate::host::Unread;
use crate::host::amounts::Amounts;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of an examination. Pages, blocks and huge pages have the sizes that it names.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// Where the evidence came from.
    pub source: String,
    /// `uname -r`; `null` if not known.
    pub kernel_release: Option<String>,
    /// The era whose rules were taken.
    pub kernel_rules: &'static str,
    /// Whether that is an assumption, as no file tells the release.
    pub kernel_rules_assumed: bool,
    /// Bytes in a page.
    pub page_size: u64,
    /// How that is known.
    pub page_size_from: PageSizeFrom,
    /// Bytes in a huge page.
    pub huge_page_bytes: u64,
    /// Order of a huge page.
    pub huge_order: u8,
    /// Bytes in a page of the default hugetlb pool, which `vm.nr_hugepages` sets; `null` without meminfo.
    pub default_huge_page_bytes: Option<u64>,
    /// Bytes of page cache and reclaimable slab by meminfo; `null` without it, or if it lacks a part of them.
    pub reclaimable_bytes: Option<u64>,
    /// How large the host is.
    pub memory: Amounts,
    /// Bytes of slab that can be reclaimed, by meminfo: at best, as an object in use keeps its slab. `null` without it.
    pub reclaimable_slab_bytes: Option<u64>,
    /// Seconds since boot.
    pub uptime_seconds: Option<f64>,
    /// One for each node.
    pub nodes: Vec<NodeDiagnosis>,
    /// One for each populated zone.
    pub zones: Vec<ZoneDiagnosis>,
    /// Huge pages that can be had, on all nodes together.
    pub huge_pages: Forecast,
    /// Whether per-CPU lists have to be emptied before compaction (6.7 and later, by `kernel_rules`).
    pub empties_pcp_lists: bool,
    /// `vm.percpu_pagelist_high_fraction`; `null` where no file tells it, and where compaction does not need it
    /// (before 6.7).
    pub pcp_fraction: Option<u64>,
    /// Huge pages in the default hugetlb pool by now; `null` without meminfo.
    pub huge_pages_in_pool: Option<u64>,
    /// What stands in the way, over all zones; `null` without page flags.
    pub obstacles: Option<Vec<Obstacle>>,
    /// Pages of processes that are pinned, by the kernel's count; page flags do not show where.
    pub pinned_pages: Option<u64>,
    /// Requests that may not wait.
    pub atomic: Vec<AtomicRisk>,
    /// Slab caches: those that grew most, then the largest.
    pub slabs: Vec<SlabCache>,
    /// Places of the kernel's source that allocate: those that grew most, then the largest; `null` without allocinfo.
    pub call_sites: Option<Vec<Place>>,
    /// Stalls, failures and compaction.
    pub work: Vec<Work>,
    /// How long the host was watched: what happened in that time is now, all else is history.
    pub watched: Watched,
    /// What happened since boot, which is no reason to act now.
    pub history: Vec<Past>,
    /// What to do.
    pub advice: Vec<Advice>,
    /// What may be worth doing, and what is needed to say so.
    pub candidates: Vec<NotGiven>,
    /// What would be advised, had evidence not spoken against it.
    pub withdrawn: Vec<NotGiven>,
    /// What helps against what stands in the way, should more huge pages be needed.
    pub if_more_is_needed: Vec<Advice>,
    /// Memory that is not for everybody.
    pub withheld: Vec<Withheld>,
    /// How much can be pinned for long.
    pub pins: Pins,
    /// Pools of huge pages, by sysfs.
    pub pools: Vec<Pool>,
    /// The blocks in which memory is unplugged; `null` without sysfs or page flags.
    pub memory_blocks: Option<Unpluggable>,
    /// What reclaims or merges memory beside the page allocator; each `null` where it could not be read.
    pub features: Features,
    /// Settings that were read: sysctls by their names below `vm`, `thp_enabled` and `thp_defrag`.
    pub settings: BTreeMap<String, String>,
    /// The settings that decide most, those that are advised and those that may be: whether to change them.
    pub judged_settings: Vec<JudgedSetting>,
    /// What was not seen, so that advice may be missing: sysctls, counters.
    pub advice_lacks: Vec<&'static str>,
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
    /// Score of proactive compaction, 0 to 100; `null` if free blocks or the size of one of its zones are not known.
    pub score: Option<u64>,
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
    /// Pages on the buddy lists; `null` if no file tells them.
    pub free_pages: Option<u64>,
    /// Pages on per-CPU lists; `null` where zoneinfo is missing, or does not tell them to their end.
    pub pcp_pages: Option<u64>,
    /// min, low and high, with the boost; `null` without zoneinfo.
    pub watermarks: Option<[u64; 3]>,
    /// The lowest watermark that free memory is below: `min` or `low`; `null` for none, or without zoneinfo.
    pub below: Option<&'static str>,
    /// Pages kept from requests that could use any zone; `null` without zoneinfo.
    pub protection_pages: Option<u64>,
    /// Pages of slab that cannot be reclaimed, where they fill most of a zone that is short of memory.
    pub filled_by_slab_pages: Option<u64>,
    /// Free blocks of a huge page's size; `null` if no file tells them.
    pub free_huge_blocks: Option<u64>,
    /// Huge pages in free blocks of the high-order atomic reserve; `null` without pagetypeinfo.
    pub highatomic_huge_blocks: Option<u64>,
    /// The largest order with a free block; `null` if none is free, or no file tells.
    pub largest_free_order: Option<u8>,
    /// Percent of free memory outside blocks of a huge page's size (of order `huge_order`); `null` if no file tells.
    pub extfrag_for_order_9: Option<u64>,
    /// Share of free memory that orders 3, 4 and that of a huge page cannot use, 0 to 1.
    pub unusable_index: BTreeMap<u8, f64>,
    /// Why a request of order 3, 4 or that of a huge page would fail: near 0 for lack of memory, near 1 for fragmentation;
    /// -1 if it would not.
    pub fragmentation_index: BTreeMap<u8, f64>,
    /// How fragmented it is and why, as a sentence.
    pub verdict: String,
    /// Huge pages that can be had.
    pub huge_pages: Forecast,
    /// The folio at which `vm.compact_memory` would end early.
    pub compaction_stops: Option<StuckFolio>,
    /// What stands in the way; `null` without page flags.
    pub obstacles: Option<Vec<Obstacle>>,
    /// Pageblocks: as many as the kernel counts by their types, or those with memory of the allocator by page flags.
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
