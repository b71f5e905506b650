//! Numbers of zones, pageblocks and sets of LRU lists. Each is a type of its own, so that one cannot be passed for
//! another.

use super::{FrameIx, Geometry};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Number of a zone: its position in [`Config::zones`](crate::Config::zones).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub u8);

impl ZoneId {
    /// The zone as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of a pageblock: its position in the table of pageblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pageblock(pub u32);

impl Pageblock {
    /// The pageblock that holds a frame.
    #[inline]
    pub const fn of(ix: FrameIx, geometry: &Geometry) -> Pageblock {
        Pageblock(ix.0 >> geometry.block_order.0)
    }
}

/// Number of a set of LRU lists: of a zone, or of a node.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, KnownLayout,
)]
#[repr(transparent)]
pub(crate) struct LruId(pub u8);

impl LruId {
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
