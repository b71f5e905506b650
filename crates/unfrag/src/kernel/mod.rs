//! An era of the allocator as a value: [`Switches`] (what the code of that kernel does) and
//! [`Sysctl`] (what its administrator can set).
//!
//! Every rule that changed between kernels is one switch, decided in one place of the core; no era
//! has code of its own. `spec: linux-6.1 era table`

mod presets;
mod reclaim;

pub use presets::{PRESETS, Preset, preset};
pub use reclaim::{
    CongestionWait, HighOrder, KswapdGoal, KswapdNap, KswapdSleep, LruShape, OomOrders,
    ReclaimRules, ScanBalance,
};

/// How types share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// One list an order (2.6.14).
    None,
    /// Blocks of the largest order, one of four types each, with a reserve for fallbacks (V19).
    V19,
    /// Pageblocks (2.6.24 and later).
    Pageblocks,
}

/// How a request looks for a block on other types' lists. Pageblock eras only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackScan {
    /// From the largest order down to the request, at each order the types in turn.
    Descending,
    /// The same, but a movable request that may not steal takes the smallest block that fits.
    MovableAscends,
    /// Claim whole pageblocks from the largest order down; failing that, steal one block from the
    /// smallest order up (6.10 and later).
    ClaimThenSteal,
}

/// When a pageblock changes its type on a fallback below pageblock order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimTest {
    /// Half of its frames are free.
    HalfFree,
    /// Half of its frames are free or in use by a compatible type.
    HalfFreeOrAlike,
}

/// Which blocks merge at pageblock order and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// All.
    Free,
    /// Those of the ordinary types, and equal types.
    Ordinary,
    /// The same, and the buddy's pageblock takes the type of the freed block.
    OrdinaryRetype,
}

/// Form of the watermark check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkCheck {
    /// Free pages of too small orders do not count, the mark halves with each order (to 4.3).
    PerOrder,
    /// One block must exist (4.4 and later).
    BlockExists,
}

/// Distance between the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkGap {
    /// A quarter of the min mark.
    Quarter,
    /// The larger of a quarter of min and `watermark_scale_factor` of the zone.
    Scaled,
}

/// When a fallback raises the watermarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boost {
    /// Never.
    No,
    /// On each fallback that finds less than a pageblock.
    EachFallback,
    /// On each attempt to claim a pageblock.
    ClaimTries,
}

/// What is set aside for requests that cannot wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// Nothing.
    None,
    /// V19: an eighth of memory for fallbacks.
    Fallback,
    /// Up to two `MIGRATE_RESERVE` pageblocks a zone (2.6.24 to 4.3).
    Blocks {
        /// At most two (2.6.31.3 and later).
        capped: bool,
    },
    /// High-order atomic pageblocks made on demand (4.4 and later).
    HighAtomic(HighAtomicLimit),
}

/// How many pageblocks the high-order atomic reserve may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HighAtomicLimit {
    /// Below 1 % of the zone and one pageblock; all of it is hidden from others (6.1).
    PercentPlusBlock,
    /// 1 % rounded up to pageblocks, in zones where 1 % is a pageblock; its free part is hidden
    /// (6.18).
    PercentRoundedUp,
}

/// Shape of the per-CPU lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pcp {
    /// A hot and a cold list of order 0 (2.6.14, and 2.6.24 searched for the type).
    HotCold {
        /// Search the list for a page of the type.
        searched: bool,
    },
    /// Two lists of order 0: kernel and easily reclaimed (V19).
    Kinds,
    /// One list of order 0, searched for a page of the type; cold pages at the tail (2.6.28).
    Searched,
    /// One list a type, order 0, drained in turns (2.6.32).
    PerType {
        /// How a bulk free takes turns.
        drain: Drain,
        /// The stored type of a page decides its list in the buddy (2.6.33), not the per-CPU list.
        keep_type: bool,
    },
    /// Lists for orders 0 to 3 and 9 (5.13 and later).
    Orders {
        /// `high` follows demand (6.7 and later).
        tuned: bool,
        /// A page's type is looked up when it is drained (6.10 and later), not when it is freed.
        type_at_drain: bool,
    },
}

impl Pcp {
    /// `high` follows demand.
    #[inline]
    pub const fn is_tuned(self) -> bool {
        matches!(self, Pcp::Orders { tuned: true, .. })
    }
}

/// Order in which a bulk free of per-type lists takes pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// One page of each list in turn.
    RoundRobin,
    /// More pages of a list, the more empty lists came before it.
    BatchFree,
}

