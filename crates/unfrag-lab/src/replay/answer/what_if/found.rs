//! What a what-if found, as data: a part of the report.
//!
//! Invariant: a verdict, or the reason why there is none, stands beside each bar.

use super::class::Class;
use serde::Serialize;

/// What another kernel or setting would change.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    /// Which questions this one is like.
    pub class: Class,
    /// Comparisons of that class with real kernels; 0: not measured, and the bars are those of wider classes.
    pub comparisons: u64,
    /// Loads of these comparisons.
    pub loads: Vec<String>,
    /// Number by number.
    pub changes: Vec<Change>,
}

/// What can be said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole bar is above.
    More,
    /// The whole bar is below.
    Less,
    /// The whole bar is close to it.
    Same,
}

/// A number of a what-if.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Its name, such as `allocstall` or `free_pages_end`.
    pub name: &'static str,
    /// What the recorded host had; `null` if it does not show it.
    pub recorded: Option<f64>,
    /// What the recorded kernel's model makes of it; `null` where that has no answer.
    pub own: Option<f64>,
    /// What the model of the kernel that is asked for makes of it.
    pub asked: f64,
    /// The prediction for a real host: what the recorded one had, changed as the model changes.
    pub predicted: f64,
    /// In four of five cases the real number lies between these; `null` where nothing was measured.
    pub bar: Option<[f64; 2]>,
    /// What it is compared with: what the recorded host had, else what its model makes of it; `null` without either.
    pub instead_of: Option<f64>,
    /// What can be said; `null` where nothing can.
    pub verdict: Option<Verdict>,
    /// Why nothing can be said.
    pub reason: Option<String>,
}
