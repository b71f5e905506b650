//! Independent jobs on several threads, with their results in order.
//!
//! Invariant: the results do not depend on the number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of CPUs that this process may run on.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Two independent jobs, at the same time if this process has several CPUs.
pub(crate) fn both<A, B: Send>(
    own: impl FnOnce() -> A,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    if threads() == 1 {
        return (own(), other());
    }
    std::thread::scope(|s| {
        let other = s.spawn(other);
        let own = own();
        match other.join() {
            Ok(other) => (own, other),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Does jobs 0 to `jobs`, as many at a time as `threads` says. The caller's thread does the `first` jobs, one at least,
/// and some of the others, by `own`; all other threads do theirs by `other`.
pub(crate) fn each<T: Send>(
    jobs: usize,
    first: usize,
    threads: usize,
    other: impl Fn(usize) -> T + Sync,
    mut own: impl FnMut(usize) -> T,
) -> Vec<T> {
    if jobs == 0 {
        return vec![];
    }
    let first = first.clamp(1, jobs);
    let next = AtomicUsize::new(first);
    let found: Mutex<Vec<(usize, T)>> = Mutex::default();
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < jobs);
    let put = |i, got| {
        let mut all = found.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((i, got));
    };
    std::thread::scope(|s| {
        for _ in 1..threads.min(jobs) {
            s.spawn(|| {
                while let Some(i) = take() {
                    put(i, other(i));
                }
            });
        }
        (0..first).for_each(|i| put(i, own(i)));
        while let Some(i) = take() {
            put(i, own(i));
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|f| f.0);
    found.into_iter().map(|f| f.1).collect()
}
