//! The report of a replay, as data: the format of `--json`, and the source of every view.
//!
//! Invariant: nothing here depends on the host that runs the replay (no clock, no paths), so a recording
//! and settings always give the same bytes.

use super::what_if::found::WhatIf;
use crate::geometry::Sizes;
use crate::replay::start::ListOrder;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything that one `unfrag replay` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The recording that was replayed.
    pub recording: RecordingSummary,
    /// `predict` or `observe`.
    pub mode: String,
    /// `exact` (began at the kernel's own free lists), `occupancy`, `counts`, or `boot` (each kernel placed anew what was
    /// in use).
    pub start: String,
    /// Settings that were asked for, as `NAME=VALUE` or `NAME=VALUE@SECONDS`.
    pub asked_settings: Vec<String>,
    /// How far the first touches of the trace show the order of the start's lists; `null` from an exact start.
    pub start_lists: Option<ListOrder>,
    /// What the recorded kernel itself showed, at each snapshot.
    pub recorded: Vec<Sample>,
    /// One for each kernel asked for, in that order.
    pub kernels: Vec<KernelReport>,
    /// The recorded kernel as it was, where it was not asked for and replayed to compare with; its numbers are in the what-ifs.
    #[serde(skip)]
    pub own: Option<KernelReport>,
    /// What `--mode observe` found; `null` otherwise.
    pub observe: Option<Observed>,
}

/// Whether a recording is whole.
#[derive(Clone, Debug, Serialize)]
pub struct Observed {
    /// Allocations and frees between the first and the last snapshot.
    pub events: u64,
    /// Classes of events against the kernel's counters.
    pub classes: Vec<ClassCheck>,
    /// Events that no rule explains.
    pub unclassified: u64,
    /// Their share of all events.
    pub unclassified_share: f64,
    /// The layout at each mark that holds the kernel's free lists.
    pub layouts: Vec<LayoutCheck>,
}

/// A class of events and the kernel's own count of it.
#[derive(Clone, Debug, Serialize)]
pub struct ClassCheck {
    /// What.
    pub class: String,
    /// Pages (or huge pages) in the trace.
    pub pages: u64,
    /// The counter in vmstat.
    pub counter: String,
    /// By how much it rose; `null` if the kernel has no such counter.
    pub counted: Option<u64>,
    /// (trace - counter) / counter.
    pub difference: Option<f64>,
}

/// The frames that the events say are free, against the kernel's free lists.
#[derive(Clone, Debug, Serialize)]
pub struct LayoutCheck {
    /// Name of the mark.
    pub name: String,
    /// Free pages there.
    pub free_pages: u64,
    /// Free by the events, in use there.
    pub wrongly_free: u64,
    /// In use by the events, free there.
    pub wrongly_used: u64,
}

/// What is known of the recording.
#[derive(Clone, Debug, Serialize)]
pub struct RecordingSummary {
    /// File name without its directory.
    pub file: String,
    /// `uname -r` of the recorded kernel.
    pub kernel_release: String,
    /// CPUs of the recorded host.
    pub cpus: u32,
    /// Events in the trace.
    pub events: u64,
    /// Events that the recorder lost.
    pub lost_events: u64,
    /// Share of the pages that the host allocated between the first and the last snapshot of which the trace has the
    /// events; `null` if the snapshots do not tell it.
    pub share_of_allocations: Option<f64>,
    /// Length of the trace in seconds.
    pub seconds: f64,
    /// Memory that the page allocator manages, in bytes.
    pub managed_bytes: u64,
    /// Snapshots within the trace.
    pub snapshots: u64,
    /// Sizes of the host's pages and blocks; left out of JSON where they are the usual ones (pages of 4 KiB, 11 orders,
    /// pageblocks and huge pages of order 9).
    #[serde(skip_serializing_if = "Sizes::are_usual")]
    pub sizes: Sizes,
}

/// The result of one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// Preset name, such as `6.1`.
    pub kernel: String,
    /// Whether this is the era that was recorded.
    pub recorded_era: bool,
    /// Why the replay says nothing: the model broke down; `null` where it did not. Then there are no numbers of this kernel
    /// but its failures: they would be those of a host that no longer did its work.
    pub broke_down: Option<String>,
    /// What it would change against the recorded kernel as it was, with bars; `null` where it broke down.
    pub what_if: Option<WhatIf>,
    /// Settings of the recorded host that nobody recorded, and that were guessed, by name.
    pub guessed_settings: Vec<String>,
    /// Every sysctl and switch in force, by name.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Against the recorded snapshots; `null` unless this is the recorded era.
    pub accuracy: Option<Accuracy>,
    /// The accuracy from a start by counts, where `accuracy` is from the kernel's exact state: of one replay, at the recorded
    /// pace. The difference from that of such a replay from the exact state, which a note names, is the error of the start.
    pub accuracy_from_counts: Option<Accuracy>,
    /// The replays whose medians these numbers are; `null` for a single replay.
    pub ensemble: Option<Ensemble>,
    /// State at each snapshot's moment.
    pub samples: Vec<Sample>,
    /// Totals of the whole replay, by name (allocations, frees, fallbacks …); `null` for what the recording does not
    /// show.
    pub totals: BTreeMap<String, Option<u64>>,
    /// Allocations that found no page.
    pub failures: Vec<Failure>,
    /// Every pageblock over time.
    pub block_map: Option<BlockMap>,
    /// What a reader must know of this result (what was applied as given, what is missing).
    pub notes: Vec<String>,
}

