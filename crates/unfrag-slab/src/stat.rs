//! The data behind slabinfo and `slabinfo -AD`; text is made elsewhere. `spec: linux-mm 6.4, 7.4`

use crate::array::shared_avail;
use crate::cache::KmemCache;
use crate::desc::Desc;
use crate::fault::Name;
use crate::formulas::PAGE;
use crate::rules::Design;
use crate::sync::Ordering;
use crate::system::Slabs;
use unfrag::frame::NR_ORDERS;

/// A cache's counts. Those of events are kept per CPU and without synchronisation, so a sum may be
/// off by a few while CPUs are at work.
#[derive(Clone, Copy, Debug)]
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
    /// Slabs with an object in use (SLAB); all slabs (SLUB and SLQB, as their kernels say).
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

fn slabs_of(d: &Desc) -> [u32; NR_ORDERS] {
    core::array::from_fn(|o| d.slabs_of[o].load(Ordering::Relaxed))
}

/// Pages of a cache's slabs.
pub(crate) fn slab_pages(d: &Desc) -> u64 {
    pages(&slabs_of(d))
}

/// Objects that are not in their slab: in use, or on a CPU's lists, or on shared arrays.
fn out_of_slabs(d: &Desc) -> (u64, u64, u64) {
    let s = d.inner();
    let (mut total, mut free, mut free_slabs) = (0, 0, 0);
    for n in 0..s.nodes {
        let n = d.node(n);
        total += n.objects.load(Ordering::Relaxed);
        let lists = n.lists.lock();
        let on = |id: u32| {
            let r = s.map.record(id);
            u64::from(r.objects.saturating_sub(r.word.load().inuse()))
        };
        match d.design {
            Design::Slab => free += lists.free_objects,
            _ => free += lists.partial.iter(&s.map).map(on).sum::<u64>(),
        }
        free_slabs += u64::from(lists.free.nr);
    }
    if d.design == Design::Slqb {
        for c in d.all_cpus() {
            let own = c.own.lock();
            let on = |id: u32| {
                let r = s.map.record(id);
                u64::from(r.objects.saturating_sub(r.word.load().inuse()))
            };
            free += own.iter(&s.map).map(on).sum::<u64>();
        }
    }
    (total.saturating_sub(free), total, free_slabs)
}

/// Objects in use, of a cache whose lists of CPUs are empty.
pub(crate) fn live_objects(d: &Desc) -> u64 {
    out_of_slabs(d).0
}

fn info(d: &Desc) -> CacheInfo {
    let (active_objects, total_objects, free_slabs) = out_of_slabs(d);
    let s = d.inner();
    let total_slabs = (0..s.nodes)
        .map(|n| d.node(n).slabs.load(Ordering::Relaxed))
        .sum::<u64>();
    let sum = |f: fn(&crate::desc::CpuRecord) -> u64| d.all_cpus().map(f).sum();
    let slab = d.design == Design::Slab;
    let shared_available = match slab {
        true => (0..s.nodes)
            .map(|n| shared_avail(&d.node(n).lists.lock()))
            .sum(),
        false => 0,
    };
    CacheInfo {
        name: d.name,
        design: d.design,
        object_size: d.object_size,
        size: d.layout.size,
        align: d.layout.align,
        order: d.order,
        objects_per_slab: d.objects.into(),
        active_objects,
        total_objects,
        active_slabs: total_slabs - free_slabs.min(total_slabs),
        total_slabs,
        slabs_of_order: slabs_of(d),
        limit: if slab { d.arrays.limit } else { 0 },
        batch: if slab { d.arrays.batch } else { 0 },
        shared_factor: if slab { d.arrays.shared } else { 0 },
        shared_available,
        alloc_fast: sum(|c| c.alloc_fast.get()),
        alloc_slow: sum(|c| c.alloc_slow.get()),
        free_fast: sum(|c| c.free_fast.get()),
        free_slow: sum(|c| c.free_slow.get()),
        order_fallbacks: d.order_fallbacks.load(Ordering::Relaxed),
        faults: d.faults.load(Ordering::Relaxed),
        handles: d.handles.load(Ordering::Relaxed),
    }
}

impl KmemCache<'_> {
    /// Its counts.
    pub fn info(&self) -> CacheInfo {
        info(self.desc())
    }
}

impl Slabs<'_> {
    /// Calls `f` with the counts of each cache, the youngest first. No cache comes or goes
    /// meanwhile; `f` must not create or destroy one.
    pub fn each_cache(&self, mut f: impl FnMut(&CacheInfo)) {
        self.inner().each_cache(|d| f(&info(d)));
    }

    /// Pages of all slabs of all caches, and those that kmalloc handed out as whole pages.
    pub fn slab_pages(&self) -> u64 {
        self.inner().slab_pages.load(Ordering::Relaxed)
    }
}
