//! Swap: slots of one page each, on a range of a device.
//!
//! Invariant: a slot is free exactly when no entry refers to it (`count` 0) and no frame is its copy in
//! the swap cache. Slots are handed out in clusters of 256 while there are such, so that pages swapped out
//! together lie together. `spec: 4.5`

use super::bit_set::BitSet;
use crate::block::{DeviceId, PAGE_SECTORS};
use unfrag_eras::Pfn;

/// Pages that lie together when they are swapped out together.
pub const CLUSTER: u32 = 256;
/// Pages that are read together: 2^3.
pub const READ_CLUSTER: u32 = 8;

/// Where swap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapConfig {
    /// Its device.
    pub device: DeviceId,
    /// Its first sector there.
    pub sector: u64,
    /// Its size.
    pub pages: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Entries that refer to it.
    count: u16,
    /// Frame of its copy in memory; 0 if there is none.
    cache: u32,
}

/// A swap area.
pub struct Swap {
    /// Where it is.
    pub config: SwapConfig,
    /// Pages on their way to it.
    pub writeback: u64,
    slots: Vec<Slot>,
    taken: BitSet,
    used: u32,
    next: u32,
    /// Slots left of the present cluster.
    left: u32,
    /// No free slot lies before this one.
    lowest: u32,
    sweep: u32,
}

impl Swap {
    /// An empty area.
    pub fn new(config: SwapConfig) -> Swap {
        Swap {
            config,
            writeback: 0,
            slots: vec![],
            taken: BitSet::default(),
            used: 0,
            next: 0,
            left: 0,
            lowest: 0,
            sweep: 0,
        }
    }

    /// Free slots.
    #[inline]
    pub fn free(&self) -> u32 {
        self.config.pages - self.used
    }

    /// Slots in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Whether more than half of it is used, so that slots are freed early.
    pub fn is_half_full(&self) -> bool {
        self.used * 2 > self.config.pages
    }

    /// Sector of a slot.
    pub fn sector(&self, slot: u32) -> u64 {
        self.config.sector + u64::from(slot) * PAGE_SECTORS
    }

    /// Takes a slot for the page in frame `cache`; no entry refers to it yet.
    pub fn alloc(&mut self, cache: Pfn) -> Option<u32> {
        if self.free() == 0 {
            return None;
        }
        let end = self.config.pages;
        if self.left == 0 {
            let words = CLUSTER as usize / 64;
            if let Some(at) = self.taken.next_clear_words(self.lowest, words, end) {
                self.next = at;
            }
            self.left = CLUSTER;
        }
        let mut slot = self.taken.next_clear(self.next);
        if slot >= end {
            slot = self.taken.next_clear(self.lowest);
        }
        debug_assert!(slot < end, "a free slot is counted but not found");
        self.left -= 1;
        self.next = slot + 1;
        if slot == self.lowest {
            self.lowest = slot + 1;
        }
        self.taken.set(slot, true);
        self.used += 1;
        if slot as usize >= self.slots.len() {
            let len = (slot as usize + 1).next_multiple_of(CLUSTER as usize);
            self.slots.resize(len, Slot::default());
        }
        self.slots[slot as usize].cache = cache.0 as u32;
        Some(slot)
    }

    /// One more entry refers to a slot.
    pub fn add(&mut self, slot: u32) {
        self.slots[slot as usize].count += 1;
    }

    /// One entry less refers to a slot.
    pub fn drop_one(&mut self, slot: u32) {
        self.slots[slot as usize].count -= 1;
        self.release_if_unused(slot);
    }

    /// Entries that refer to it.
    #[inline]
    pub fn count(&self, slot: u32) -> u16 {
        self.slots[slot as usize].count
    }

    /// The next slot of the sweep over all slots that were ever used. There must be one.
    pub(crate) fn next_to_sweep(&mut self) -> u32 {
        self.sweep = (self.sweep + 1) % self.slots.len() as u32;
        self.sweep
    }

    /// Its copy in memory.
    #[inline]
    pub fn cached(&self, slot: u32) -> Option<Pfn> {
        let s = self.slots.get(slot as usize)?;
        (s.cache != 0).then_some(Pfn(s.cache.into()))
    }

