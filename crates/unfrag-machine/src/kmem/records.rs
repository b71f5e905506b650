//! The records of slabs, and what all designs keep for a cache.

use serde::Serialize;
use std::num::NonZeroU32;

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheId(pub(crate) u16);

/// An object: the number of the slab that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obj(pub(super) NonZeroU32);

impl Obj {
    /// The number by which a frame remembers it.
    pub(crate) fn raw(self) -> u32 {
        self.0.get()
    }
    /// The object of that number.
    pub(crate) fn from_raw(raw: u32) -> Option<Obj> {
        NonZeroU32::new(raw).map(Obj)
    }
}

/// Which list a slab is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlabPlace {
    /// It does not exist.
    Vacant,
    /// No free object; on no list.
    Full,
    /// On the list of slabs with some free objects.
    Partial,
    /// SLAB: on the list of slabs with no object in use.
    Free,
    /// SLUB: a CPU's own.
    Cpu,
    /// SLUB: among a CPU's partial slabs.
    CpuPartial,
}

/// The record of a slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlabRec {
    /// Its first frame.
    pub pfn: u32,
    pub prev: u32,
    pub next: u32,
    pub cache: u16,
    /// Number of objects.
    pub objects: u16,
    /// Objects that are free on the slab itself.
    pub free: u16,
    pub order: u8,
    pub place: SlabPlace,
    /// SLQB: the CPU that made it.
    pub cpu: u8,
}

/// Counts of a cache since the start. `spec: 6.4`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheStat {
    /// Allocations from the CPU's own objects.
    pub alloc_fast: u64,
    /// Other allocations.
    pub alloc_slow: u64,
    /// Frees to the CPU's own objects.
    pub free_fast: u64,
    /// Other frees.
    pub free_slow: u64,
    /// Slabs that were made.
    pub grown: u64,
    /// Slabs of the least order, made because the preferred order failed.
    pub fallbacks: u64,
    /// Slabs given back.
    pub shrunk: u64,
}

/// The part of a cache that all designs share.
pub(super) struct Common {
    pub name: &'static str,
    pub size: u32,
    pub reclaimable: bool,
    pub order: u8,
    pub min_order: u8,
    pub slabs: u64,
    pub pages: u64,
    pub in_use: u64,
    pub stat: CacheStat,
}

/// Slab records, and the blocks to be freed.
pub(super) struct Arena {
    pub slabs: Vec<SlabRec>,
    pub vacant: Vec<u32>,
    pub freed: Vec<(u32, u8)>,
}

impl Arena {
    /// Gives a slab's pages back.
    pub fn discard(&mut self, common: &mut Common, s: u32) {
        let r = &mut self.slabs[s as usize];
        debug_assert!(r.free == r.objects, "a slab in use is discarded");
        r.place = SlabPlace::Vacant;
        self.freed.push((r.pfn, r.order));
        common.slabs -= 1;
        common.pages -= 1 << r.order;
        common.stat.shrunk += 1;
        self.vacant.push(s);
    }
}
