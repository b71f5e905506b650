//! Flags of a request ([`Gfp`]), and the rights derived from them ([`AllocFlags`]).
//!
//! `spec: 1.4, 7.7`

use bitflags::bitflags;
pub use unfrag::Gfp;

bitflags! {
    /// How far a request may go; derived from its [`Gfp`]. `spec: 1.4`
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct AllocFlags: u32 {
        /// Mark to check against: the low mark.
        const WMARK_LOW = 0x01;
        /// The high mark; neither bit means min.
        const WMARK_HIGH = 0x02;
        /// No check at all.
        const NO_WATERMARKS = 0x04;
        /// Victim of the OOM killer.
        const OOM = 0x08;
        /// Cannot sleep (old: HARDER).
        const NON_BLOCK = 0x10;
        /// `__GFP_HIGH` (old: HIGH).
        const MIN_RESERVE = 0x20;
        /// Obey the cpuset.
        const CPUSET = 0x40;
        /// May use contiguous memory areas.
        const CMA = 0x80;
        /// Do not mix types in a pageblock.
        const NOFRAGMENT = 0x100;
        /// May use the high-order atomic reserve.
        const HIGHATOMIC = 0x200;
        /// May wake kswapd.
        const KSWAPD = 0x800;
        /// An order-0 request that may be checked again without the boost.
        const UNBOOSTED_RECHECK = 0x1000;
    }
}
