//! The result of an experiment: one shape for all of them, that of `--json`.

use super::source::Quoted;
use super::stats::Statistics;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// The result of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub experiment: String,
    /// Seed of the first run; the others follow.
    pub seed: u64,
    /// Runs of each kernel on each machine.
    pub runs: u32,
    /// Hash of the costs of which simulated time is the sum.
    pub calibration: String,
    /// One for each kernel, machine and variant.
    pub results: Vec<Outcome>,
    /// One kernel against another, where both ran.
    pub comparisons: Vec<Compared>,
}

fn by_metric<S: Serializer>(quoted: &[Quoted], s: S) -> Result<S::Ok, S::Error> {
    s.collect_map(quoted.iter().map(|q| (q.metric, q.value)))
}

/// One kernel on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Kernel.
    pub kernel: String,
    /// Machine.
    pub machine: String,
    /// What is changed about the kernel; empty if nothing.
    pub variant: String,
    /// What differs from the kernel's defaults, and what the source leaves open.
    pub settings: BTreeMap<String, Value>,
    /// What was measured of the runs that finished.
    pub metrics: BTreeMap<String, Statistics>,
    /// The runs that did not finish.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<Unfinished>,
    /// What the source measured of it.
    #[serde(rename = "source", serialize_with = "by_metric")]
    pub quoted: Vec<Quoted>,
}

/// A run that did not finish.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unfinished {
    /// Its seed.
    pub seed: u64,
    /// Why it ended: `time-limit`, `stopped` or `stuck`.
    pub ended: &'static str,
    /// Virtual time at its end.
    pub after_s: f64,
}

/// A metric of two kernels, A and B.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Machine.
    pub machine: String,
    /// The metric, with its unit where it has one.
    pub metric: String,
    /// Kernel and variant of A.
    pub a: String,
    /// Kernel and variant of B.
    pub b: String,
    /// Median of A.
    pub a_median: f64,
    /// Median of B.
    pub b_median: f64,
    /// B - A in percent of A; none if A is 0.
    pub percent: Option<f64>,
    /// The standard error of that, in percent; none of single runs.
    pub stderr_percent: Option<f64>,
    /// B - A in percent of A as the source measured it.
    pub source_percent: Option<f64>,
}

impl Report {
    /// How many runs did not finish.
    pub fn unfinished(&self) -> usize {
        self.results.iter().map(|o| o.unfinished.len()).sum()
    }
}

impl Outcome {
    /// A metric.
    pub fn metric(&self, name: &str) -> Option<&Statistics> {
        self.metrics.get(name)
    }

    /// What the source measured of a metric.
    pub fn quoted(&self, metric: &str) -> Option<f64> {
        let found = self.quoted.iter().find(|q| q.metric == metric);
        found.map(|q| q.value)
    }

    /// Kernel and variant, as one name.
    pub fn label(&self) -> String {
        if self.variant.is_empty() {
            self.kernel.clone()
        } else {
            format!("{} {}", self.kernel, self.variant)
        }
    }
}
