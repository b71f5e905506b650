//! Numbers of frames, orders, nodes and CPUs. Each is a type of its own, so that one cannot be passed for another.

use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Number of a physical frame (physical address / page size).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pfn(pub u64);

/// Order of a block: it has `2^order` frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order(pub u8);

impl Order {
    /// A single frame.
    pub const ZERO: Order = Order(0);
    /// Largest order that is cheap to get (`PAGE_ALLOC_COSTLY_ORDER`).
    pub const COSTLY: Order = Order(3);
    /// A huge page of 2 MiB, where a page has 4 KiB.
    pub const HUGE: Order = Order(9);

    /// Frames in a block of this order.
    #[inline]
    pub const fn frames(self) -> u32 {
        1 << self.0
    }
    /// The order as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// The orders from this one up to `last`, both included.
    #[inline]
    pub fn up_to(self, last: Order) -> impl DoubleEndedIterator<Item = Order> + Clone {
        (self.0..=last.0).map(Order)
    }
    /// The order below; of order 0, none.
    #[inline]
    pub const fn below(self) -> Option<Order> {
        match self.0.checked_sub(1) {
            Some(order) => Some(Order(order)),
            None => None,
        }
    }
}

impl core::fmt::Display for Order {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.0, f)
    }
}

/// Number of a NUMA node.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
)]
#[repr(transparent)]
pub struct NodeId(pub u8);

/// Number of a CPU, from 0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u32);

impl CpuId {
    /// The CPU as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Position of a frame in an allocator's own tables. It is congruent to the frame's number modulo the largest
/// block, so that buddy arithmetic works on either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, KnownLayout)]
#[repr(transparent)]
pub struct FrameIx(pub u32);

impl FrameIx {
    /// No frame.
    pub const NIL: FrameIx = FrameIx(u32::MAX);

    /// The position as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// First frame of the aligned block of this order that holds it.
    #[inline]
    pub const fn head(self, order: Order) -> FrameIx {
        FrameIx(self.0 & !(order.frames() - 1))
    }
    /// The other half of the block of the next order.
    #[inline]
    pub const fn buddy(self, order: Order) -> FrameIx {
        FrameIx(self.0 ^ order.frames())
    }
    /// The frame `frames` further.
    #[inline]
    pub const fn plus(self, frames: u32) -> FrameIx {
        FrameIx(self.0 + frames)
    }
    /// Whether a block of this order may begin here.
    #[inline]
    pub const fn is_aligned(self, order: Order) -> bool {
        self.0 & (order.frames() - 1) == 0
    }
    /// The largest aligned blocks up to order `max` that make up the frames from here up to `end`.
    pub fn blocks_until(
        self,
        end: FrameIx,
        max: Order,
    ) -> impl Iterator<Item = (FrameIx, Order)> + Clone + use<> {
        let mut at = self;
        core::iter::from_fn(move || {
            let rest = end.0.checked_sub(at.0).filter(|&n| n > 0)?;
            let aligned = Order(at.0.trailing_zeros() as u8);
            let order = aligned.min(Order(rest.ilog2() as u8)).min(max);
            let block = (at, order);
            at = at.plus(order.frames());
            Some(block)
        })
    }
    /// The frames from here up to `end`, without it.
    #[inline]
    pub fn until(self, end: FrameIx) -> impl Iterator<Item = FrameIx> {
        (self.0..end.0).map(FrameIx)
    }
}