impl KernelReport {
    /// Leaves out the numbers of a model that broke down.
    pub(super) fn leave_out_numbers(&mut self) {
        self.what_if = None;
        self.accuracy = None;
        self.accuracy_from_counts = None;
        self.ensemble = None;
        self.samples = vec![];
        self.totals = BTreeMap::new();
        self.block_map = None;
    }

    /// Allocations of this kernel that found no page.
    pub fn failed(&self) -> u64 {
        self.failures.iter().map(|f| f.count).sum()
    }
}

/// Replays that differ in how fast kswapd is.
#[derive(Clone, Debug, Serialize)]
pub struct Ensemble {
    /// How many.
    pub members: u64,
    /// The least and the largest time for a page that kswapd looks at, of the recorded one.
    pub pace: [f64; 2],
    /// Skill of free pages of the members by themselves: least, median, largest; `null` where there is
    /// no accuracy.
    pub free_pages_skill: Option<[f64; 3]>,
}

/// Allocations that failed, by order and mask.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Order of the request.
    pub order: u8,
    /// Its gfp mask as text, such as `GFP_HIGHUSER_MOVABLE|__GFP_COMP`.
    pub gfp: String,
    /// How many.
    pub count: u64,
}

impl Failure {
    /// Several lists beside each other: of each order and mask, how many each list has.
    pub(crate) fn by_kind<'f>(
        lists: impl ExactSizeIterator<Item = &'f [Failure]>,
    ) -> BTreeMap<(u8, &'f str), Vec<u64>> {
        let len = lists.len();
        let mut kinds: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for (i, list) in lists.enumerate() {
            for f in list {
                let counts = kinds.entry((f.order, &f.gfp[..]));
                counts.or_insert_with(|| vec![0; len])[i] += f.count;
            }
        }
        kinds
    }
}

/// State of memory at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Name of the snapshot, such as `s0004`.
    pub name: String,
    /// Seconds since the first event.
    pub seconds: f64,
    /// One for each populated zone.
    pub zones: Vec<ZoneSample>,
}

/// State of one zone at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct ZoneSample {
    /// Node id.
    pub node: u32,
    /// Zone name, such as `DMA32`.
    pub zone: String,
    /// Pages that the zone manages.
    pub managed_pages: u64,
    /// Pages on the buddy lists.
    pub free_pages: u64,
    /// Pages on per-CPU lists; `null` where the source does not show them.
    pub pcp_pages: Option<u64>,
    /// Free blocks of each order of the host.
    pub free_blocks: Vec<u64>,
    /// Unusable free space index, 0 to 1, at order "3" and at that of a huge page ("9" where a page has 4 KiB). The kernel,
    /// `inspect` and the doctor cut the same number off after thousandths.
    pub unusable_index: BTreeMap<String, f64>,
    /// Free blocks of the size of a huge page, 2 MiB where a page has 4 KiB (a larger block counts as several).
    pub free_huge_blocks: u64,
    /// Pageblocks of each type, by name.
    pub pageblocks: BTreeMap<String, u64>,
    /// Pageblocks that hold frames of another type than their own; `null` where it is not known.
    pub mixed_pageblocks: Option<u64>,
    /// How far the replays of an ensemble are apart; `null` for a single replay and for the recording.
    pub spread: Option<Spread>,
}

/// The least and the largest that any replay of an ensemble came to.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// Pages on the buddy lists.
    pub free_pages: [u64; 2],
    /// Free blocks of the size of a huge page.
    pub free_huge_blocks: [u64; 2],
    /// Unusable free space index at the same orders as of a sample.
    pub unusable_index: BTreeMap<String, [f64; 2]>,
}

