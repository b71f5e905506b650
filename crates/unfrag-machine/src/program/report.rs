//! What the programs of a run report.

use crate::engine::Nanos;
use crate::kernel::mm::obstacles::Obstacles;
use serde::Serialize;
use std::collections::BTreeMap;

/// A line that a program printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Task.
    pub task: String,
    /// Its number.
    pub number: u32,
    /// Its text.
    pub text: String,
    /// Time.
    pub at_ns: Nanos,
    /// Time since the task's last line, or since its start.
    pub latency_ns: Nanos,
}

/// An attempt to allocate a large block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Start.
    pub at_ns: Nanos,
    /// Duration.
    pub took_ns: Nanos,
    /// The zone that served it; none if it failed.
    pub zone: Option<&'static str>,
}

/// The attempts of a step `high-order`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HighOrderReport {
    /// Name.
    pub name: String,
    /// Order.
    pub order: u8,
    /// Attempts, in their order.
    pub attempts: Vec<Attempt>,
}

impl HighOrderReport {
    /// Attempts that succeeded.
    pub fn successes(&self) -> usize {
        self.attempts.iter().filter(|a| a.zone.is_some()).count()
    }
    /// Attempts that succeeded, in percent, truncated. `spec: 8.1`
    pub fn percent(&self) -> usize {
        100 * self.successes() / self.attempts.len().max(1)
    }
}

/// Counters at a point of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Name.
    pub name: String,
    /// Task.
    pub task: String,
    /// Its number.
    pub number: u32,
    /// Time.
    pub at_ns: Nanos,
    /// Counters since the start of the run.
    pub counters: BTreeMap<&'static str, u64>,
    /// What prevents large blocks, by zone.
    pub obstacles: Vec<Obstacles>,
}

/// The report of all programs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProgramReport {
    /// Lines that were printed.
    pub lines: Vec<Line>,
    /// Attempts at large blocks.
    pub high_order: Vec<HighOrderReport>,
    /// Marks.
    pub marks: Vec<Mark>,
    /// Failures and how often: processes that ended by them, names that did not exist.
    pub failures: BTreeMap<String, u64>,
    /// Processes that ran.
    pub processes: u64,
}
