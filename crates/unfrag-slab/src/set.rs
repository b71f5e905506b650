//! The state of a set of caches: its memory, its rules, its CPUs' tokens, and the list of its caches.

use crate::cache_record::CacheRecord;
use crate::lock::Locked;
use crate::map::DirectMap;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::shrink::Shrinkers;
use crate::sync::{AtomicU32, AtomicU64, Ordering, spin};

/// State of a CPU's token: free, claimed, borrowed for a short time.
const IN: u32 = 0;
const OUT: u32 = 1;
const BORROWED: u32 = 2;

/// The state of a set of caches, in the bootstrap cache.
pub(crate) struct Set {
    pub memory: Memory,
    pub rules: Rules,
    pub cpus: u16,
    pub nodes: u8,
    /// Whether there are more than 32 MiB, which moves SLAB's break order.
    pub large_memory: bool,
    /// The state of the token of each CPU, one word each.
    pub claims: *const AtomicU32,
    pub node_of_cpu: fn(u16) -> u8,
    /// First of all caches.
    pub caches: Locked<CacheList>,
    pub shrinkers: Shrinkers,
    /// Pages of all slabs, and those that kmalloc handed out as such.
    pub slab_pages: AtomicU64,
}

/// The list of all caches.
pub(crate) struct CacheList(pub *const CacheRecord);

// SAFETY: the descriptors are reached under the list's lock, or through handles that keep them.
#[allow(unsafe_code)]
unsafe impl Send for CacheList {}
// SAFETY: all that changes is atomic or locked, but for the records of CPUs, which tokens guard.
#[allow(unsafe_code)]
unsafe impl Sync for Set {}

impl Set {
    /// The direct map.
    #[inline(always)]
    pub fn map(&self) -> &DirectMap {
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
        word.compare_exchange(IN, to, Ordering::Acquire, Ordering::Relaxed)
    }
    /// Gives a CPU's token back.
    pub fn release(&self, cpu: u16) {
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
    /// Calls `f` with each cache. No cache comes or goes meanwhile.
    pub fn each_cache(&self, mut f: impl FnMut(&CacheRecord)) {
        let list = self.caches.lock();
        let mut at = list.0;
        while !at.is_null() {
            // SAFETY: caches on the list live.
            #[allow(unsafe_code)]
            let cache = unsafe { &*at };
            f(cache);
            at = cache.next.get();
        }
    }
}
