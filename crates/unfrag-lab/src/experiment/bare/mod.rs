//! The experiments on a machine of page frames alone: memory of a terabyte, compaction on demand and ahead of demand.
//!
//! - `setting`: which machine a kernel and a machine's name mean. `latency`, `java_heap`, `backoff`, `one_time`: what
//!   runs on it. `numbers`: percentiles, percents and seconds.
//!
//! Invariant: one machine is in memory at a time.

mod backoff;
mod java_heap;
mod latency;
mod numbers;
mod one_time;
mod setting;

pub(super) use setting::{machines, settings};

use super::metric::Metrics;
use super::name::Which;
use super::variant::Kernel;
use crate::afford;
use crate::error::{Asked, Error, Remedy, Result};
use unfrag_machine::Calibration;
use unfrag_machine::bare::Bare;

/// One run; `progress` is called with the thousandths that are done.
///
/// # Errors
/// If there is no such machine.
pub(super) fn run(
    which: Which,
    kernel: &Kernel,
    machine: &str,
    seed: u64,
    calibration: &Calibration,
    progress: &mut dyn FnMut(u64),
) -> Result<Metrics> {
    let of = setting::description(kernel, machine, calibration)?;
    let holes = kernel.holes;
    let layout = of.layout().map_err(setting::no_machine)?;
    afford::check(of.frames * 4096, afford::CORE, 1)
        .map_err(|e| Error::option(Asked::Machine, e).remedy(Remedy::Other(Asked::Machine)))?;
    let mut metadata = vec![0u64; layout.words];
    let mut bare = Bare::boot(&of, &mut metadata).map_err(setting::no_machine)?;
    let mut metrics = match which {
        Which::HugepageLatency => latency::run(&mut bare, holes, seed, progress),
        Which::JavaHeap => java_heap::run(&mut bare, of.frames, holes, seed, progress),
        Which::Backoff => backoff::run(&mut bare, seed, progress),
        Which::OneTime => one_time::run(&mut bare, holes, seed, progress),
    };
    let (pages, lost) = bare.audit();
    metrics.insert("pages_kept".into(), pages as f64);
    metrics.insert("pages_lost".into(), lost as f64);
    Ok(metrics)
}
