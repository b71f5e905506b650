//! A whole experiment: every kernel on every machine, with every seed.
//!
//! Invariant: the result does not depend on the number of threads that worked on it.

use super::choice;
use super::compare;
use super::name::Name;
use super::report::{Outcome, Report};
use super::scenario::{self, PARTS, RunResult};
use super::stats::Statistics;
use crate::error::{Asked, Error, Result};
use crate::parallel::{each, threads};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use unfrag_machine::Calibration;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Kernels or variants by name; none means those of the source.
    pub kernels: Vec<String>,
    /// Machines by name; none means those of the source.
    pub machines: Vec<String>,
    /// Runs of each kernel on each machine.
    pub runs: u32,
    /// Seed of the first run.
    pub seed: u64,
    /// Costs other than the experiment's.
    pub costs: Option<Calibration>,
}

/// Runs an experiment. `progress` is called with the parts that are done and all parts; a part is a thousandth of a
/// run's longest virtual time.
///
/// # Errors
/// If a kernel or machine does not exist, or a scenario does not run.
pub fn run(name: Name, options: &Options, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Report> {
    let kernels = choice::chosen(name, name.kernels(), &options.kernels)?;
    let machines = scenario::machines(name, &options.machines)?;
    let last = u64::from(options.runs).saturating_sub(1);
    if options.seed.checked_add(last).is_none() {
        let message = format!("seed {} has no {last} seeds after it", options.seed);
        let most = u64::MAX - last;
        return Err(Error::option(Asked::Seed, message).help(format!("give one up to {most}")));
    }
    let mut jobs = vec![];
    for machine in &machines {
        for kernel in &kernels {
            for run in 0..options.runs {
                jobs.push((machine.as_str(), kernel, options.seed + u64::from(run)));
            }
        }
    }
    let (done, all) = (AtomicU64::new(0), jobs.len() as u64 * PARTS);
    let costs = options.costs.clone();
    let costs = costs.unwrap_or_else(|| scenario::calibration(name));
    // Those on page frames alone have metadata for up to a terabyte each.
    let threads = if name.bare().is_some() { 1 } else { threads() };
    let one = |i: usize| {
        let (machine, kernel, seed) = jobs[i];
        let mut reported = 0;
        let mut report = |parts: u64| {
            if parts > reported {
                let before = done.fetch_add(parts - reported, Ordering::Relaxed);
                progress(before + parts - reported, all);
                reported = parts;
            }
        };
        let got = scenario::run_once(name, kernel, machine, seed, &costs, &mut report);
        report(PARTS);
        got
    };
    let mut results = each(jobs.len(), 1, threads, one, one).into_iter();
    let mut outcomes = vec![];
    for machine in &machines {
        for kernel in &kernels {
            let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            let mut unfinished = vec![];
            for got in results.by_ref().take(options.runs as usize) {
                match got? {
                    RunResult::Unfinished(u) => unfinished.push(u),
                    RunResult::Finished(metrics) => {
                        for (metric, value) in metrics {
                            values.entry(metric).or_default().push(value);
                        }
                    }
                }
            }
            let metrics = values
                .into_iter()
                .filter_map(|(metric, v)| Some((metric, Statistics::of(&v)?)))
                .collect();
            outcomes.push(Outcome {
                kernel: kernel.name.into(),
                machine: machine.clone(),
                variant: kernel.variant.into(),
                settings: scenario::settings(name, kernel, machine),
                metrics,
                unfinished,
                quoted: name.quoted(kernel, machine),
            });
        }
    }
    Ok(Report {
        experiment: name.as_str().into(),
        seed: options.seed,
        runs: options.runs,
        calibration: format!("{:016x}", costs.hash),
        comparisons: compare::comparisons(name, &outcomes),
        results: outcomes,
    })
}
