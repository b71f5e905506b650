//! The state of a set of caches: its memory, its rules, its CPUs' tokens, and the list of its caches.

use crate::cache_record::CacheRecord;
use crate::lock::Locked;
use crate::map::DirectMap;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::sync::{AtomicU32, AtomicU64, Ordering, spin};
use core::ptr::{NonNull, null_mut};
use lock_api::RawMutex;

/// State of a CPU's token: free, claimed, borrowed for a short time.
const IN: u32 = 0;
const OUT: u32 = 1;
const BORROWED: u32 = 2;

/// The state of a set of caches, in the bootstrap cache.
pub(crate) struct Set<R: RawMutex> {
    pub memory: Memory<R>,
    pub rules: Rules,
    pub cpus: u16,
    pub nodes: u8,
    /// Whether there are more than 32 MiB, which moves SLAB's break order.
    pub large_memory: bool,
    /// The state of the token of each CPU, one word each.
    pub claims: *const AtomicU32,
    pub node_of_cpu: fn(u16) -> u8,
    pub caches: Locked<CacheList<R>, R>,
    /// Pages of all slabs, and those that kmalloc handed out as such.
    pub slab_pages: AtomicU64,
}

/// The list of all caches, the youngest first.
///
/// Invariant: each pointer is that of the allocation of the cache's record, so that the record can be freed through it.
pub(crate) struct CacheList<R: RawMutex> {
    first: *mut CacheRecord<R>,
    /// Number of the youngest.
    born: u64,
}

// SAFETY: the descriptors are reached under the list's lock, or through handles that keep them.
#[allow(unsafe_code)]
unsafe impl<R: RawMutex + Send + Sync> Send for CacheList<R> {}
// SAFETY: all that changes is atomic or locked, but for the records of CPUs, which tokens guard.
#[allow(unsafe_code)]
unsafe impl<R: RawMutex + Send + Sync> Sync for Set<R> {}

impl<R: RawMutex> CacheList<R> {
    pub const fn new() -> CacheList<R> {
        CacheList {
            first: null_mut(),
            born: 0,
        }
    }
    /// The first cache.
    pub fn first(&self) -> Option<NonNull<CacheRecord<R>>> {
        NonNull::new(self.first)
    }
    /// The caches, the youngest first. None may come or go meanwhile.
    pub fn iter(&self) -> impl Iterator<Item = NonNull<CacheRecord<R>>> + '_ {
        let mut at = self.first();
        core::iter::from_fn(move || {
            let cache = at?;
            // SAFETY: caches on the list live.
            #[allow(unsafe_code)]
            let next = unsafe { cache.as_ref() }.next.get();
            at = NonNull::new(next);
            Some(cache)
        })
    }
    /// Puts a cache at its place by age: a new one is the youngest, one that left the list for a while goes back where it
    /// was.
    pub fn link(&mut self, cache: NonNull<CacheRecord<R>>) {
        // SAFETY: the caller's cache lives, and so do those on the list.
        #[allow(unsafe_code)]
        let (own, age) = unsafe {
            (cache.as_ref(), |c: NonNull<CacheRecord<R>>| {
                c.as_ref().born.get()
            })
        };
        if own.born.get() == 0 {
            self.born += 1;
            own.born.set(self.born);
        }
        let before = self.iter().take_while(|c| age(*c) > own.born.get()).last();
        let next = match before {
            // SAFETY: as above.
            #[allow(unsafe_code)]
            Some(before) => unsafe { before.as_ref() }.next.replace(cache.as_ptr()),
            None => core::mem::replace(&mut self.first, cache.as_ptr()),
        };
        own.next.set(next);
    }
    /// Takes a cache off the list.
    pub fn unlink(&mut self, cache: NonNull<CacheRecord<R>>) {
        // SAFETY: the caller's cache lives, and so do those on the list.
        #[allow(unsafe_code)]
        let next_of = |c: NonNull<CacheRecord<R>>| unsafe { &(*c.as_ptr()).next };
        let next = next_of(cache).replace(null_mut());
        if self.first == cache.as_ptr() {
            self.first = next;
        } else if let Some(before) = self.iter().find(|c| next_of(*c).get() == cache.as_ptr()) {
            next_of(before).set(next);
        }
    }
}

impl<R: RawMutex> Set<R> {
    /// The direct map.
    #[inline(always)]
    pub fn map(&self) -> &DirectMap<R> {
        &self.memory.map
    }
    /// Claims a CPU's token. Returns false if it is claimed already; waits while it is borrowed.
    pub fn claim(&self, cpu: u16) -> bool {
        loop {
            match self.try_claim(cpu, OUT) {
                Ok(_) => return true,
                Err(BORROWED) => spin(),
                Err(_) => return false,
            }
        }
    }
    /// Borrows a CPU's token for a short time, to empty the CPU's lists. Returns false if it is not free.
    pub fn borrow(&self, cpu: u16) -> bool {
        self.try_claim(cpu, BORROWED).is_ok()
    }
    fn try_claim(&self, cpu: u16, to: u32) -> Result<u32, u32> {
        let word = self.word(cpu);
        // Acquire: pairs with the release in `release`, so that the CPU's lists are seen as its last user left them.
        word.compare_exchange(IN, to, Ordering::Acquire, Ordering::Relaxed)
    }
    /// Gives a CPU's token back.
    pub fn release(&self, cpu: u16) {
        // Pairs with the acquire in `try_claim`.
        self.word(cpu).store(IN, Ordering::Release);
    }
    fn word(&self, cpu: u16) -> &AtomicU32 {
        assert!(cpu < self.cpus, "no such CPU");
        // SAFETY: there is a word for each CPU.
        #[allow(unsafe_code)]
        unsafe {
            &*self.claims.add(cpu.into())
        }
    }
    /// Calls `f` with each cache, with the list's lock held: no cache comes or goes meanwhile.
    pub fn each_cache(&self, mut f: impl FnMut(&CacheRecord<R>)) {
        let list = self.caches.lock();
        for cache in list.iter() {
            // SAFETY: caches on the list live.
            #[allow(unsafe_code)]
            f(unsafe { cache.as_ref() });
        }
    }
    /// Calls `f` with each cache, with no lock held: a cache that `f` has is kept, others may come and go.
    pub fn each_kept(&self, mut f: impl FnMut(&CacheRecord<R>)) {
        let mut before = u64::MAX;
        loop {
            let kept = {
                let list = self.caches.lock();
                // SAFETY: caches on the list live; it goes no more until it is let go.
                #[allow(unsafe_code)]
                let mut all = list.iter().map(|c| unsafe { &*c.as_ptr() });
                let Some(cache) = all.find(|c| c.born.get() < before) else {
                    return;
                };
                Kept::new(cache)
            };
            before = kept.0.born.get();
            f(kept.0);
        }
    }
}

/// A cache that must not go, though no lock is held.
struct Kept<'a, R: RawMutex>(&'a CacheRecord<R>);

impl<R: RawMutex> Kept<'_, R> {
    /// The caller holds the lock of the list on which the cache is.
    fn new(cache: &CacheRecord<R>) -> Kept<'_, R> {
        // Relaxed: whoever takes the cache off the list gets the list's lock later.
        cache.kept.fetch_add(1, Ordering::Relaxed);
        Kept(cache)
    }
}

impl<R: RawMutex> Drop for Kept<'_, R> {
    fn drop(&mut self) {
        // Pairs with the acquire in `CacheRecord::wait_until_let_go`.
        self.0.kept.fetch_sub(1, Ordering::Release);
    }
}
