//! The owner of each frame, as the simulated kernel knows it: 16 bytes a frame beside the allocator's own.
//!
//! Invariant: a frame that the allocator has handed out has an owner here, and a free one has none; the first
//! frame of a block stands for all of it. `maps` is the number of page-table entries that map the frame.

use crate::kmem::Obj;
use bitflags::bitflags;
use unfrag_eras::Pfn;

/// Id of an object: a range of pages by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub(crate) u32);

/// Processes that share anonymous pages since a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FamilyId(pub(crate) u32);

/// What the kernel uses a block of its own for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Use {
    /// Page tables and directories.
    Table = 0,
    /// Kernel stacks.
    Stack = 1,
    /// Slabs.
    Slab = 2,
    /// Network buffers.
    Net = 3,
    /// Blocks that a module holds (step `high-order`).
    Pinned = 4,
    /// Buffers of an encrypting layer.
    Crypt = 5,
    /// `kmalloc` above a page, and other direct uses.
    Other = 6,
}

/// Number of uses.
pub const NR_USES: usize = 7;

impl Use {
    /// All of them.
    pub const ALL: [Use; NR_USES] = [
        Use::Table,
        Use::Stack,
        Use::Slab,
        Use::Net,
        Use::Pinned,
        Use::Crypt,
        Use::Other,
    ];
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Use::Table => "page tables",
            Use::Stack => "kernel stacks",
            Use::Slab => "slab",
            Use::Net => "network buffers",
            Use::Pinned => "pinned by modules",
            Use::Crypt => "encryption buffers",
            Use::Other => "other kernel memory",
        }
    }
}

/// The owner of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// None: the frame is free, or was taken at boot.
    None,
    /// A page of a file's cache, of a device's or of tmpfs.
    File(ObjectId),
    /// An anonymous page, at its index in the objects of a family.
    Anon(FamilyId),
    /// A page of the swap cache without mappings; its index is its slot.
    Swap,
    /// Its owner is gone; it is freed when its transfer ends.
    Orphan,
    /// The kernel; the index is the order.
    Kernel(Use),
}

bitflags! {
    /// Flags of a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct FrameFlags: u16 {
        /// It is in the swap cache: `private` is the slot.
        const SWAP_CACHE = 1;
        /// It has a buffer head: `private` is the object.
        const BUFFERS = 1 << 1;
        /// Reading this page starts the next readahead.
        const READAHEAD = 1 << 2;
        /// Its content could not be read or written.
        const ERROR = 1 << 3;
        /// A transfer of it is under way.
        const IN_FLIGHT = 1 << 4;
        /// It is part of a huge page.
        const HUGE = 1 << 5;
        /// It is locked as it is being moved.
        const MOVING = 1 << 6;
    }
}

const TAG: u32 = 29;
const NONE: u32 = 0;
const FILE: u32 = 1;
const ANON: u32 = 2;
const SWAP: u32 = 3;
const ORPHAN: u32 = 4;
const KERNEL: u32 = 5;

/// The record of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameInfo {
    owner: u32,
    /// Page index in the object, slot, or order.
    pub index: u32,
    private: u32,
    /// Page-table entries that map it.
    pub maps: u16,
    /// Flags.
    pub bits: FrameFlags,
}

impl FrameInfo {
    /// Its owner.
    #[inline]
    pub fn owner(&self) -> Owner {
        let id = self.owner & ((1 << TAG) - 1);
        match self.owner >> TAG {
            NONE => Owner::None,
            FILE => Owner::File(ObjectId(id)),
            ANON => Owner::Anon(FamilyId(id)),
            SWAP => Owner::Swap,
            ORPHAN => Owner::Orphan,
            _ => Owner::Kernel(Use::ALL[id as usize]),
        }
    }

    #[inline]
    fn encode(owner: Owner) -> u32 {
        match owner {
            Owner::None => NONE,
            Owner::File(o) => FILE << TAG | o.0,
            Owner::Anon(f) => ANON << TAG | f.0,
            Owner::Swap => SWAP << TAG,
            Owner::Orphan => ORPHAN << TAG,
            Owner::Kernel(u) => KERNEL << TAG | u as u32,
        }
    }

    /// The record of a new frame of this owner.
    #[inline]
    pub fn new(owner: Owner, index: u32) -> FrameInfo {
        FrameInfo {
            owner: Self::encode(owner),
            index,
            ..FrameInfo::default()
        }
    }

    /// The record of a new frame of this owner, with one page-table entry that maps it.
    #[inline]
    pub fn mapped(owner: Owner, index: u32) -> FrameInfo {
        FrameInfo {
            maps: 1,
            ..FrameInfo::new(owner, index)
        }
    }

    /// Changes its owner and index, and nothing else.
    #[inline]
    pub fn set_owner(&mut self, owner: Owner, index: u32) {
        self.owner = Self::encode(owner);
        self.index = index;
    }

