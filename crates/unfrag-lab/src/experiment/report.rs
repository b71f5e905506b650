//! What an experiment came to: one shape for all of them.

use super::compare::Compared;
use super::scenario::Unfinished;
use super::source::Quoted;
use super::stats::Spread;
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
    /// Hash of the costs that the simulated time is made of.
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
    /// What was measured of the runs that came to their end.
    pub metrics: BTreeMap<String, Spread>,
    /// The runs that did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<Unfinished>,
    /// What the source says of it, where it does.
    #[serde(rename = "source", serialize_with = "by_metric")]
    pub quoted: Vec<Quoted>,
}

impl Report {
    /// How many runs did not come to their end.
    pub fn unfinished(&self) -> usize {
        self.results.iter().map(|o| o.unfinished.len()).sum()
    }
}

impl Outcome {
    /// A metric.
    pub fn metric(&self, name: &str) -> Option<&Spread> {
        self.metrics.get(name)
    }

    /// What the source says of a metric.
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
