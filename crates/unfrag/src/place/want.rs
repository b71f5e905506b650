//! What a request says of itself to the placement, and what it gets.

use crate::frame::{FrameIx, FrameMap, MigrateType, Order};
use crate::trace::Extfrag;

/// What a request says of itself to the placement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub order: Order,
    pub mt: MigrateType,
    /// Only whole pageblocks may change hands.
    pub nofragment: bool,
    /// May wake kswapd, when a fallback boosts the marks.
    pub wake: bool,
}

/// What a batch of requests remembers from one to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The last one had to steal, so the next one does not search lists and pageblocks again (6.10
    /// and later). `spec: linux-mm 2.6`
    pub(super) stealing: bool,
}

/// A block taken for a request, and what else that did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub ix: FrameIx,
    /// List that it was taken from.
    pub list: MigrateType,
    /// A fallback that came before.
    pub extfrag: Option<Fallback>,
    /// How often the watermarks are to be boosted.
    pub boosts: u32,
}

/// [`Extfrag`] in positions.
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