    /// Its slot in swap, if it is in the swap cache.
    #[inline]
    pub fn slot(&self) -> Option<u32> {
        self.bits
            .contains(FrameFlags::SWAP_CACHE)
            .then_some(self.private)
    }

    /// Gives it a slot.
    pub fn set_slot(&mut self, slot: Option<u32>) {
        debug_assert!(!self.bits.contains(FrameFlags::BUFFERS));
        self.bits.set(FrameFlags::SWAP_CACHE, slot.is_some());
        self.private = slot.unwrap_or(0);
    }

    /// Its buffer head.
    pub fn buffers(&self) -> Option<Obj> {
        let has = self.bits.contains(FrameFlags::BUFFERS);
        has.then(|| Obj::from_raw(self.private))?
    }

    /// Gives it a buffer head.
    pub fn set_buffers(&mut self, obj: Option<Obj>) {
        debug_assert!(!self.bits.contains(FrameFlags::SWAP_CACHE));
        self.bits.set(FrameFlags::BUFFERS, obj.is_some());
        self.private = obj.map_or(0, Obj::raw);
    }
}

/// All frames, by number.
pub struct Frames {
    infos: Vec<FrameInfo>,
    uses: [u64; NR_USES],
    /// What a test can tell of the content of each frame: how often it was written since it was zeroed.
    #[cfg(test)]
    pub writes: Vec<u32>,
}

impl Frames {
    /// Frames below `end`.
    pub fn new(end: u64) -> Frames {
        Frames {
            infos: vec![FrameInfo::default(); end as usize],
            uses: [0; NR_USES],
            #[cfg(test)]
            writes: vec![0; end as usize],
        }
    }

    /// Notes that the content of a frame is copied to another one. Only tests look at contents.
    #[inline]
    pub(crate) fn copy_content(&mut self, from: Pfn, to: Pfn) {
        #[cfg(test)]
        {
            self.writes[to.0 as usize] = self.writes[from.0 as usize];
        }
        let _ = (from, to);
    }

    /// Notes that a frame is zeroed.
    #[inline]
    pub(crate) fn zero_content(&mut self, pfn: Pfn) {
        #[cfg(test)]
        {
            self.writes[pfn.0 as usize] = 0;
        }
        let _ = pfn;
    }

    /// Notes that a frame is written.
    #[inline]
    pub(crate) fn write_content(&mut self, pfn: Pfn) {
        #[cfg(test)]
        {
            self.writes[pfn.0 as usize] += 1;
        }
        let _ = pfn;
    }

    /// A frame.
    #[inline]
    pub fn get(&self, pfn: Pfn) -> &FrameInfo {
        &self.infos[pfn.0 as usize]
    }

    /// A frame.
    #[inline]
    pub fn get_mut(&mut self, pfn: Pfn) -> &mut FrameInfo {
        &mut self.infos[pfn.0 as usize]
    }

    /// The kernel takes a block.
    pub fn take(&mut self, pfn: Pfn, order: u8, what: Use) {
        debug_assert!(self.get(pfn).owner() == Owner::None, "{pfn:?} has an owner");
        *self.get_mut(pfn) = FrameInfo::new(Owner::Kernel(what), order.into());
        self.uses[what as usize] += 1 << order;
    }

    /// The kernel releases a block; returns its order.
    pub fn release(&mut self, pfn: Pfn) -> u8 {
        let info = std::mem::take(self.get_mut(pfn));
        let Owner::Kernel(what) = info.owner() else {
            panic!("{pfn:?} is not the kernel's but {:?}", info.owner())
        };
        self.uses[what as usize] -= 1 << info.index;
        info.index as u8
    }

    /// Pages by use of the kernel.
    pub fn uses(&self) -> [u64; NR_USES] {
        self.uses
    }

    /// All frames that have an owner.
    pub fn owned(&self) -> impl Iterator<Item = (Pfn, &FrameInfo)> {
        let all = self.infos.iter().enumerate();
        all.filter(|(_, i)| i.owner != NONE)
            .map(|(n, i)| (Pfn(n as u64), i))
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_survive_the_encoding() {
        assert_eq!(size_of::<FrameInfo>(), 16);
        let mut all = vec![
            Owner::None,
            Owner::File(ObjectId((1 << TAG) - 1)),
            Owner::Anon(FamilyId(7)),
            Owner::Swap,
            Owner::Orphan,
        ];
        all.extend(Use::ALL.map(Owner::Kernel));
        for owner in all {
            assert_eq!(FrameInfo::new(owner, 3).owner(), owner);
        }
    }

    #[test]
    fn the_kernels_blocks_are_counted_by_use() {
        let mut f = Frames::new(64);
        f.take(Pfn(8), 1, Use::Stack);
        f.take(Pfn(16), 0, Use::Table);
        assert_eq!(f.uses()[Use::Stack as usize], 2);
        assert_eq!(f.release(Pfn(8)), 1);
        assert_eq!(f.uses(), [1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(f.owned().count(), 1);
    }
}
