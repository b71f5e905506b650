//! Rules of placement: how types share memory, what falls back to what, and what is set aside.
//! `spec: 2, 2.6`

/// How types share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One list an order (2.6.14).
    Ungrouped,
    /// Blocks of the largest order, one of four types each, with an eighth of memory kept for
    /// fallbacks (V19).
    V19,
    /// Pageblocks (2.6.24 and later).
    Pageblocks(PageblockRules),
}

/// What holds where memory is grouped by pageblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageblockRules {
    /// How a request looks for a block on other types' lists.
    pub fallback: Fallback,
    /// Unmovable requests may take whole pageblocks whatever the order of the block found.
    pub unmovable_may_claim: bool,
    /// When a pageblock changes its type.
    pub claim_test: ClaimTest,
    /// Moved blocks go to the tail of their new list, not to the head.
    pub move_to_tail: bool,
    /// What is set aside for requests that cannot wait.
    pub reserve: Reserve,
    /// Only costly orders set something aside: a request of up to [`Order::COSTLY`](crate::Order::COSTLY) that cannot
    /// wait reserves no pageblock. No kernel has it so; it is a proposal of 2026.
    pub reserve_costly_only: bool,
    /// Requests avoid mixing types while a lower zone has memory.
    pub nofragment: bool,
    /// `vm.defrag_mode` exists.
    pub defrag_mode: bool,
    /// Reclaimable is type 1 and movable type 2 (2.6.24 to 4.3): the order of the columns of
    /// `/proc/pagetypeinfo`, and in which a bulk free visits per-CPU lists of each type.
    pub reclaimable_is_type_1: bool,
}

/// How a request looks for a block on other types' lists, and with it whether a free block may lie on
/// the list of another type than its pageblock's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// One search, from the largest order down to the request; what is found moves to the request's
    /// lists, whoever owns the pageblock (to 6.9).
    ScanDown(ScanDown),
    /// Claim whole pageblocks from the largest order down; failing that, steal one block. Every free block lies on the list of its pageblock's type (6.10 and later):
    /// types are looked up when blocks join lists, pageblocks that merge take one type, and no list
    /// holds a block across types.
    ClaimThenSteal {
        /// Each attempt to claim a pageblock raises the watermarks.
        boost: Option<Boost>,
        /// Which block is stolen from.
        steal: Steal,
    },
}

/// Which block a request steals from when it cannot claim a pageblock. What remains of the block stays with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal {
    /// The first block whose pageblock it may not have, which is the largest one; a request that may claim none of that
    /// order takes the smallest. Both raise the watermarks, as a try to claim does (6.10 to 6.14).
    Largest,
    /// The smallest block that fits, after all orders were tried (6.15 and later).
    Smallest,
}

/// A search from the largest order down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanDown {
    /// Which blocks merge at pageblock order and above.
    pub merge: Merge,
    /// A movable request that may not claim takes the smallest block that fits instead.
    pub movable_ascends: bool,
    /// Type of the remainder of a block that was split.
    pub remainder: Remainder,
    /// Each fallback that finds less than a pageblock raises the watermarks.
    pub boost: Option<Boost>,
}

/// Which blocks merge at pageblock order and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// All.
    All,
    /// Those of the ordinary types, and equal types.
    Ordinary,
}

/// Type of the remainder of a block that a fallback found and split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// The victim's, unless the pageblock may be claimed (2.6.24 to 4.3).
    Victims,
    /// The request's always: what was found moves to its lists, and smallest fit takes from there
    /// (to 6.9).
    Requests,
}

/// When a pageblock changes its type on a fallback below pageblock order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimTest {
    /// Half of its frames are free.
    HalfFree,
    /// Half of its frames are free or in use by a compatible type.
    HalfFreeOrAlike,
    /// For what can be moved as [`HalfFreeOrAlike`](Self::HalfFreeOrAlike); for what cannot, always: the next such
    /// requests get what comes free in the same pageblock, instead of spoiling others. Ours.
    AlwaysIfFixed,
}

/// Effects of a raise of the watermarks. `spec: 1.3, 1.4`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Boost {
    /// Which requests of order 0 are held against the min mark without the boost, too.
    pub recheck: BoostRecheck,
    /// Which request, coming next, wakes kswapd for it.
    pub wakes: BoostWakes,
}

/// Which requests a boost does not stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoostRecheck {
    /// Those with the bit of `GFP_ATOMIC` (to 6.2).
    AtomicBit,
    /// Those with `__GFP_HIGH` (6.3 and later).
    High,
}

/// Which request wakes kswapd after a boost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoostWakes {
    /// Any (to 6.2).
    AnyRequest,
    /// The next that may wake it at all (6.3 and later).
    IfItMay,
}

/// What is set aside for requests that cannot wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// Nothing.
    None,
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
