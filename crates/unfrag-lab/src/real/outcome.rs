//! What was measured.

use crate::report::number::rank;
use serde::Serialize;

/// The percentiles that are reported.
pub(super) const PERCENTILES: [u32; 8] = [5, 25, 50, 75, 90, 95, 99, 100];

/// A run on each ground.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Bytes of memory that were fragmented.
    pub bytes: u64,
    /// What was measured on each ground.
    pub outcomes: Vec<Outcome>,
}

/// What was measured on a ground.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `pool` or `host`.
    pub on: &'static str,
    /// Percentiles of the time for a zeroed huge page, in microseconds: the percent, and the time.
    pub percentiles_us: Vec<(u32, f64)>,
    /// Huge pages that the driver wanted.
    pub wanted: u32,
    /// Huge pages that it got.
    pub huge_pages: u32,
    /// Time of all requests, in seconds.
    pub total_s: f64,
    /// Frames that were copied meanwhile, for whatever reason.
    pub frames_copied: u64,
    /// Pages that were kept.
    pub pages_kept: u32,
    /// Pages of them that did not hold their stamp at the end.
    pub pages_wrong: u32,
}

impl Outcome {
    /// The outcome of requests that took so many nanoseconds; those that failed are not among them.
    pub(super) fn new(on: &'static str, wanted: u32, mut latencies: Vec<u64>) -> Outcome {
        latencies.sort_unstable();
        let percentile = |p: u32| {
            let ns = latencies.get(rank(latencies.len(), p as usize))?;
            Some((p, *ns as f64 / 1e3))
        };
        Outcome {
            on,
            percentiles_us: PERCENTILES.into_iter().filter_map(percentile).collect(),
            wanted,
            huge_pages: latencies.len() as u32,
            total_s: latencies.iter().sum::<u64>() as f64 / 1e9,
            frames_copied: 0,
            pages_kept: 0,
            pages_wrong: 0,
        }
    }
}
