//! Destruction and shrinking of caches.
//!
//! Invariant: a cache is emptied without its CPUs' tokens only when its last handle is given up. The lock of the
//! list of caches is held then, so that no other cache merges with it.

use crate::cache::KmemCache;
use crate::cache_record::CacheRecord;
use crate::cpu::Cpu;
use crate::plan::{free_cpus, free_nodes};
use crate::set::Set;
use crate::slow;
use crate::stat;
use crate::sync::Ordering;
use core::fmt;
use core::ptr::NonNull;

/// Why a cache was not destroyed.
#[non_exhaustive]
pub struct DestroyError<'s> {
    /// The cache, unchanged.
    pub cache: KmemCache<'s>,
    /// Objects in use.
    pub live: u64,
}

impl fmt::Display for DestroyError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (name, n) = (self.cache.name(), self.live);
        let are = if n == 1 { "object is" } else { "objects are" };
        write!(
            f,
            "slab cache {name}: {n} {are} still in use; free all of them before the cache is destroyed"
        )
    }
}

impl fmt::Debug for DestroyError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for DestroyError<'_> {}

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
fn empty(set: &Set, cache: &CacheRecord) {
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
/// The cache is not used any more, and is on no list.
#[allow(unsafe_code)]
unsafe fn free_records(set: &Set, cache: *const CacheRecord) {
    // SAFETY: it lives until the last line.
    let (cpus, nodes) = unsafe { ((*cache).cpus, (*cache).nodes) };
    free_cpus(set, cpus);
    free_nodes(set, nodes);
    if let Some(at) = NonNull::new(cache.cast_mut().cast::<u8>()) {
        // SAFETY: allocated with that size.
        unsafe { set.memory.free_record(at, size_of::<CacheRecord>()) };
    }
}

/// Gives up a handle. With the last one the cache is destroyed, unless objects are in use: then their number
/// is the error.
fn release_handle(set: &Set, record: NonNull<CacheRecord>, even_if_live: bool) -> Result<(), u64> {
    let mut list = set.caches.lock();
    // SAFETY: the handle keeps it.
    #[allow(unsafe_code)]
    let cache = unsafe { record.as_ref() };
    if cache.handles.load(Ordering::Acquire) > 1 {
        cache.handles.fetch_sub(1, Ordering::Release);
        return Ok(());
    }
    // The caller gives up the last handle, and the list's lock prevents a merge with the cache: access to it
    // is exclusive.
    empty(set, cache);
    let live = stat::live_objects(set, cache);
    if live > 0 {
        if even_if_live {
            cache.handles.store(0, Ordering::Relaxed);
        }
        return Err(live);
    }
    unlink(&mut list.0, cache);
    // SAFETY: the last handle is given up, and the cache is off the list.
    #[allow(unsafe_code)]
    unsafe {
        free_records(set, cache);
    }
    Ok(())
}

fn unlink(head: &mut *const CacheRecord, cache: &CacheRecord) {
    if core::ptr::eq(*head, cache) {
        *head = cache.next.get();
        return;
    }
    let mut at = *head;
    while !at.is_null() {
        // SAFETY: caches on the list live.
        #[allow(unsafe_code)]
        let before = unsafe { &*at };
        if core::ptr::eq(before.next.get(), cache) {
            before.next.set(cache.next.get());
            return;
        }
        at = before.next.get();
    }
}

/// Destroys the caches that have no handle and no object in use any more.
pub(crate) fn drop_all(set: &Set) {
    let mut list = set.caches.lock();
    let mut at = list.0;
    while !at.is_null() {
        // SAFETY: caches on the list live.
        #[allow(unsafe_code)]
        let cache = unsafe { &*at };
        at = cache.next.get();
        empty(set, cache);
        if stat::live_objects(set, cache) == 0 {
            unlink(&mut list.0, cache);
            // SAFETY: the set is dropped, so that no handle exists.
            #[allow(unsafe_code)]
            unsafe {
                free_records(set, cache);
            }
        }
    }
}

impl<'s> KmemCache<'s> {
    /// Destroys the cache and returns its pages. If it shares its slabs, only this handle goes.
    ///
    /// # Errors
    /// If objects are still in use: how many, and the cache again.
    pub fn destroy(self) -> Result<(), DestroyError<'s>> {
        let (set, record) = (self.set(), self.record);
        match release_handle(set, record, false) {
            Ok(()) => {
                core::mem::forget(self);
                Ok(())
            }
            Err(live) => Err(DestroyError { cache: self, live }),
        }
    }

    /// Returns the pages of all empty slabs. The lists of `cpu`, and of all CPUs whose token is not
    /// claimed, are emptied first; the other CPUs are asked to empty theirs.
    pub fn shrink(&self, cpu: &Cpu<'_>) -> Shrunk {
        let (set, cache) = (self.set(), self.record());
        assert!(
            core::ptr::eq(cpu.set(), set),
            "the CPU's token belongs to another set"
        );
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

impl Drop for KmemCache<'_> {
    /// Destroys the cache as [`destroy`](KmemCache::destroy) does. A cache with objects in use stays, without a
    /// handle, until the set is dropped.
    fn drop(&mut self) {
        let _ = release_handle(self.set(), self.record, true);
    }
}