/// The error of a replay, measured against the recorded kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Accuracy {
    /// Half the sum over orders of the absolute differences of shares of free pages.
    pub order_distribution_error: Measure,
    /// |predicted - recorded| / recorded free pages; 1 where none was free and some were predicted.
    pub free_pages_error: Measure,
    /// Absolute error of the unusable index, at the same orders as of a sample.
    pub unusable_index_error: BTreeMap<String, Measure>,
    /// Half the sum over types of the absolute differences of shares of pageblocks; `null` where no snapshot shows types.
    pub pageblock_type_error: Option<Measure>,
    /// From an exact start: the share of allocations that the model put on the kernel's own frame.
    pub frame_match: Option<FrameMatch>,
    /// Which faults got a huge page, in the model and on the recorded host; `null` if no fault asked for one.
    pub huge_faults: Option<HugeFaults>,
    /// Snapshots that were compared.
    pub snapshots: u64,
    /// Events lost by the recorder: the more, the less these numbers say.
    pub lost_events: u64,
    /// These measures by snapshot, for charts.
    pub by_snapshot: Vec<SnapshotError>,
}

impl Accuracy {
    /// Whether free memory is followed worse than by a forecaster who only counts pages: its amount, or its pieces.
    pub fn is_worse_than_counting(&self) -> bool {
        let pieces = self.unusable_index_error.values();
        let mut all = pieces.chain([&self.free_pages_error, &self.order_distribution_error]);
        all.any(Measure::is_worse_than_counting)
    }
}

/// An error up to this one at every snapshot is negligible: the files of a snapshot are read one after the other, so that the
/// recording itself is no more exact.
pub const NEGLIGIBLE: f64 = 0.02;
/// A skill below this one is worse than counting.
pub const NO_BETTER: f64 = -0.05;

impl Measure {
    /// Whether the error is more than negligible, and larger than that of a forecaster who only counts pages.
    pub fn is_worse_than_counting(&self) -> bool {
        self.max > NEGLIGIBLE && self.skill.is_some_and(|s| s < NO_BETTER)
    }
}

/// One error measure over all snapshots.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measure {
    /// Median over snapshots.
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Largest.
    pub max: f64,
    /// 1 - sum of errors / sum of the forecaster's errors; `null` if the forecaster has none.
    pub skill: Option<f64>,
}

/// Allocations put on the kernel's own frame.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FrameMatch {
    /// Allocations compared.
    pub allocations: u64,
    /// Those on the kernel's own frame.
    pub matched: u64,
}

/// Faults that asked for a huge page: which got one.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HugeFaults {
    /// Faults that asked for one.
    pub faults: u64,
    /// Those that got one in the model. In an ensemble, as all of these counts, in the replay at the recorded pace.
    pub predicted: u64,
    /// Those that got one on the recorded host.
    pub recorded: u64,
    /// Those that got one on both.
    pub both: u64,
    /// `both / predicted`; `null` if none got one in the model.
    pub precision: Option<f64>,
    /// `both / recorded`; `null` if none got one on the recorded host.
    pub recall: Option<f64>,
    /// How long they took in the model; `null` if none got one there.
    pub wait: Option<HugeWait>,
}

/// The time from a fault's request to its huge page in the model, without zeroing: the looks and moves of its own
/// compaction by the costs of a server of today (`calibration-modern.toml`). No recording has its twin.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HugeWait {
    /// Faults that were served without compaction of their own.
    pub at_once_percent: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// `p90_us / p50_us`.
    pub p90_over_p50: f64,
}

/// Errors at one snapshot, of the model and of the forecaster who only counts.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotError {
    /// Name of the snapshot.
    pub name: String,
    /// Zone.
    pub zone: String,
    /// Seconds since the first event.
    pub seconds: f64,
    /// `[model, forecaster]` order-distribution error.
    pub order_distribution: [f64; 2],
    /// `[model, forecaster]` free-pages error.
    pub free_pages: [f64; 2],
    /// `[model, forecaster]` unusable-index error at order 3.
    pub unusable_3: [f64; 2],
    /// `[model, forecaster]` unusable-index error at the order of a huge page (9 where a page has 4 KiB).
    pub unusable_9: [f64; 2],
    /// `[model, forecaster]` pageblock-type error; `null` where the snapshot shows no types.
    pub pageblock_type: Option<[f64; 2]>,
}

/// Every pageblock at every sample: what a map of memory over time is drawn from.
#[derive(Clone, Debug, Serialize)]
pub struct BlockMap {
    /// First frame of the first block.
    pub first_pfn: u64,
    /// Frames in a block.
    pub block_pages: u32,
    /// Type names that the digits in `types` stand for.
    pub type_names: Vec<String>,
    /// Seconds since the first event, one for each row.
    pub seconds: Vec<f64>,
    /// For each row, one digit a block: index into `type_names`; `.` where no memory is.
    pub types: Vec<String>,
    /// For each row and block, how full it is: `0` empty to `9` full, `.` where no memory is.
    pub fullness: Vec<String>,
}
