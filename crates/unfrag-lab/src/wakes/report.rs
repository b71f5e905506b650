//! The answer, as data.

use super::asks::MayFail;
use serde::Serialize;

/// Who caused what kswapd, kcompactd and compaction did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Wakes {
    /// Name of the recording.
    pub source: String,
    /// Release of the recorded kernel.
    pub kernel_release: String,
    /// Events.
    pub events: u64,
    /// Events that the recorder lost, at least.
    pub lost_events: u64,
    /// Seconds of the window, or from the first event to the last.
    pub seconds: f64,
    /// Whether only a command was recorded: wake-ups by others are not in it.
    pub of_command: bool,
    /// What is known of who asked.
    pub stacks: Stacks,
    /// What kswapd did; `null` where the recording does not tell.
    pub kswapd: Option<Worked>,
    /// What kcompactd did.
    pub kcompactd: Option<Worked>,
    /// What tasks compacted themselves.
    pub direct: Option<Worked>,
    /// Wake-ups of kswapd, also where it is not told what it did; `null` where they were not recorded.
    pub kswapd_wakes: Option<u64>,
    /// Wake-ups of kcompactd.
    pub kcompactd_wakes: Option<u64>,
    /// Who it was, in a sentence.
    pub answer: String,
    /// Who asked, by time; who took none stands last, by requests.
    pub callers: Vec<Row>,
    /// The same with whole stacks, for a picture.
    #[serde(skip)]
    pub(super) branches: Vec<Branch>,
}

/// What is known of who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stacks {
    /// Programs alone: stacks were not recorded.
    #[default]
    None,
    /// Stacks, with functions by name.
    Names,
    /// Stacks, whose addresses the host did not name.
    Addresses,
}

/// What is measured of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Time on a CPU, by switches of tasks.
    OnCpu,
    /// Time from waking to going to sleep, what was waited for included.
    Awake,
    /// Time from the beginning of a run to its end, what was waited for included.
    BeginToEnd,
}

/// What was done of a work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Worked {
    /// How it is measured.
    pub measure: Measure,
    /// Seconds in all.
    pub seconds: f64,
    /// Of these, those of which the wake-up was not recorded.
    pub not_recorded_seconds: f64,
    /// Of these, those of a daemon's own timer.
    pub own_timer_seconds: f64,
    /// Seconds at the beginning in which it may have been at work as well: nothing tells.
    pub unsure_seconds: f64,
    /// Whether it is still at work at the end.
    pub at_work_at_end: bool,
    /// How often it was caused.
    pub count: u64,
}

/// A program that asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its share of the row, from 0 to 1: of its time or, where that is none, of its wake-ups and requests.
    pub share: f64,
}

/// Who asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Functions that asked, the innermost first; `null` without a stack.
    pub functions: Option<Vec<String>>,
    /// The innermost module in the stack.
    pub module: Option<String>,
    /// Programs on whose behalf, the largest share first.
    pub programs: Vec<Program>,
    /// Order that was asked for; -1 for compaction of all memory, `null` where the event does not say.
    pub order: Option<i64>,
    /// Flags of the request; `null` where the event does not say.
    pub flags: Option<String>,
    /// Whether the request may fail; `null` where that is not known, and where it is no request.
    pub may_fail: Option<MayFail>,
    /// Whether it is no request, but the kernel's own affair.
    pub is_no_request: bool,
    /// Share of all time that is known, from 0 to 1; `null` where none is.
    pub share: Option<f64>,
    /// Share of all wake-ups of kswapd and kcompactd, from 0 to 1; `null` where there are none.
    pub wakes_share: Option<f64>,
    /// Share of kswapd's and kcompactd's time, from 0 to 1; `null` where that is not known.
    pub daemon_share: Option<f64>,
    /// Seconds of kswapd.
    pub kswapd_seconds: Option<f64>,
    /// Seconds of kcompactd.
    pub kcompactd_seconds: Option<f64>,
    /// Seconds of its own compaction.
    pub direct_seconds: Option<f64>,
    /// Wake-ups of kswapd; `null` where they were not recorded.
    pub kswapd_wakes: Option<u64>,
    /// Wake-ups of kcompactd, those through kswapd included.
    pub kcompactd_wakes: Option<u64>,
    /// Runs of compaction of its own.
    pub direct_runs: Option<u64>,
    /// Requests of order 3 and more.
    pub requests: Option<u64>,
    /// Those of them that failed.
    pub failed: Option<u64>,
}

/// Time at the end of a path, for a picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Branch {
    pub path: Vec<String>,
    pub nanoseconds: u64,
}

impl Wakes {
    /// Whether it is known how long anything worked.
    pub fn is_timed(&self) -> bool {
        [self.kswapd, self.kcompactd, self.direct]
            .iter()
            .any(Option::is_some)
    }

    /// Seconds of all work that is known.
    pub fn all_seconds(&self) -> f64 {
        let all = [self.kswapd, self.kcompactd, self.direct];
        all.iter().flatten().map(|w| w.seconds).sum()
    }
}
