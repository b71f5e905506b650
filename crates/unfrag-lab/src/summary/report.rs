//! What a trace tells, as data.
//!
//! Invariant: a part is absent where the trace has none of its events. Lists begin with the largest.

use serde::Serialize;
use std::collections::BTreeMap;

/// What a trace tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Where the trace came from.
    pub source: String,
    /// Its format.
    pub format: String,
    /// Release of its kernel, where it is known.
    pub kernel: Option<String>,
    /// CPUs of the recorded host.
    pub cpus: u32,
    /// Time of the first event, in seconds of the trace's clock.
    pub first_seconds: f64,
    /// Seconds from the first event to the last.
    pub seconds: f64,
    /// Events.
    pub events: u64,
    /// Events by kind.
    pub kinds: Vec<KindCount>,
    /// Requests for pages.
    pub requests: Option<Requests>,
    /// Requests served from blocks of another type.
    pub fallbacks: Option<Fallbacks>,
    /// Compaction.
    pub compaction: Option<Compaction>,
    /// The daemons that reclaim.
    pub kswapd: Option<Kswapd>,
    /// Processes that had to reclaim themselves.
    pub direct_reclaim: Option<DirectReclaim>,
    /// Share of the pages that the host allocated between the first and the last snapshot of which the trace has the
    /// events; `None` if no snapshots tell it.
    pub share_of_allocations: Option<f64>,
    /// What is missing from the trace.
    pub lost: Lost,
    /// What was assumed, a sentence each.
    pub assumed: Vec<String>,
    /// Questions that stay open for want of events.
    pub not_recorded: Vec<NotRecorded>,
    /// What was recorded, and did not happen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did_not_happen: Vec<NotRecorded>,
    /// Whether the trace says which events were recorded, so that an open question is one of the recording.
    #[serde(skip)]
    pub says_what_was_recorded: bool,
}

/// Events of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// `system:name`, or the name where the trace has no system.
    pub event: String,
    /// How many.
    pub count: u64,
}

/// A question without events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRecorded {
    /// What is not known.
    pub question: &'static str,
    /// Events that would tell it.
    pub events: String,
}

/// Who did something.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Who {
    /// Name of the process, all of that name together; `None` for those whose names are not in the trace.
    pub process: Option<String>,
    /// Whether an interrupt did it while that process ran.
    pub interrupt: bool,
}

impl Who {
    /// Whether it stands for all whose names are not in the trace.
    pub(super) fn is_unnamed(&self) -> bool {
        self.process.is_none()
    }
}

/// Requests for pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// All.
    pub count: u64,
    /// Those that got nothing.
    pub failed: u64,
    /// Requests of each order.
    pub orders: BTreeMap<u64, u64>,
    /// By process, with most pages asked for first.
    pub processes: Vec<ProcessRequests>,
    /// By order, flags and type, with most pages asked for first.
    pub kinds: Vec<RequestKind>,
    /// Failed ones, by process, order, flags and type, most first.
    pub failures: Vec<Failure>,
}

/// Requests of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessRequests {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Requests.
    pub count: u64,
    /// Those that got nothing.
    pub failed: u64,
    /// Pages asked for.
    pub pages: u64,
    /// Requests of each order.
    pub orders: BTreeMap<u64, u64>,
}

/// Requests of one order, flags and type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestKind {
    /// Order.
    pub order: u64,
    /// Names of the flags.
    pub flags: Option<String>,
    /// Migrate type.
    #[serde(rename = "type")]
    pub migratetype: Option<String>,
    /// Requests.
    pub count: u64,
    /// Those that got nothing.
    pub failed: u64,
    /// Pages asked for.
    pub pages: u64,
}

/// Failed requests of one process, order, flags and type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Order.
    pub order: u64,
    /// Names of the flags.
    pub flags: Option<String>,
    /// Migrate type.
    #[serde(rename = "type")]
    pub migratetype: Option<String>,
    /// How many.
    pub count: u64,
}

/// Requests served from blocks of another type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fallbacks {
    /// All.
    pub count: u64,
    /// Those that took less than a pageblock, where the trace has the pageblocks' order.
    pub fragmenting: Option<u64>,
    /// By process, orders, types and what became of the pageblock, most first.
    pub kinds: Vec<Fallback>,
}

/// Fallbacks of one process, orders and types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Order of the request.
    pub order: Option<u64>,
    /// Order of the block that was taken.
    pub fallback_order: Option<u64>,
    /// Type asked for.
    pub wanted: Option<String>,
    /// Type of the block.
    pub taken_from: Option<String>,
    /// Whether the event says that ownership changed.
    pub change_ownership: Option<bool>,
    /// How many.
    pub count: u64,
}

/// Compaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compaction {
    /// Requests that compacted for themselves, by process and order, most first.
    pub direct: Option<Vec<Asked>>,
    /// Runs over a zone.
    pub runs: Option<Runs>,
    /// Answers to whether a zone is worth it, by order.
    pub suitable: Option<Vec<Answer>>,
    /// Answers to whether a run is done, by order.
    pub finished: Option<Vec<Answer>>,
    /// What the scanner for pages to move saw and took.
    pub migrate_scanner: Option<Scanner>,
    /// What the scanner for free pages saw and took.
    pub free_scanner: Option<Scanner>,
    /// Pages moved, and those that could not be.
    pub moved: Option<Moved>,
    /// Runs left out because earlier ones were in vain, by order.
    pub deferred: Option<BTreeMap<i64, u64>>,
    /// Wake-ups of kcompactd by order.
    pub kcompactd: Option<BTreeMap<i64, u64>>,
}

/// Requests of a process for blocks of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Order; absent where the event does not have it.
    pub order: Option<i64>,
    /// How many.
    pub count: u64,
}

/// Runs of compaction over a zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Runs {
    /// Begun.
    pub begun: u64,
    /// Begun, but not ended in the trace.
    pub open: u64,
    /// Ended ones by result, most first.
    pub results: Vec<RunResult>,
}

/// Runs with one result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The result; absent where the event does not have it.
    pub result: Option<String>,
    /// Runs.
    pub count: u64,
    /// Time of those whose beginning is in the trace.
    #[serde(flatten)]
    pub time: Times,
}

/// How long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// How many were timed.
    pub timed: u64,
    /// Seconds of all.
    pub seconds: f64,
    /// Seconds of the longest.
    pub longest_seconds: f64,
}

/// An answer about a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Order that was wanted; negative for a run without one.
    pub order: Option<i64>,
    /// The answer.
    pub result: Option<String>,
    /// How often.
    pub count: u64,
}

/// What a scanner did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scanner {
    /// Ranges.
    pub ranges: u64,
    /// Pages looked at.
    pub scanned: u64,
    /// Pages taken.
    pub taken: u64,
}

/// Pages of migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Batches.
    pub batches: u64,
    /// Moved.
    pub migrated: u64,
    /// Could not be moved.
    pub failed: u64,
}

/// The daemons that reclaim.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Kswapd {
    /// Who woke them for which order, most first.
    pub asked: Option<Vec<Asked>>,
    /// Times they woke, by node and order.
    pub wakes: Option<Vec<Wake>>,
    /// Times they went to sleep.
    pub sleeps: Option<u64>,
    /// From waking to sleep.
    #[serde(flatten)]
    pub awake: Times,
}

/// Wake-ups of a node's daemon for an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wake {
    /// Node.
    pub node: Option<i64>,
    /// Order.
    pub order: Option<i64>,
    /// How often.
    pub count: u64,
}

/// Processes that had to reclaim themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DirectReclaim {
    /// Times that one had to.
    pub stalls: u64,
    /// Begun, but not ended in the trace.
    pub open: u64,
    /// Ended, but not begun in the trace.
    pub begun_before: u64,
    /// Pages reclaimed by all that ended.
    pub reclaimed: Option<u64>,
    /// By process and order, those that waited longest first.
    pub kinds: Vec<Stall>,
}

/// Stalls of a process for an order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Order; absent where the event does not have it.
    pub order: Option<i64>,
    /// How many.
    pub count: u64,
    /// Time of those that ended.
    #[serde(flatten)]
    pub time: Times,
    /// Pages reclaimed in them.
    pub reclaimed: Option<u64>,
}

/// What is missing from the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Gaps that the tracer reports.
    pub gaps: u64,
    /// Events lost in those with a number.
    pub events: u64,
    /// Gaps without a number.
    pub gaps_of_unknown_size: u64,
    /// Events that later ones overwrote before the trace was read.
    pub overwritten: Option<u64>,
    /// What is wrong with the lines of a text, a sentence.
    pub lines_not_understood: Option<String>,
    /// The first lines that were not understood.
    pub first_lines: Vec<String>,
}

impl Lost {
    /// Whether nothing is known to be missing.
    pub fn nothing(&self) -> bool {
        *self == Lost::default()
    }
}

impl Times {
    /// Adds one of this length in nanoseconds.
    pub(super) fn add(&mut self, nanos: u64) {
        let seconds = nanos as f64 / 1e9;
        self.timed += 1;
        self.seconds += seconds;
        self.longest_seconds = self.longest_seconds.max(seconds);
    }
}