/// The rules of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// How types share memory.
    pub grouping: Grouping,
    /// Order of a pageblock: 9, or 10 for V19's blocks.
    pub block_order: u8,
    /// Freed blocks that will likely merge soon go to the tail of their list.
    pub tail_if_merge_likely: bool,
    /// Merging at pageblock order and above.
    pub merge: Merge,
    /// Search for a fallback.
    pub scan: FallbackScan,
    /// Unmovable requests may take whole pageblocks whatever the order of the block found.
    pub unmovable_may_claim: bool,
    /// When a pageblock changes hands.
    pub claim_test: ClaimTest,
    /// Free blocks move to the request's list before the test (and stay there), not after it.
    pub move_before_test: bool,
    /// Moved blocks go to the tail of their new list, not to the head.
    pub move_to_tail: bool,
    /// After a fallback the block found is split onto the victim's list unless it was claimed;
    /// otherwise it always belongs to the request's type.
    pub remainder_to_victim: bool,
    /// Watermark check.
    pub mark_check: MarkCheck,
    /// Distance of the marks.
    pub mark_gap: MarkGap,
    /// `ZONE_MOVABLE` shares in `min_free_kbytes` like low memory (all but 6.18).
    pub movable_is_lowmem: bool,
    /// khugepaged raises `min_free_kbytes` when it starts.
    pub khugepaged: bool,
    /// Watermark boost.
    pub boost: Boost,
    /// Reserve.
    pub reserve: Reserve,
    /// Per-CPU lists.
    pub pcp: Pcp,
    /// Each CPU keeps small changes of the count of free pages to itself, so that the marks are held
    /// against a count that is late (2.6.18 and later).
    pub late_free_count: bool,
    /// Reclaimable is type 1 and movable type 2 (2.6.24 to 4.3): the order in which a bulk free
    /// visits the per-CPU lists.
    pub reclaimable_is_type_1: bool,
    /// Requests avoid mixing types while a lower zone has memory.
    pub nofragment: bool,
    /// `vm.defrag_mode` exists.
    pub defrag_mode: bool,
    /// GFP_ATOMIC carries a bit of its own (6.1), which allows the unboosted recheck; otherwise
    /// `__GFP_HIGH` does.
    pub atomic_bit: bool,
    /// Reclaim.
    pub reclaim: ReclaimRules,
}

impl Switches {
    /// Whether a free block always lies on the list of its pageblock's type (6.10 and later), so
    /// that types are looked up when blocks join lists and no list holds a block across types.
    #[inline]
    pub const fn lists_follow_blocks(&self) -> bool {
        matches!(self.merge, Merge::OrdinaryRetype) && matches!(self.grouping, Grouping::Pageblocks)
    }
}

/// Settings of the administrator, with Linux' names and defaults. 0 means "let the kernel choose"
/// where Linux has it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// `vm.min_free_kbytes`; 0: from the size of memory.
    pub min_free_kbytes: u64,
    /// `vm.watermark_scale_factor`, in 1/10000 of a zone (1 to 3000).
    pub watermark_scale_factor: u64,
    /// `vm.watermark_boost_factor`, in 1/10000 of the high mark; 0: no boost.
    pub watermark_boost_factor: u64,
    /// `vm.lowmem_reserve_ratio` by zone.
    pub lowmem_reserve_ratio: [u64; crate::zone::NR_ZONE_KINDS],
    /// `vm.percpu_pagelist_high_fraction` (before 5.14 `percpu_pagelist_fraction`); 0: by marks.
    pub percpu_pagelist_high_fraction: u64,
    /// `vm.defrag_mode` (6.15 and later), 0 or 1.
    pub defrag_mode: bool,
    /// `vm.page_group_by_mobility_disabled`; always so where memory is too small to group.
    pub group_by_mobility_disabled: bool,
    /// Transparent huge pages are on, so that khugepaged runs.
    pub transparent_hugepage: bool,
    /// `vm.swappiness`, 0 to 100 (200 since 5.8).
    pub swappiness: u64,
}

impl Default for Sysctl {
    fn default() -> Self {
        Sysctl {
            min_free_kbytes: 0,
            watermark_scale_factor: 10,
            watermark_boost_factor: 15000,
            lowmem_reserve_ratio: [256, 256, 32, 32, 0],
            percpu_pagelist_high_fraction: 0,
            defrag_mode: false,
            group_by_mobility_disabled: false,
            transparent_hugepage: true,
            swappiness: 60,
        }
    }
}
