//! The published experiments, run again on the simulated machine.
//!
//! - [`variant`]: the kernels of each. `choice`: which of them run.
//! - [`source`]: what the sources measured.
//! - [`scenario`]: what runs. [`measure`]: what is measured of a run.
//! - [`stats`], [`report`]: many seeds become one result. `compare`: one kernel against another. [`text`]: tables of both.
//!
//! Invariant: a result depends on the experiment, the kernel, the machine and the seed alone; how many
//! threads worked on it does not show. A run that did not come to its end is told, and no other lost by it.

mod choice;
mod compare;
pub mod measure;
pub mod report;
pub mod scenario;
pub mod source;
pub mod stats;
pub mod text;
pub mod variant;

use crate::error::{Asked, Error, Result};
use crate::parallel::{each, threads};
pub use compare::Compared;
use report::{Outcome, Report};
use scenario::Once;
use source::Quoted;
use stats::Spread;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use variant::Kernel;

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// S0: blocks of order 10 while seven kernels are built, and afterwards.
    HighOrder,
    /// S0: eight small programs.
    Aim9,
    /// S2: two builds on tmpfs, with slabs of several orders.
    SlabOrder,
    /// S4: reclaim behind an encrypted disk, with order-2 requests from interrupts.
    Atomic,
}

impl Name {
    /// All of them.
    pub const ALL: [Name; 4] = [Name::HighOrder, Name::Aim9, Name::SlabOrder, Name::Atomic];

    /// The name that users know.
    pub const fn as_str(self) -> &'static str {
        match self {
            Name::HighOrder => "highorder",
            Name::Aim9 => "aim9",
            Name::SlabOrder => "slab-order",
            Name::Atomic => "atomic",
        }
    }

    /// Its kernels, those that run only if they are named among them.
    pub fn kernels(self) -> Vec<Kernel> {
        match self {
            Name::HighOrder => variant::highorder(),
            Name::Aim9 => variant::aim9(),
            Name::SlabOrder => variant::slab_order(),
            Name::Atomic => variant::atomic(),
        }
    }

    fn quoted(self, kernel: &Kernel, machine: &str) -> Vec<Quoted> {
        match self {
            Name::HighOrder if kernel.variant.is_empty() => source::highorder(kernel.name),
            Name::HighOrder => vec![],
            Name::Aim9 => source::aim9(kernel.name),
            Name::SlabOrder => source::slab_order(kernel.variant),
            Name::Atomic => source::atomic(kernel.name, kernel.variant, machine),
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// Kernels or variants by name; none means those of the source.
    pub kernels: Vec<String>,
    /// Machines by name; none means those of the source.
    pub machines: Vec<String>,
    /// Runs of each.
    pub runs: u32,
    /// Seed of the first run.
    pub seed: u64,
}

/// Parts of a run that `progress` counts.
const PARTS: u64 = 1000;

/// Runs an experiment; `progress` hears how much of how much is done, by the virtual time of all runs.
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
    let one = |i: usize| {
        let (machine, kernel, seed) = jobs[i];
        let mut heard = 0;
        let mut hear = |parts: u64| {
            if parts > heard {
                let before = done.fetch_add(parts - heard, Ordering::Relaxed);
                progress(before + parts - heard, all);
                heard = parts;
            }
        };
        // Nobody knows when it ends, only when at the latest.
        let part = |p: unfrag_machine::scenario::Progress| {
            let part = u128::from(p.now) * u128::from(PARTS) / u128::from(p.limit.max(1));
            (part as u64).min(PARTS)
        };
        let got = scenario::once(name, kernel, machine, seed, |p| hear(part(p)));
        hear(PARTS);
        got
    };
    let mut results = each(jobs.len(), threads(), one, one).into_iter();
    let mut outcomes = vec![];
    for machine in &machines {
        for kernel in &kernels {
            let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            let mut unfinished = vec![];
            for got in results.by_ref().take(options.runs as usize) {
                match got? {
                    Once::Unfinished(u) => unfinished.push(u),
                    Once::Finished(metrics) => {
                        for (metric, value) in metrics {
                            values.entry(metric).or_default().push(value);
                        }
                    }
                }
            }
            let metrics = values
                .into_iter()
                .filter_map(|(metric, v)| Some((metric, Spread::of(&v)?)))
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
        calibration: scenario::calibration(),
        comparisons: compare::comparisons(name, &outcomes),
        results: outcomes,
    })
}
