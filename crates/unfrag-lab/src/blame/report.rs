//! The answer, as data.

use super::holders::UNNAMED;
use crate::geometry::Sizes;
use serde::Serialize;
use std::collections::BTreeMap;

/// Who held the kernel memory that spoilt pageblocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Blame {
    /// Name of the recording.
    pub source: String,
    /// Release of the recorded kernel.
    pub kernel_release: String,
    /// Events.
    pub events: u64,
    /// Events that the recorder lost, at least.
    pub lost_events: u64,
    /// Seconds from the first event to the last.
    pub seconds: f64,
    /// When it begins, in UTC, where the recording says it.
    pub began: Option<String>,
    /// What is known of the frames in use at the beginning.
    pub start: Start,
    /// Sizes of the host's pages and blocks; left out of JSON where they are the usual ones.
    #[serde(skip_serializing_if = "Sizes::are_usual")]
    pub sizes: Sizes,
    /// Seconds from the first event to the first moment that is counted, from which on all frames are known: those in
    /// use before the recording, too. `None` if they never are: then all moments count.
    pub all_known_after_seconds: Option<f64>,
    /// Spoilt pageblocks, on average.
    pub spoilt_blocks: f64,
    /// Blocks with kernel memory at the first moment that is counted, and at the last.
    pub at_start: Blocks,
    /// The same at the last moment.
    pub at_end: Blocks,
    /// What it comes to.
    pub answer: Answer,
    /// Who held frames in them, the largest share first.
    pub holders: Vec<Holder>,
    /// Seconds of an interval.
    pub interval_seconds: u64,
    /// The intervals, in order.
    pub intervals: Vec<Interval>,
    /// The days, in order, where there are several.
    pub days: Vec<Interval>,
}

/// What is known of the frames in use at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Slab and page tables, from page flags.
    PageFlags,
    /// Nothing: only frames that were taken in the recording count.
    #[default]
    Unknown,
}

/// Blocks with kernel memory at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// Those with little of it: fewer than half of their frames.
    pub spoilt: u64,
    /// Those that it fills: half of their frames or more. A spoilt block that fills up is no longer spoilt.
    pub filled: u64,
}

/// What it comes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// In a sentence.
    pub sentence: String,
    /// What to do about the program that has most of it; `null` where nobody has, and where it is none that can be told to.
    pub advice: Option<String>,
    /// Share of the spoilt blocks at the end that was not added in the window, from 0 to 1; `null` without page flags, which
    /// tell it.
    pub before_share: Option<f64>,
    /// The largest slab caches at the end; empty without slabinfo.
    pub caches: Vec<Cache>,
    /// What to ask next.
    pub next: Next,
}

/// A slab cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// Its name.
    pub name: String,
    /// Bytes of its slabs at the end.
    pub bytes: u64,
    /// By how much it grew; `null` with one copy of slabinfo.
    pub grown_bytes: Option<i64>,
}

/// What to ask next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// What the host can do about it.
    #[default]
    Doctor,
    /// Who allocates the objects of the caches.
    RecordSlab,
    /// Who took what was there before: a longer recording.
    RecordLonger,
    /// What else the trace tells, which has no snapshots.
    Summary,
}

impl Next {
    /// The command, of the input that the shell calls `path`.
    pub fn command(self, path: &str) -> String {
        match self {
            Next::Doctor => format!("unfrag doctor {path}"),
            Next::Summary => format!("unfrag summary {path}"),
            Next::RecordSlab => "unfrag record --system --slab --for 10m -o slab.unfrag".to_owned(),
            Next::RecordLonger => "unfrag record --system --keep 20G --for 7d -o days".to_owned(),
        }
    }
}

/// Who held frames, and what for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holder {
    /// Name of the program; all processes of that name together, and the kernel's workers. `None` for those whose names
    /// are not in the recording, which stand last.
    pub program: Option<String>,
    /// What the frames were for.
    pub purpose: String,
    /// Spoilt pageblocks that it answers for, on average.
    pub spoilt_blocks: f64,
    /// Spoilt pageblocks that it answers for at the end.
    pub at_end: f64,
    /// Of these, those that it got in the window: what it has more than at the beginning.
    pub added: f64,
    /// Its share of all spoilt blocks, from 0 to 1.
    pub share: f64,
    /// Frames that it took in the recording.
    pub taken: u64,
    /// Frames of these that it held at the end.
    pub held_at_end: u64,
}

/// An interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// When it begins, in seconds from the first event.
    pub seconds: f64,
    /// When it begins, in UTC, where the recording says it.
    pub date: Option<String>,
    /// Spoilt pageblocks, on average.
    pub spoilt_blocks: f64,
    /// What each holder answers for, by its number among the holders.
    pub by_holder: BTreeMap<usize, f64>,
}

impl Holder {
    /// The program in words.
    pub fn who(&self) -> &str {
        self.program.as_deref().unwrap_or(UNNAMED)
    }

    /// In a word.
    pub fn label(&self) -> String {
        format!("{}, {}", self.who(), self.purpose)
    }
}
