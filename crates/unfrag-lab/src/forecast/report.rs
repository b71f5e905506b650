//! The answer, as data.

use super::grid::{DAY, Lacking};
use super::trend::Falls;
use crate::geometry::PageSizeFrom;
use serde::Serialize;

/// How long until a need fails.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Name of the input.
    pub source: String,
    /// The need, such as `64x2M`.
    pub need: String,
    /// Blocks that are needed.
    pub count: u64,
    /// Bytes in each.
    pub block_bytes: u64,
    /// Bytes in a page.
    pub page_size: u64,
    /// How that is known.
    pub page_size_from: PageSizeFrom,
    /// Looks.
    pub looks: u64,
    /// Looks that do not say when they were taken, and count nowhere.
    pub undated: u64,
    /// What tells when they were taken.
    pub dated_by: DatedBy,
    /// Looks that could not be read, and count nowhere.
    pub not_read: Option<NotRead>,
    /// Seconds from the first look to the last.
    pub seconds: f64,
    /// Blocks that are free.
    pub free: Blocks,
    /// Blocks that reclaim and compaction could make at best.
    pub at_best: Blocks,
}

/// What tells when looks were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DatedBy {
    /// The names of their directories.
    Names,
    /// What recorded them.
    Recorded,
    /// How long their host ran: those of several boots lie over each other.
    Uptime,
    /// A range of Prometheus.
    Series,
}

/// Looks that could not be read whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotRead {
    /// How many.
    pub looks: u64,
    /// Of so many.
    pub of: u64,
    /// The newest of them.
    pub newest: String,
    /// Why that one could not be read.
    pub why: String,
    /// Days by which it is newer than the last look that was read; `null` where it is older, or nothing says when it was
    /// taken.
    pub newest_days_after_last: Option<f64>,
}

/// A number of blocks over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Blocks {
    /// Looks that tell it.
    pub looks: u64,
    /// At the last of them.
    pub last: Option<u64>,
    /// Looks at which they were fewer than needed.
    pub below: u64,
    /// Days from the last of these to the last look.
    pub last_below_days_before: Option<f64>,
    /// When the need fails.
    pub when: When,
}

/// When a need fails. Days are counted from the last look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum When {
    /// Nothing tells.
    NotKnown {
        /// Why.
        why: Why,
    },
    /// There were too few at the last look.
    Now,
    /// They become more, and nine of ten futures have enough of them.
    Never,
    /// In so many days.
    In {
        /// One in ten futures is before this.
        from_days: f64,
        /// The middle; `null` beyond ten times of what was looked at.
        median_days: Option<f64>,
        /// One in ten futures is after this; `null` as above.
        to_days: Option<f64>,
        /// Change a day.
        per_day: f64,
    },
    /// They become fewer, and nine of ten futures have enough of them as far as futures go.
    Later {
        /// So many days: ten times of what was looked at.
        beyond_days: f64,
        /// Change a day.
        per_day: f64,
    },
}

/// Why nothing tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No look has the number.
    NotInLooks,
    /// There are fewer than twenty looks.
    TooFewLooks,
    /// Most of the time has no look.
    Gaps,
    /// The trend may as well be none.
    NoTrend,
}

impl When {
    pub(super) fn of(falls: Falls, is_missing: bool) -> When {
        let days = |seconds: f64| seconds / DAY;
        let not_known = |why| When::NotKnown { why };
        match falls {
            _ if is_missing => not_known(Why::NotInLooks),
            Falls::Unknown(Lacking::Looks) => not_known(Why::TooFewLooks),
            Falls::Unknown(Lacking::Gaps) => not_known(Why::Gaps),
            Falls::NoTrend => not_known(Why::NoTrend),
            Falls::Already => When::Now,
            Falls::Never => When::Never,
            Falls::Later { beyond, per_day } => When::Later {
                beyond_days: days(beyond),
                per_day,
            },
            Falls::In {
                from,
                median,
                to,
                per_day,
            } => When::In {
                from_days: days(from),
                median_days: median.map(days),
                to_days: to.map(days),
                per_day,
            },
        }
    }
}
