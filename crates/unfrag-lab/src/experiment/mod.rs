//! The published experiments, run again on the simulated machine.
//!
//! - [`variant`]: the kernels of each. `choice`: which of them run.
//! - [`source`]: what the sources measured.
//! - [`scenario`]: what runs, and what is measured of a run.
//! - [`stats`], [`report`]: many seeds become one table.
//!
//! Invariant: a result depends on the experiment, the kernel, the machine and the seed alone; how many
//! threads worked on it does not show.

mod choice;
pub mod report;
pub mod scenario;
pub mod source;
pub mod stats;
pub mod variant;

use crate::jobs::{each, threads};
use report::{Outcome, Report};
use source::Quoted;
use stats::Spread;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use unfrag_linux::Result;
use variant::Kernel;

/// What was measured of one run, by name.
pub type Metrics = BTreeMap<String, f64>;

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

/// Runs an experiment; `progress` hears how many runs of how many are done.
///
/// # Errors
/// If a kernel or machine does not exist, or a scenario does not run.
pub fn run(
    name: Name,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Report> {
    let kernels = choice::chosen(name, name.kernels(), &options.kernels)?;
    let machines = scenario::machines(name, &options.machines)?;
    let mut jobs = vec![];
    for machine in &machines {
        for kernel in &kernels {
            for run in 0..options.runs {
                jobs.push((machine.as_str(), kernel, options.seed + u64::from(run)));
            }
        }
    }
    let done = AtomicUsize::new(0);
    let one = |i: usize| {
        let (machine, kernel, seed) = jobs[i];
        let got = scenario::once(name, kernel, machine, seed);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        got
    };
    let mut results = each(jobs.len(), threads(), one, one).into_iter();
    let mut outcomes = vec![];
    for machine in &machines {
        for kernel in &kernels {
            let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for got in results.by_ref().take(options.runs as usize) {
                for (metric, value) in got? {
                    values.entry(metric).or_default().push(value);
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
                quoted: name.quoted(kernel, machine),
            });
        }
    }
    Ok(Report {
        experiment: name.as_str().into(),
        seed: options.seed,
        runs: options.runs,
        calibration: scenario::calibration(),
        results: outcomes,
    })
}
