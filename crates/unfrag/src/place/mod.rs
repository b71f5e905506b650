//! Which free frame serves a request, and where a freed one goes.
//!
//! - [`list`]: doubly linked lists through the frame table.
//! - [`lists`]: the buddy lists of a zone: split, merge, smallest fit, moving a pageblock.
//! - [`fallback`]: what happens when the own lists are empty (2.6.24 and later).
//! - [`v19`]: the same for the V19 patches, with their reserve and statistics.
//!
//! Nothing here knows watermarks or CPUs.

pub(crate) mod fallback;
pub(crate) mod list;
pub(crate) mod lists;
pub(crate) mod v19;

use crate::frame::{Frames, Ix, MigrateType};
use crate::kernel::{Placement, Rules};
use crate::trace::Extfrag;
pub(crate) use list::{End, List};
pub(crate) use lists::Lists;
pub use v19::{V19_TYPES, V19Stats, v19_type_name};

/// What a request says of itself to the placement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub order: u8,
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
    stealing: bool,
}

/// A block taken for a request, and what else that did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub ix: Ix,
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
    pub ix: Ix,
    pub alloc_order: u8,
    pub fallback_order: u8,
    pub alloc_mt: MigrateType,
    pub fallback_mt: MigrateType,
    pub change_ownership: bool,
}

impl Fallback {
    pub fn event(&self, map: &crate::frame::FrameMap) -> Extfrag {
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

/// The placement of one zone.
pub(crate) struct Place {
    pub lists: Lists,
    /// V19's reserve and statistics.
    pub v19: V19Stats,
    /// Memory is too small to group by mobility.
    pub ungrouped: bool,
}

impl Place {
    pub fn new(zone: u8, start: Ix, end: Ix) -> Place {
        Place {
            lists: Lists::new(zone, start, end),
            v19: V19Stats::default(),
            ungrouped: false,
        }
    }

    /// Takes a block of `want.order` for `want.mt` from the own lists or, failing that, by the era's
    /// fallback (`__rmqueue`).
    #[inline(always)]
    pub fn take(
        &mut self,
        frames: &mut Frames,
        sw: &Rules,
        want: Want,
        memory: &mut Memory,
    ) -> Option<Taken> {
        if matches!(sw.placement, Placement::V19) {
            self.v19.allocs[v19::number(want.mt)] += 1;
        }
        if !memory.stealing
            && let Some(ix) = self.lists.smallest_fit(frames, want.order, want.mt)
        {
            return Some(Taken {
                ix,
                list: want.mt,
                extfrag: None,
                boosts: 0,
            });
        }
        match &sw.placement {
            Placement::Ungrouped => None,
            Placement::V19 => self.take_v19(frames, want),
            Placement::Pageblocks(rules) => self.take_fallback(frames, rules, want, memory),
        }
    }
}
