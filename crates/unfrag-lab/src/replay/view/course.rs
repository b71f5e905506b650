//! The course of free memory over the whole replay, all zones together: on the recorded host, and in each model.
//!
//! Invariant: a course is of the same samples as the levels of a what-if, so that both have the same beginning, end and mean.

use crate::replay::answer::Report;
use crate::replay::answer::report::Sample;
use crate::replay::answer::what_if::quantity::{QUANTITIES, Quantity};
use serde::Serialize;
use std::collections::BTreeMap;

/// A number over time.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Course {
    /// At the first snapshot.
    pub begin: u64,
    /// At the last snapshot.
    pub end: u64,
    /// `end - begin`.
    pub change: i64,
    /// Mean of all snapshots.
    pub mean: u64,
}

/// Whose course it is, and of what.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Free {
    /// Free pages.
    pub pages: Course,
    /// Free blocks of the size of a huge page (a larger block counts as several).
    pub huge_pages: Course,
}

fn quantity(name: &str) -> Option<&'static Quantity> {
    QUANTITIES.iter().find(|q| q.name == name)
}

impl Course {
    /// Of a level by the name of its end in a what-if, such as `free_pages`.
    fn of(level: &str, samples: &[Sample], large: u8) -> Option<Course> {
        let none = BTreeMap::new();
        let end = quantity(&format!("{level}_end"))?;
        let mean = quantity(&format!("{level}_mean"))?;
        let whole = |value: f64| value.round() as u64;
        let begin = whole(end.begin(samples, large)?);
        let end = whole(end.of(&none, samples, large)?);
        Some(Course {
            begin,
            end,
            change: i64::try_from(end).ok()? - i64::try_from(begin).ok()?,
            mean: whole(mean.of(&none, samples, large)?),
        })
    }
}

impl Free {
    /// In these samples; `None` of none.
    pub fn of(report: &Report, samples: &[Sample]) -> Option<Free> {
        let large = report.recording.sizes.large_order();
        Some(Free {
            pages: Course::of("free_pages", samples, large)?,
            huge_pages: Course::of("free_huge_blocks", samples, large)?,
        })
    }
}
