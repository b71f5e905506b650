//! A request to the free lists of a zone, and its result.

use crate::frame::{FrameIx, FrameMap, MigrateType, Order};
use crate::trace::Extfrag;

/// A request to the free lists of a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockRequest {
    pub order: Order,
    pub mt: MigrateType,
    /// Only whole pageblocks may be taken from another type (`ALLOC_NOFRAGMENT`).
    pub nofragment: bool,
    /// May wake kswapd, when a fallback boosts the marks.
    pub wake: bool,
}

/// Where a search of the free lists starts (`enum rmqueue_mode`). A batch of requests keeps it from one
/// request to the next. `spec: 2.6`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RmqueueMode {
    /// With the lists of the request's own type.
    #[default]
    Normal,
    /// With stealing: the last request of the batch had to steal, so the lists and pageblocks are not
    /// searched again (6.10 and later).
    Steal,
}

impl RmqueueMode {
    /// The mode after a request that stole, or did not.
    #[inline]
    pub(super) const fn after(stole: bool) -> RmqueueMode {
        if stole {
            RmqueueMode::Steal
        } else {
            RmqueueMode::Normal
        }
    }
}

/// A block taken for a request, and the side effects of taking it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub ix: FrameIx,
    /// List that it was taken from.
    pub list: MigrateType,
    /// The fallback by which it was found, if any.
    pub extfrag: Option<Fallback>,
    /// How often the watermarks are to be boosted.
    pub boosts: u32,
}

/// A fallback, by positions in the frame table; see [`Extfrag`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fallback {
    pub ix: FrameIx,
    pub alloc_order: Order,
    pub fallback_order: Order,
    pub alloc_mt: MigrateType,
    pub fallback_mt: MigrateType,
    pub change_ownership: bool,
}

impl Fallback {
    pub fn event(&self, map: &FrameMap) -> Extfrag {
        Extfrag {
            pfn: map.pfn(self.ix),
            alloc_order: self.alloc_order,
            fallback_order: self.fallback_order,
            alloc_migratetype: self.alloc_mt,
            fallback_migratetype: self.fallback_mt,
            change_ownership: self.change_ownership,
        }
    }
}
