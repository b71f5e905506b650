//! Destruction and shrinking of caches.
//!
//! Invariant: a cache is emptied without its CPUs' tokens only when its last handle is given up, and it is off the list of
//! caches then, so that no other cache merges with it and no CPU's periodic work comes to it. No lock is held while its
//! pages go back. Its record is freed through the pointer of its allocation; references to it end before.

use crate::cache::KmemCache;
use crate::cache_record::CacheRecord;
use crate::cpu::Cpu;
use crate::lock::SpinLock;
use crate::plan::{free_cpus, free_nodes};
use crate::set::Set;
use crate::slow;
use crate::stat;
use crate::sync::Ordering;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use lock_api::RawMutex;

/// Why a cache was not destroyed.
#[non_exhaustive]
pub struct DestroyError<'s, R: RawMutex = SpinLock> {
    /// The cache, unchanged.
    pub cache: KmemCache<'s, R>,
    /// Objects in use.
    pub live: u64,
}

impl<R: RawMutex> fmt::Display for DestroyError<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (name, n) = (self.cache.name(), self.live);
        let are = if n == 1 { "object is" } else { "objects are" };
        write!(
            f,
            "slab cache {name}: {n} {are} still in use; free all of them before the cache is destroyed"
        )
    }
}

impl<R: RawMutex> fmt::Debug for DestroyError<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<R: RawMutex> core::error::Error for DestroyError<'_, R> {}

/// What [`KmemCache::shrink`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrunk {
    /// Pages returned.
    pub pages: u64,
    /// CPUs whose lists could not be emptied now, because their token is claimed: they do it at their
    /// next slow path or [`Cpu::reap`].
    pub asked: u16,
}

/// Empties all lists of a cache that the caller has alone, and returns its empty slabs.
fn empty<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>) {
    slow::release_quarantine(set, cache);
    // Twice, as the flush of one CPU may queue objects for another one.
    for _ in 0..2 {
        for c in cache.all_cpus() {
            slow::flush_cpu(set, cache, c);
        }
    }
    slow::shrink_nodes(set, cache);
}

/// Frees the records of a cache without slabs.
///
/// # Safety
/// The cache is not used any more, and is on no list; `cache` is the pointer of its allocation.
#[allow(unsafe_code)]
pub(crate) unsafe fn free_records<R: RawMutex>(set: &Set<R>, cache: NonNull<CacheRecord<R>>) {
    // SAFETY: it lives until the last line.
    let (cpus, nodes) = unsafe { ((*cache.as_ptr()).cpus, (*cache.as_ptr()).nodes) };
    free_cpus(set, cpus);
    free_nodes(set, nodes);
    // SAFETY: allocated with that size.
    unsafe {
        set.memory
            .free_record(cache.cast(), size_of::<CacheRecord<R>>())
    };
}

/// Gives up a handle. With the last one the cache is destroyed, unless objects are in use: then their number
/// is the error.
fn release_handle<R: RawMutex>(
    set: &Set<R>,
    record: NonNull<CacheRecord<R>>,
    even_if_live: bool,
) -> Result<(), u64> {
    // SAFETY: the handle keeps it; the reference is not used any more when the record goes.
    #[allow(unsafe_code)]
    let cache = unsafe { record.as_ref() };
    {
        let mut list = set.caches.lock();
        // Relaxed: handles come and go under the list's lock.
        if cache.handles.load(Ordering::Relaxed) > 1 {
            cache.handles.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
        list.unlink(record);
    }
    cache.wait_until_let_go();
    // Access is exclusive: the caller gives up the last handle, and nobody finds the cache.
    empty(set, cache);
    let live = stat::live_objects(set, cache);
    if live > 0 {
        let mut list = set.caches.lock();
        if even_if_live {
            // Relaxed: as above.
            cache.handles.store(0, Ordering::Relaxed);
        }
        list.link(record);
        return Err(live);
    }
    // SAFETY: the last handle is given up, and the cache is off the list.
    #[allow(unsafe_code)]
    unsafe {
        free_records(set, record);
    }
    Ok(())
}

/// Destroys the caches that have no handle and no object in use any more. Returns whether all went.
pub(crate) fn drop_all<R: RawMutex>(set: &Set<R>) -> bool {
    let mut all = true;
    loop {
        let record = {
            let mut list = set.caches.lock();
            let Some(record) = list.first() else {
                return all;
            };
            list.unlink(record);
            record
        };
        // SAFETY: it was on the list, so it lives; the set is dropped, so that no handle exists.
        #[allow(unsafe_code)]
        let cache = unsafe { record.as_ref() };
        empty(set, cache);
        if stat::live_objects(set, cache) > 0 {
            // Its record and its slabs stay where they are, for whoever has the objects.
            all = false;
            continue;
        }
        // SAFETY: no handle exists, and the cache is off the list.
        #[allow(unsafe_code)]
        unsafe {
            free_records(set, record);
        }
    }
}

impl<'s, R: RawMutex> KmemCache<'s, R> {
    /// Destroys the cache and returns its pages. If it shares its slabs, only this handle goes.
    ///
    /// # Errors
    /// If objects are still in use: how many, and the cache again.
    pub fn destroy(self) -> Result<(), DestroyError<'s, R>> {
        // Were the source of pages to panic, the handle must not be given up a second time.
        let this = ManuallyDrop::new(self);
        match release_handle(this.set(), this.record, false) {
            Ok(()) => Ok(()),
            Err(live) => Err(DestroyError {
                cache: ManuallyDrop::into_inner(this),
                live,
            }),
        }
    }

    /// Returns the pages of all empty slabs. The lists of `cpu`, and of all CPUs whose token is not
    /// claimed, are emptied first; the other CPUs are asked to empty theirs.
    ///
    /// # Panics
    /// If the token is one of another set of caches.
    pub fn shrink(&self, cpu: &Cpu<'_, R>) -> Shrunk {
        let (set, cache) = (self.set(), self.record());
        cpu.check_set(set);
        let before = stat::slab_pages(cache);
        let mut asked = 0;
        for _ in 0..2 {
            asked = 0;
            for id in 0..set.cpus {
                let own = id == cpu.id();
                if own || set.borrow(id) {
                    slow::flush_cpu(set, cache, cache.cpu(id));
                    if !own {
                        set.release(id);
                    }
                } else {
                    // Relaxed: the other CPU only has to see it at some time.
                    cache.cpu(id).drain_requested.store(1, Ordering::Relaxed);
                    asked += 1;
                }
            }
        }
        slow::shrink_nodes(set, cache);
        Shrunk {
            pages: before.saturating_sub(stat::slab_pages(cache)),
            asked,
        }
    }
}

impl<R: RawMutex> Drop for KmemCache<'_, R> {
    /// Destroys the cache as [`destroy`](KmemCache::destroy) does. A cache with objects in use stays, without a
    /// handle, until the set is dropped.
    fn drop(&mut self) {
        let _ = release_handle(self.set(), self.record, true);
    }
}
