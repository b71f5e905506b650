//! All locks of a set of caches at once, for a process that forks.
//!
//! Order: the list of caches, the lists of each CPU and node, the shrinkers, the records. No other path takes one of
//! these while it holds a later one.

use crate::cache_record::CacheRecord;
use crate::lock::Locked;
use crate::set::Set;

/// The locks of a set; see [`Slabs::hold_locks`](crate::Slabs::hold_locks).
#[must_use = "the locks are free again when this is dropped"]
pub struct HeldLocks<'s> {
    set: &'s Set,
}

impl<'s> HeldLocks<'s> {
    pub(crate) fn new(set: &'s Set) -> HeldLocks<'s> {
        take(&set.caches);
        // The list is ours, so no cache comes or goes.
        each_cache(set, |cache| {
            cache.all_cpus().for_each(|c| take(&c.own_slabs));
            (0..cache.node_count).for_each(|n| take(&cache.node(n).lists));
            take(&cache.quarantine);
        });
        take(set.shrinkers.raw_lock());
        take(set.memory.bootstrap.raw_lock());
        HeldLocks { set }
    }
}

impl Drop for HeldLocks<'_> {
    fn drop(&mut self) {
        give(self.set.memory.bootstrap.raw_lock());
        give(self.set.shrinkers.raw_lock());
        each_cache(self.set, |cache| {
            give(&cache.quarantine);
            (0..cache.node_count).for_each(|n| give(&cache.node(n).lists));
            cache.all_cpus().for_each(|c| give(&c.own_slabs));
        });
        give(&self.set.caches);
    }
}

/// Calls `f` with each cache, while the caller holds the list.
fn each_cache(set: &Set, f: impl Fn(&CacheRecord)) {
    // SAFETY: the caller holds the lock, and only reads.
    #[allow(unsafe_code)]
    let mut at = unsafe { (*set.caches.data_ptr()).0 };
    // SAFETY: caches on the list live.
    #[allow(unsafe_code)]
    while let Some(cache) = unsafe { at.as_ref() } {
        f(cache);
        at = cache.next.get();
    }
}

fn take<T>(lock: &Locked<T>) {
    core::mem::forget(lock.lock());
}

fn give<T>(lock: &Locked<T>) {
    // SAFETY: it was taken by `take`, and nobody else has given it.
    #[allow(unsafe_code)]
    unsafe {
        lock.force_unlock();
    }
}