    /// Sets or clears its copy in memory.
    pub fn set_cached(&mut self, slot: u32, cache: Option<Pfn>) {
        self.slots[slot as usize].cache = cache.map_or(0, |p| p.0 as u32);
        if cache.is_none() {
            self.release_if_unused(slot);
        }
    }

    fn release_if_unused(&mut self, slot: u32) {
        let s = self.slots[slot as usize];
        if s.count == 0 && s.cache == 0 && self.taken.set(slot, false) {
            self.used -= 1;
            self.lowest = self.lowest.min(slot);
        }
    }

    /// Slots to read together with `slot`: those of its aligned group of 8 that are in use and not in memory;
    /// without `skips_holes`, up to the first free slot on either side.
    pub fn read_cluster(&self, slot: u32, skips_holes: bool) -> impl Iterator<Item = u32> {
        let first = slot & !(READ_CLUSTER - 1);
        let end = (first + READ_CLUSTER).min(self.slots.len() as u32);
        let hole = |s: &u32| !skips_holes && !self.taken.get(*s);
        let end = (slot..end).find(hole).unwrap_or(end);
        let first = (first..slot).rev().find(hole).map_or(first, |s| s + 1);
        (first..end).filter(|&s| self.count(s) > 0 && self.cached(s).is_none())
    }

    /// All slots in use: number, entries that refer to it, copy in memory.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u16, Option<Pfn>)> {
        let taken = self.taken.iter();
        taken.map(|s| (s, self.count(s), self.cached(s)))
    }

    /// Checks the invariant; the error says what is broken.
    pub fn validate(&self) -> Result<(), String> {
        let taken = self.taken.count();
        if taken != self.used {
            return Err(format!("{} swap slots counted, {taken} taken", self.used));
        }
        for (s, count, cache) in self.iter() {
            if count == 0 && cache.is_none() {
                return Err(format!("swap slot {s} is taken by nobody"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swap(pages: u32) -> Swap {
        Swap::new(SwapConfig {
            device: DeviceId(0),
            sector: 80,
            pages,
        })
    }

    #[test]
    // `spec: 4.5`
    fn slots_are_handed_out_in_clusters() {
        let mut s = swap(4096);
        let slots: Vec<_> = (1..=600).map(|p| s.alloc(Pfn(p)).unwrap()).collect();
        assert!(slots.windows(2).all(|w| w[1] == w[0] + 1));
        assert_eq!(s.sector(slots[3]), 80 + 3 * 8);
        // Holes below are left alone while whole clusters are free.
        for &slot in &slots[10..20] {
            s.set_cached(slot, None);
        }
        let next: Vec<_> = (0..300).map(|p| s.alloc(Pfn(p + 1)).unwrap()).collect();
        assert!(next.iter().all(|n| *n >= 600), "{:?}", &next[..3]);
        s.validate().unwrap();
    }

    #[test]
    fn every_slot_is_handed_out_once() {
        let mut s = swap(1000);
        let mut seen = std::collections::BTreeSet::new();
        while let Some(slot) = s.alloc(Pfn(1)) {
            s.add(slot);
            assert!(slot < 1000 && seen.insert(slot));
        }
        assert_eq!((seen.len(), s.free()), (1000, 0));
        s.set_cached(500, None);
        assert_eq!(s.alloc(Pfn(2)), None, "an entry still names it");
        s.drop_one(500);
        assert_eq!(s.alloc(Pfn(2)), Some(500));
        s.validate().unwrap();
    }

    #[test]
    // `spec: 4.5`
    fn read_cluster_is_the_aligned_group_of_eight() {
        let mut s = swap(1024);
        for p in 0..20 {
            let slot = s.alloc(Pfn(p + 1)).unwrap();
            s.add(slot);
            if slot != 9 {
                s.set_cached(slot, None);
            }
        }
        s.drop_one(12);
        let cluster = |skips| s.read_cluster(10, skips).collect::<Vec<_>>();
        assert_eq!(cluster(true), [8, 10, 11, 13, 14, 15]);
        // 9 is in memory, 12 is free: only that is a hole.
        assert_eq!(cluster(false), [8, 10, 11]);
    }

    #[test]
    // `spec: 4.5`
    fn half_full_means_more_than_half() {
        let mut s = swap(4);
        s.alloc(Pfn(1));
        s.alloc(Pfn(2));
        assert!(!s.is_half_full());
        s.alloc(Pfn(3));
        assert!(s.is_half_full());
    }
}
