//! The record of a slab: 48 bytes, in the slab itself for SLAB's small objects, in the bootstrap cache
//! otherwise.

use crate::cache_record::CacheRecord;
use crate::formulas::SLAB_HEAD;
use crate::list::Links;
use crate::map::DirectMap;
use crate::sync::AtomicUsize;
use crate::word::AtomicWord;
use lock_api::RawMutex;
use unfrag::MigrateType;

/// The order and the migrate type of a block, with both of which its frames go back: in a byte, as a record has no room for
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKind(u8);

impl BlockKind {
    const ORDER: u8 = 0x1f;
    const TYPE_SHIFT: u32 = 5;

    /// Of a block of an order below 32.
    pub const fn new(order: u8, mt: MigrateType) -> BlockKind {
        BlockKind(order & BlockKind::ORDER | (mt as u8) << BlockKind::TYPE_SHIFT)
    }
    pub const fn order(self) -> u8 {
        self.0 & BlockKind::ORDER
    }
    pub const fn mt(self) -> MigrateType {
        MigrateType::from_bits(self.0 >> BlockKind::TYPE_SHIFT)
    }
}

/// A slab.
#[repr(C)]
pub(crate) struct SlabRecord<R: RawMutex> {
    /// Its links; the first field, as lists expect them at the start of a record.
    links: Links,
    /// Tag of the CPU record whose chain takes what is freed into this slab at once; 0 for none.
    pub owner: AtomicUsize,
    /// Free chain, objects out, frozen.
    pub word: AtomicWord,
    /// Its cache; null for whole pages that kmalloc handed out.
    pub cache: *const CacheRecord<R>,
    /// First object.
    pub first: *mut u8,
    /// First frame, counted from the start of the window.
    pub frame: u32,
    /// Objects.
    pub objects: u16,
    /// Order and type of its block.
    pub kind: BlockKind,
    /// Node of its frames.
    pub node: u8,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<SlabRecord<crate::lock::SpinLock>>() == SLAB_HEAD as usize);

impl<R: RawMutex> SlabRecord<R> {
    /// A record on no list.
    pub fn new(
        word: AtomicWord,
        cache: *const CacheRecord<R>,
        first: *mut u8,
        (frame, kind, node): (u32, BlockKind, u8),
        objects: u16,
    ) -> SlabRecord<R> {
        SlabRecord {
            links: Links::default(),
            owner: AtomicUsize::new(0),
            word,
            cache,
            first,
            frame,
            objects,
            kind,
            node,
        }
    }
    /// Number of the object at `p`, if one begins there.
    pub fn index(&self, p: *const u8, size: u32) -> Option<u32> {
        let off = p.addr().checked_sub(self.first.addr())?;
        let (i, rest) = (off / size as usize, off % size as usize);
        (rest == 0 && i < usize::from(self.objects)).then_some(i as u32)
    }
    /// Its cache.
    pub fn cache(&self) -> &CacheRecord<R> {
        // SAFETY: a cache outlives its slabs.
        #[allow(unsafe_code)]
        unsafe {
            &*self.cache
        }
    }
}

impl<R: RawMutex> DirectMap<R> {
    /// SLAB's index of what follows object `i` on the free chain of a slab. The indices lie behind the record.
    pub fn bufctl(&self, id: u32, i: u32) -> *mut u32 {
        let behind = SLAB_HEAD as usize / 4 + i as usize;
        self.by_id(id).cast::<u32>().wrapping_add(behind)
    }
    /// The record of a slab.
    #[inline(always)]
    pub fn slab(&self, id: u32) -> &SlabRecord<R> {
        // SAFETY: an id comes from the table or from a list, which name live records alone; they are
        // taken out of both before their memory goes.
        #[allow(unsafe_code)]
        unsafe {
            &*self.by_id(id).cast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_keeps_its_order_and_its_type() {
        for order in 0..=unfrag::MAX_ORDER {
            for mt in MigrateType::ALL {
                let kind = BlockKind::new(order, mt);
                assert_eq!((kind.order(), kind.mt()), (order, mt));
            }
        }
    }
}
