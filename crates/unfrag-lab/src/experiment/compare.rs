//! One kernel against another on the same machine, in the manner of diff-aim9. `spec: 8.1`

use super::metric::PARALLEL_BUILD1;
use super::name::Name;
use super::report::{Compared, Outcome};
use super::source::{self, AIM9, AIM9_UNITS};
use super::stats::Statistics;

/// `b - a` in percent of `a`; none if `a` is 0.
fn percent(a: f64, b: f64) -> Option<f64> {
    (a != 0.0).then(|| 100.0 * (b - a) / a)
}

/// The standard error of [`percent`] of two medians; none of single runs.
fn stderr_percent(a: &Statistics, b: &Statistics) -> Option<f64> {
    let part = |s: &Statistics| Some(s.stderr? / s.median);
    let relative = (part(a)?.powi(2) + part(b)?.powi(2)).sqrt() * b.median / a.median;
    (relative.is_finite() && relative > 0.0).then_some(100.0 * relative)
}

/// Kernel and variant that an outcome is compared with.
fn base(name: Name, o: &Outcome) -> (&str, &'static str) {
    match name {
        Name::HighOrder | Name::Aim9 => ("2.6.14", ""),
        Name::SlabOrder => (&o.kernel, "slqb"),
        Name::Atomic => (&o.kernel, "force-highorder"),
        Name::HugepageLatency if o.variant.starts_with("random") => (&o.kernel, "random-holes-0"),
        Name::HugepageLatency | Name::JavaHeap => ("5.9", "proactiveness-0"),
        Name::Backoff => ("5.9", "proactiveness-40"),
        Name::OneTime => ("5.9", ""),
        Name::ThpBurst => ("6.18", "defrag-mode-0"),
    }
}

/// Metrics that are compared, each with its title in the table.
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
        Name::Atomic | Name::JavaHeap | Name::OneTime => plain(&["elapsed_s"]),
        Name::HugepageLatency => plain(&["p50_us", "copies_per_block", "huge_percent"]),
        Name::Backoff => plain(&["cpu_percent"]),
        Name::ThpBurst => plain(&[
            "thp_fault_fallback",
            "allocstall",
            "system_s",
            "build_seconds",
            "thp_fault_alloc_last",
        ]),
    }
}

fn source_percent(base: &Outcome, other: &Outcome, metric: &str) -> Option<f64> {
    if metric == PARALLEL_BUILD1 {
        return source::parallel_build1(&other.variant);
    }
    if other.variant == "defrag-mode-1" {
        return source::defrag_mode_change(metric);
    }
    percent(base.quoted(metric)?, other.quoted(metric)?)
}

/// Every kernel of some results against the base of its experiment, where both ran.
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
