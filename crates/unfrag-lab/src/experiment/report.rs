//! What an experiment came to: one shape for all of them, for programs and for people.

use super::source::Quoted;
use super::stats::Spread;
use crate::report::columns;
use serde::Serialize;
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
    pub settings: BTreeMap<String, String>,
    /// What was measured.
    pub metrics: BTreeMap<String, Spread>,
    /// What the source says of it, where it does.
    #[serde(skip)]
    pub quoted: Vec<Quoted>,
}

impl Outcome {
    /// A metric.
    pub fn metric(&self, name: &str) -> Option<&Spread> {
        self.metrics.get(name)
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

fn number(x: f64) -> String {
    if x == 0.0 || x.abs() >= 100.0 {
        format!("{x:.0}")
    } else if x.abs() >= 10.0 {
        format!("{x:.1}")
    } else {
        format!("{x:.2}")
    }
}

/// The source's table beside ours.
pub fn text(r: &Report) -> String {
    let mut out = format!(
        "{}: {} {} a kernel, seeds from {}, calibration {}\n\n",
        r.experiment,
        r.runs,
        if r.runs == 1 { "run" } else { "runs" },
        r.seed,
        r.calibration
    );
    let head = [
        "kernel", "machine", "metric", "source", "ours", "from", "to",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for o in &r.results {
        for (name, s) in &o.metrics {
            let quoted = o.quoted.iter().find(|q| q.metric == name);
            rows.push(vec![
                o.label(),
                o.machine.clone(),
                name.clone(),
                quoted.map_or_else(|| "-".into(), |q| number(q.value)),
                number(s.median),
                number(s.min),
                number(s.max),
            ]);
        }
    }
    columns::push(&mut out, "", 3, &rows);
    out
}
