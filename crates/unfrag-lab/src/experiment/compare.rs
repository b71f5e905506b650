//! One kernel against another on the same machine, in the manner of diff-aim9. `spec: linux-mm 8.1`

use super::Name;
use super::report::Outcome;
use super::source::{self, AIM9, AIM9_UNITS, PARALLEL_BUILD1};
use super::stats::Spread;
use serde::Serialize;

/// A metric of two kernels, A and B.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Machine.
    pub machine: String,
    /// What is compared.
    pub metric: String,
    /// Kernel and variant of the one.
    pub a: String,
    /// Kernel and variant of the other.
    pub b: String,
    /// Median of the one.
    pub a_median: f64,
    /// Median of the other.
    pub b_median: f64,
    /// B - A in percent of A; none if A is nothing.
    pub percent: Option<f64>,
    /// The standard error of that, in percent; none if there is none, as of single runs.
    pub stderr_percent: Option<f64>,
    /// What the source has for it, in percent.
    pub source_percent: Option<f64>,
}

/// `b - a` in percent of `a`; none if that is nothing.
fn percent(a: f64, b: f64) -> Option<f64> {
    (a != 0.0).then(|| 100.0 * (b - a) / a)
}

/// The standard error of [`percent`] of two medians; none if there is none, as of single runs.
fn stderr_percent(a: &Spread, b: &Spread) -> Option<f64> {
    let part = |s: &Spread| s.stderr / s.median;
    let relative = (part(a).powi(2) + part(b).powi(2)).sqrt() * b.median / a.median;
    (relative.is_finite() && relative > 0.0).then_some(100.0 * relative)
}

/// Kernel and variant that others of an experiment are held against.
fn base(name: Name, o: &Outcome) -> (&str, &'static str) {
    match name {
        Name::HighOrder | Name::Aim9 => ("2.6.14", ""),
        Name::SlabOrder => (&o.kernel, "slqb"),
        Name::Atomic => (&o.kernel, "force-highorder"),
    }
}

/// Metrics that are compared, each as it is called in the table.
fn compared(name: Name) -> Vec<(&'static str, String)> {
    let plain = |names: &[&'static str]| names.iter().map(|n| (*n, (*n).to_owned())).collect();
    match name {
        Name::HighOrder => plain(&["load_success_percent", "rest_success", "build_seconds"]),
        Name::Aim9 => {
            let tests = AIM9.iter().zip(AIM9_UNITS);
            tests
                .map(|((test, ..), unit)| (*test, format!("{test}, {unit}")))
                .collect()
        }
        Name::SlabOrder => plain(&["marginal_4th_over_1st", PARALLEL_BUILD1]),
        Name::Atomic => plain(&["elapsed_s"]),
    }
}

fn source_percent(base: &Outcome, other: &Outcome, metric: &str) -> Option<f64> {
    if metric == PARALLEL_BUILD1 {
        return source::parallel_build1(&other.variant);
    }
    percent(base.quoted(metric)?, other.quoted(metric)?)
}

/// Every kernel of some results against the one that its experiment holds others against, where both ran.
pub(super) fn comparisons(name: Name, results: &[Outcome]) -> Vec<Compared> {
    let mut found = vec![];
    for other in results {
        let (kernel, variant) = base(name, other);
        let is_base = |o: &&Outcome| {
            (o.kernel.as_str(), o.variant.as_str()) == (kernel, variant)
                && o.machine == other.machine
        };
        let Some(base) = results.iter().find(is_base) else {
            continue;
        };
        if base.label() == other.label() {
            continue;
        }
        for (metric, called) in compared(name) {
            if let (Some(a), Some(b)) = (base.metric(metric), other.metric(metric)) {
                found.push(Compared {
                    machine: other.machine.clone(),
                    metric: called,
                    a: base.label(),
                    b: other.label(),
                    a_median: a.median,
                    b_median: b.median,
                    percent: percent(a.median, b.median),
                    stderr_percent: stderr_percent(a, b),
                    source_percent: source_percent(base, other, metric),
                });
            }
        }
    }
    found
}
