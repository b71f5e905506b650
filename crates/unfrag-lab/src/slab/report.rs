//! The result of a slab replay: the shape of `--json`.

use serde::Serialize;
use unfrag_eras::frame::NR_ORDERS;
use unfrag_slab::CacheInfo;

/// The allocators side by side.
#[derive(Clone, Debug, Serialize)]
pub struct SlabReport {
    /// Name of the recording.
    pub source: String,
    /// Kernel that was recorded.
    pub kernel: String,
    /// CPUs by which the allocators set their limits.
    pub cpus: u16,
    /// Allocations replayed.
    pub allocations: u64,
    /// Frees replayed.
    pub frees: u64,
    /// Frees of objects from before the trace, left out.
    pub unknown_frees: u64,
    /// Objects handed out again without a traced free: freed just before.
    pub silent_frees: u64,
    /// Frees of a null pointer, left out.
    pub null_frees: u64,
    /// Allocations that failed when they were recorded, left out.
    pub failed_in_trace: u64,
    /// What each allocator did.
    pub allocators: Vec<AllocatorReport>,
}

/// Memory held at one moment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Held {
    /// Pages of slabs.
    pub pages: u64,
    /// Bytes that users asked for.
    pub requested_bytes: u64,
    /// Bytes of those pages that nobody asked for.
    pub waste_bytes: u64,
}

impl Held {
    /// Sets it from pages of slabs and bytes asked for.
    pub fn set(&mut self, pages: u64, requested_bytes: u64) {
        *self = Held {
            pages,
            requested_bytes,
            waste_bytes: (pages * 4096).saturating_sub(requested_bytes),
        };
    }
}

/// What one allocator did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AllocatorReport {
    /// `slab`, `slub` or `slqb`.
    pub allocator: String,
    /// When it held most pages.
    pub peak: Held,
    /// At the end of the trace.
    pub end: Held,
    /// Pages of slabs after all empty ones were returned.
    pub pages_after_shrink: u64,
    /// Pages of its own records at the end.
    pub record_pages: u64,
    /// Slabs of each order at the end.
    pub slabs_of_order: [u64; NR_ORDERS],
    /// Slabs that got only the lowest order, for want of a larger block.
    pub order_fallbacks: u64,
    /// Percent of allocations that a CPU's own list served.
    pub percent_fast_allocs: u64,
    /// Percent of frees to a CPU's own list.
    pub percent_fast_frees: u64,
    /// Allocations without memory.
    pub failures: u64,
    /// Each cache at the end.
    pub caches: Vec<CacheReport>,
    /// Each cache at the end, with all counts, for slabinfo.
    #[serde(skip)]
    pub infos: Vec<CacheInfo>,
}

/// A cache at the end of the trace.
#[derive(Clone, Debug, Serialize)]
pub struct CacheReport {
    /// Name.
    pub name: String,
    /// Bytes of an object.
    pub object_size: u32,
    /// Bytes with padding.
    pub size: u32,
    /// Order of its slabs.
    pub order: u8,
    /// Objects of a slab.
    pub objects_per_slab: u32,
    /// Objects in use or on CPUs' lists.
    pub active_objects: u64,
    /// Pages of its slabs.
    pub pages: u64,
    /// Allocations.
    pub allocs: u64,
    /// Frees.
    pub frees: u64,
}

impl CacheReport {
    /// Of a cache's counts.
    pub fn of(c: &CacheInfo) -> CacheReport {
        CacheReport {
            name: c.name.to_string(),
            object_size: c.object_size,
            size: c.size,
            order: c.order,
            objects_per_slab: c.objects_per_slab,
            active_objects: c.active_objects,
            pages: c.pages(),
            allocs: c.allocs(),
            frees: c.frees(),
        }
    }
}
