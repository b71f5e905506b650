//! The data behind slabinfo and `slabinfo -AD`, without their text. `spec: 6.4, 7.4`
//!
//! Counts are read relaxed: each for itself, as nothing is read because of it.

use crate::array::shared_avail;
use crate::cache::KmemCache;
use crate::cache_record::CacheRecord;
use crate::fault::Name;
use crate::formulas::PAGE;
use crate::rules::Design;
use crate::set::Set;
use crate::sync::Ordering;
use lock_api::RawMutex;
use unfrag::frame::NR_ORDERS;

/// A cache's counts. Those of events are kept per CPU and without synchronisation, so a sum may be
/// off by a few while CPUs are at work.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CacheInfo {
    /// Name.
    pub name: Name,
    /// Design.
    pub design: Design,
    /// Bytes of an object that its user sees.
    pub object_size: u32,
    /// Bytes from one object to the next.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Order of its slabs.
    pub order: u8,
    /// Objects of a slab of that order.
    pub objects_per_slab: u32,
    /// Objects in use, or on a CPU's lists.
    pub active_objects: u64,
    /// Objects that its slabs have room for.
    pub total_objects: u64,
    /// Slabs with an object in use (SLAB); all slabs (SLUB and SLQB, as their kernels count).
    pub active_slabs: u64,
    /// Slabs.
    pub total_slabs: u64,
    /// Slabs of each order.
    pub slabs_of_order: [u32; NR_ORDERS],
    /// SLAB: objects of a CPU's array; 0 otherwise.
    pub limit: u32,
    /// SLAB: objects moved at a time; 0 otherwise.
    pub batch: u32,
    /// SLAB: batches of the shared array; 0 otherwise.
    pub shared_factor: u32,
    /// SLAB: objects on shared arrays; 0 otherwise.
    pub shared_available: u64,
    /// Allocations that a CPU's own list served.
    pub alloc_fast: u64,
    /// All others.
    pub alloc_slow: u64,
    /// Frees to a CPU's own list.
    pub free_fast: u64,
    /// All others.
    pub free_slow: u64,
    /// Slabs that got the least order only (SLUB).
    pub order_fallbacks: u64,
    /// Misuses found.
    pub faults: u64,
    /// Handles: more than one if caches share their slabs.
    pub handles: u32,
}

impl CacheInfo {
    /// Allocations.
    pub fn allocs(&self) -> u64 {
        self.alloc_fast + self.alloc_slow
    }
    /// Frees.
    pub fn frees(&self) -> u64 {
        self.free_fast + self.free_slow
    }
    /// The two numbers under `%Fast`: percent of allocations and of frees.
    pub fn percent_fast(&self) -> (u64, u64) {
        let percent = |fast: u64, all: u64| (100 * fast).checked_div(all).unwrap_or(0);
        (
            percent(self.alloc_fast, self.allocs()),
            percent(self.free_fast, self.frees()),
        )
    }
    /// Pages of its slabs.
    pub fn pages(&self) -> u64 {
        pages(&self.slabs_of_order)
    }
    /// Bytes of its slabs that hold no object in use, as far as users see objects.
    pub fn waste(&self) -> u64 {
        let held = self.pages() * u64::from(PAGE);
        held.saturating_sub(self.active_objects * u64::from(self.object_size))
    }
}

fn pages(slabs_of: &[u32; NR_ORDERS]) -> u64 {
    let of = slabs_of.iter().enumerate();
    of.map(|(order, n)| u64::from(*n) << order).sum()
}

fn slabs_of<R: RawMutex>(cache: &CacheRecord<R>) -> [u32; NR_ORDERS] {
    core::array::from_fn(|o| cache.slabs_of[o].load(Ordering::Relaxed))
}

/// Pages of a cache's slabs.
pub(crate) fn slab_pages<R: RawMutex>(cache: &CacheRecord<R>) -> u64 {
    pages(&slabs_of(cache))
}

/// Objects that are not in their slab: in use, or on a CPU's lists, or on shared arrays.
fn out_of_slabs<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>) -> (u64, u64, u64) {
    let (mut total, mut free, mut free_slabs) = (0, 0, 0);
    for n in 0..set.nodes {
        let n = cache.node(n);
        total += n.objects.load(Ordering::Relaxed);
        let lists = n.lists.lock();
        let on = |id: u32| {
            let slab = set.map().slab(id);
            u64::from(slab.objects.saturating_sub(slab.word.load().inuse()))
        };
        match cache.design {
            Design::Slab => free += lists.free_objects,
            _ => free += lists.partial.iter(set.map()).map(on).sum::<u64>(),
        }
        free_slabs += u64::from(lists.free.nr);
    }
    if cache.design == Design::Slqb {
        for c in cache.all_cpus() {
            let own = c.own_slabs.lock();
            let on = |id: u32| {
                let slab = set.map().slab(id);
                u64::from(slab.objects.saturating_sub(slab.word.load().inuse()))
            };
            free += own.iter(set.map()).map(on).sum::<u64>();
        }
    }
    (total.saturating_sub(free), total, free_slabs)
}

/// Objects in use, of a cache whose lists of CPUs are empty.
pub(crate) fn live_objects<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>) -> u64 {
    out_of_slabs(set, cache).0
}

pub(crate) fn info<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>) -> CacheInfo {
    let (active_objects, total_objects, free_slabs) = out_of_slabs(set, cache);
    let total_slabs = (0..set.nodes)
        .map(|n| cache.node(n).slabs.load(Ordering::Relaxed))
        .sum::<u64>();
    let sum = |f: fn(&crate::cache_record::CpuRecord<R>) -> u64| cache.all_cpus().map(f).sum();
    let slab = cache.design == Design::Slab;
    let shared_available = match slab {
        true => (0..set.nodes)
            .map(|n| shared_avail(&cache.node(n).lists.lock()))
            .sum(),
        false => 0,
    };
    CacheInfo {
        name: cache.name,
        design: cache.design,
        object_size: cache.object_size,
        size: cache.layout.size,
        align: cache.layout.align,
        order: cache.order,
        objects_per_slab: cache.objects.into(),
        active_objects,
        total_objects,
        active_slabs: total_slabs - free_slabs.min(total_slabs),
        total_slabs,
        slabs_of_order: slabs_of(cache),
        limit: if slab { cache.arrays.limit } else { 0 },
        batch: if slab { cache.arrays.batch } else { 0 },
        shared_factor: if slab { cache.arrays.shared } else { 0 },
        shared_available,
        alloc_fast: sum(|cpu| cpu.alloc_fast.get()),
        alloc_slow: sum(|cpu| cpu.alloc_slow.get()) + cache.alloc_apart.load(Ordering::Relaxed),
        free_fast: sum(|cpu| cpu.free_fast.get()),
        free_slow: sum(|cpu| cpu.free_slow.get()) + cache.free_apart.load(Ordering::Relaxed),
        order_fallbacks: cache.order_fallbacks.load(Ordering::Relaxed),
        faults: cache.faults.load(Ordering::Relaxed),
        handles: cache.handles.load(Ordering::Relaxed),
    }
}

impl<R: RawMutex> KmemCache<'_, R> {
    /// Its counts.
    pub fn info(&self) -> CacheInfo {
        info(self.set(), self.record())
    }
}
