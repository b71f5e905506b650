//! Flags of a request, as Linux has them: the word for what a caller wants that slab caches and the eras share.
//!
//! The bits are those of Linux 6.1; readers of other eras translate by name.
//! `spec: 1.4, 7.7`

use crate::frame::MigrateType;
use bitflags::bitflags;

bitflags! {
    /// Request flags (`gfp_t`), with the bit values of Linux 6.1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
    pub struct Gfp: u32 {
        /// From the DMA zone.
        const DMA = 0x1;
        /// May come from high memory.
        const HIGHMEM = 0x2;
        /// From below 4 GiB.
        const DMA32 = 0x4;
        /// The user can move it.
        const MOVABLE = 0x8;
        /// A shrinker gives it back.
        const RECLAIMABLE = 0x10;
        /// May use half of the reserve.
        const HIGH = 0x20;
        /// May start I/O.
        const IO = 0x40;
        /// May call into file systems.
        const FS = 0x80;
        /// Wants zeroed memory.
        const ZERO = 0x100;
        /// Cannot sleep (6.1; gone in 6.3).
        const ATOMIC = 0x200;
        /// May reclaim itself.
        const DIRECT_RECLAIM = 0x400;
        /// May wake kswapd.
        const KSWAPD_RECLAIM = 0x800;
        /// Will be written soon.
        const WRITE = 0x1000;
        /// No report on failure.
        const NOWARN = 0x2000;
        /// Try hard, but may fail.
        const RETRY_MAYFAIL = 0x4000;
        /// Must not fail.
        const NOFAIL = 0x8000;
        /// Give up early.
        const NORETRY = 0x10000;
        /// May use all reserves.
        const MEMALLOC = 0x20000;
        /// A compound page.
        const COMP = 0x40000;
        /// Never the reserves.
        const NOMEMALLOC = 0x80000;
        /// Only from the nodes of the cpuset.
        const HARDWALL = 0x10_0000;
        /// Only from the given node.
        const THISNODE = 0x20_0000;
        /// Charged to the control group.
        const ACCOUNT = 0x40_0000;

        /// `GFP_ATOMIC` of 6.1.
        const ATOMIC_MASK = 0xa20;
        /// `GFP_KERNEL`.
        const KERNEL = 0xcc0;
        /// `GFP_USER`.
        const USER = 0x10_0cc0;
        /// `GFP_HIGHUSER`.
        const HIGHUSER = 0x10_0cc2;
        /// `GFP_HIGHUSER_MOVABLE`.
        const HIGHUSER_MOVABLE = 0x10_0cca;
        /// Bits without a name here are kept.
        const _ = !0;
    }
}

impl Gfp {
    /// Migrate type that the mobility bits ask for; `None` if both are set, which every era refuses
    /// (V19 with a warning and no page).
    #[inline]
    pub const fn mobility(self) -> Option<MigrateType> {
        // By the two mobility bits.
        const TYPES: [MigrateType; 3] = [
            MigrateType::Unmovable,
            MigrateType::Movable,
            MigrateType::Reclaimable,
        ];
        let bits = (self.bits() >> 3 & 3) as usize;
        if bits == 3 { None } else { Some(TYPES[bits]) }
    }
}
