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

/// Runs a job on each CPU, and waits until all have ended.
fn on_all(job: impl Fn(usize) + Send + Sync + 'static) {
    let job = Arc::new(job);
    let start = |cpu| {
        let job = job.clone();
        task::spawn(cpu, move || job(cpu))
    };
    let all: Vec<task::Handle> = (0..cpu::count()).map(start).collect();
    all.into_iter().for_each(task::Handle::join);
}

/// Has a task on each CPU read pages while `f` runs.
fn while_others_read<T>(work: &Arc<Work>, f: impl FnOnce() -> T) -> T {
    work.reads.store(true, Relaxed);
    let start = |cpu| {
        let work = work.clone();
        task::spawn(cpu, move || work.keep_reading(cpu))
    };
    let readers: Vec<task::Handle> = (0..cpu::count()).map(start).collect();
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
    fill(&work);
    step("free three quarters of every 2 MiB");
    fragment(&work);
    step("huge pages on demand");
    let on_demand = while_others_read(&work, || huge::burst(&work));
    huge::free_all(&work);

    step("fill and free again, with kcompactd ahead of demand");
    fill(&work);
    fragment(&work);
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
        let work = work.clone();
        on_all(move |cpu| churn::run(&work, cpu));
    }
    step("huge pages after the churn, without page cache");
    while cache::reclaim(64) > 0 {}
    let after_churn = huge::burst(&work);
    huge::free_all(&work);

    step("look at every page");
    let all = work.clone();
    on_all(move |cpu| all.check(cpu));
    let valid = frames::validate();

    step("give everything back");
    daemons::stop();
    daemons.into_iter().for_each(task::Handle::join);
    let all = work.clone();
    on_all(move |cpu| all.free(cpu));
    work.destroy();
    cache::destroy();
    atomic::turn(false);
    on_all(|_| {
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

fn fill(work: &Arc<Work>) {
    let work = work.clone();
    on_all(move |cpu| work.fill(cpu));
}

fn fragment(work: &Arc<Work>) {
    let work = work.clone();
    on_all(move |cpu| fragment::run(&work, cpu));
}
