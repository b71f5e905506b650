//! What the machine runs: fill memory, free three quarters of it, take huge pages on demand and ahead of demand, churn, and
//! look at every page.
//!
//! - `pages`: the address spaces and what is written in them. `fragment`: freeing. `huge`: huge pages. `churn`: a mix.

mod chance;
mod churn;
mod fragment;
mod huge;
mod pages;

use crate::params::Params;
use crate::report::Report;
use crate::{atomic, cache, cpu, daemons, faults, frames, heap, report, task, tlb};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;
use pages::Work;

/// Most pages of the page cache.
const MOST_CACHE: u64 = 1 << 18;

/// Starts a job on each CPU.
fn start_on_all(work: &Arc<Work>, job: fn(&Work, usize)) -> Vec<task::Handle> {
    let start = |cpu| {
        let work = work.clone();
        task::spawn(cpu, move || job(&work, cpu))
    };
    (0..cpu::count()).map(start).collect()
}

/// Runs a job on each CPU, and waits until all have ended.
fn on_all(work: &Arc<Work>, job: fn(&Work, usize)) {
    let all = start_on_all(work, job);
    all.into_iter().for_each(task::Handle::join);
}

/// Has a task on each CPU read pages while `f` runs.
fn while_others_read<T>(work: &Arc<Work>, f: impl FnOnce() -> T) -> T {
    work.reads.store(true, Relaxed);
    let readers = start_on_all(work, Work::keep_reading);
    let done = f();
    work.reads.store(false, Relaxed);
    readers.into_iter().for_each(task::Handle::join);
    done
}

/// Everything on a machine of so many frames, and the end of the machine.
pub fn run(params: Params, present: u64) {
    let cpus = cpu::count();
    faults::start();
    atomic::turn(true);
    let daemons = daemons::start(cpus - 1);
    let work = Arc::new(Work::new(cpus, params.seed));

    step("fill memory with pages of 4 KiB");
    on_all(&work, Work::fill);
    step("free three quarters of every 2 MiB");
    on_all(&work, fragment::run);
    step("huge pages on demand");
    let on_demand = while_others_read(&work, || huge::burst(&work));
    huge::free_all(&work);

    step("fill and free again, with kcompactd ahead of demand");
    on_all(&work, Work::fill);
    on_all(&work, fragment::run);
    daemons::keep_ready((frames::room() / 512 / huge::READY).max(4) as u32);
    let ahead = while_others_read(&work, || {
        huge::wait_until_ready();
        step("huge pages ahead of demand");
        huge::burst(&work)
    });
    huge::free_all(&work);

    step("churn");
    cache::init((present / 4).min(MOST_CACHE) as u32);
    while atomic::allocated() < params.interrupts || !churn::enough(&work, present) {
        on_all(&work, churn::run);
    }
    step("huge pages after the churn, without page cache");
    cache::reclaim(usize::MAX);
    let after_churn = huge::burst(&work);
    huge::free_all(&work);

    step("look at every page");
    on_all(&work, Work::check);
    let valid = frames::validate();

    step("give everything back");
    daemons::stop();
    daemons.into_iter().for_each(task::Handle::join);
    on_all(&work, Work::free);
    work.destroy();
    cache::destroy();
    atomic::turn(false);
    on_all(&work, |_, _| {
        atomic::free_all();
        frames::flush();
    });
    let (cache_checked, cache_wrong, reclaimed) = cache::counts();
    let (checked, wrong) = work.counts();
    let (tried, let_in) = faults::counts();
    report::finish(&Report {
        engine: params.engine,
        cpus,
        frames: present,
        on_demand,
        ahead,
        after_churn,
        pages_checked: checked + cache_checked,
        checksums_wrong: wrong + cache_wrong,
        interrupts: atomic::counts(),
        tried,
        let_in,
        reclaimed,
        waited: task::waited(),
        flushes: tlb::count(),
        lost: present as i64 - (frames::free_frames() + heap::frames()) as i64,
        valid: frames::validate() && valid,
    })
}

/// Says what comes next.
fn step(what: &str) {
    println!(
        "{:6} ms  {:7} KiB free  {what}",
        task::now(),
        frames::room() * 4
    );
}
