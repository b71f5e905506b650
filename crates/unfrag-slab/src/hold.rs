//! All locks of a set of caches at once, for a process that forks.
//!
//! Order: the list of caches, the lists of each CPU and node, the records. No other path takes one of these while it holds
//! a later one. A cache that another thread destroys meanwhile is on no list; in the child it stays as it is.

use crate::cache_record::CacheRecord;
use crate::lock::{Locked, SpinLock};
use crate::set::Set;
use core::marker::PhantomData;
use lock_api::RawMutex;

/// The locks of a set; see [`Slabs::hold_locks`](crate::Slabs::hold_locks).
#[must_use = "the locks are free again when this is dropped"]
pub struct HeldLocks<'s, R: RawMutex = SpinLock> {
    set: &'s Set<R>,
    /// It may be sent where a guard of the lock may.
    guards: PhantomData<R::GuardMarker>,
}

impl<'s, R: RawMutex> HeldLocks<'s, R> {
    pub(crate) fn new(set: &'s Set<R>) -> HeldLocks<'s, R> {
        take(&set.caches);
        // The list is ours, so no cache comes or goes, and no walk that goes on without the list's lock begins.
        each_cache(set, |cache| {
            cache.wait_until_let_go();
            cache.all_cpus().for_each(|c| take(&c.own_slabs));
            (0..cache.node_count).for_each(|n| take(&cache.node(n).lists));
            take(&cache.quarantine);
        });
        take(set.memory.bootstrap.raw_lock());
        HeldLocks {
            set,
            guards: PhantomData,
        }
    }
}

impl<R: RawMutex> Drop for HeldLocks<'_, R> {
    fn drop(&mut self) {
        give(self.set.memory.bootstrap.raw_lock());
        each_cache(self.set, |cache| {
            give(&cache.quarantine);
            (0..cache.node_count).for_each(|n| give(&cache.node(n).lists));
            cache.all_cpus().for_each(|c| give(&c.own_slabs));
        });
        give(&self.set.caches);
    }
}

/// Calls `f` with each cache, while the caller holds the list.
fn each_cache<R: RawMutex>(set: &Set<R>, f: impl Fn(&CacheRecord<R>)) {
    // SAFETY: the caller holds the lock, and only reads.
    #[allow(unsafe_code)]
    let list = unsafe { &*set.caches.data_ptr() };
    for cache in list.iter() {
        // SAFETY: caches on the list live.
        #[allow(unsafe_code)]
        f(unsafe { cache.as_ref() });
    }
}

fn take<T, R: RawMutex>(lock: &Locked<T, R>) {
    core::mem::forget(lock.lock());
}

fn give<T, R: RawMutex>(lock: &Locked<T, R>) {
    // SAFETY: it was taken by `take`, and nobody else has given it.
    #[allow(unsafe_code)]
    unsafe {
        lock.force_unlock();
    }
}
