//! The groups of rules that the eras in `presets` are made of, but for those of reclaim and compaction
//! (`preset_reclaim`, `preset_compact`). Each constant spells out all its fields. It
//! is named after the oldest kernel here that has these rules.

use super::*;

pub(super) const PLACEMENT_2_6_24: Placement = Placement::Pageblocks(PageblockRules {
    fallback: Fallback::ScanDown(ScanDown {
        merge: Merge::All,
        movable_ascends: false,
        remainder: Remainder::Victims,
        boost: None,
    }),
    unmovable_may_claim: false,
    claim_test: ClaimTest::HalfFree,
    move_to_tail: false,
    reserve: Reserve::Blocks { capped: false },
    reserve_costly_only: false,
    nofragment: false,
    defrag_mode: false,
    reclaimable_is_type_1: true,
});

pub(super) const PLACEMENT_2_6_31: Placement = Placement::Pageblocks(PageblockRules {
    fallback: Fallback::ScanDown(ScanDown {
        merge: Merge::All,
        movable_ascends: false,
        remainder: Remainder::Victims,
        boost: None,
    }),
    unmovable_may_claim: false,
    claim_test: ClaimTest::HalfFree,
    move_to_tail: false,
    reserve: Reserve::Blocks { capped: true },
    reserve_costly_only: false,
    nofragment: false,
    defrag_mode: false,
    reclaimable_is_type_1: true,
});

pub(super) const PLACEMENT_5_6: Placement = Placement::Pageblocks(PageblockRules {
    fallback: Fallback::ScanDown(ScanDown {
        merge: Merge::Ordinary,
        movable_ascends: true,
        remainder: Remainder::Requests,
        boost: Some(Boost {
            recheck: BoostRecheck::AtomicBit,
            wakes: BoostWakes::AnyRequest,
        }),
    }),
    unmovable_may_claim: true,
    claim_test: ClaimTest::HalfFreeOrAlike,
    move_to_tail: true,
    reserve: Reserve::HighAtomic(HighAtomicLimit::PercentPlusBlock),
    reserve_costly_only: false,
    nofragment: true,
    defrag_mode: false,
    reclaimable_is_type_1: false,
});

pub(super) const PLACEMENT_6_12: Placement = Placement::Pageblocks(PageblockRules {
    fallback: Fallback::ClaimThenSteal {
        boost: Some(Boost {
            recheck: BoostRecheck::High,
            wakes: BoostWakes::IfItMay,
        }),
        steal: Steal::Largest,
    },
    unmovable_may_claim: true,
    claim_test: ClaimTest::HalfFreeOrAlike,
    move_to_tail: true,
    reserve: Reserve::HighAtomic(HighAtomicLimit::PercentRoundedUp),
    reserve_costly_only: false,
    nofragment: true,
    defrag_mode: false,
    reclaimable_is_type_1: false,
});

pub(super) const PLACEMENT_6_18: Placement = Placement::Pageblocks(PageblockRules {
    fallback: Fallback::ClaimThenSteal {
        boost: Some(Boost {
            recheck: BoostRecheck::High,
            wakes: BoostWakes::IfItMay,
        }),
        steal: Steal::Smallest,
    },
    unmovable_may_claim: true,
    claim_test: ClaimTest::HalfFreeOrAlike,
    move_to_tail: true,
    reserve: Reserve::HighAtomic(HighAtomicLimit::PercentRoundedUp),
    reserve_costly_only: false,
    nofragment: true,
    defrag_mode: true,
    reclaimable_is_type_1: false,
});

/// Where the host's source chooses frames: nothing is set aside for anybody, and no list mixes types.
pub(super) const PLACEMENT_SOURCED: Placement = Placement::Pageblocks(PageblockRules {
    fallback: Fallback::ClaimThenSteal {
        boost: None,
        steal: Steal::Smallest,
    },
    unmovable_may_claim: true,
    claim_test: ClaimTest::AlwaysIfFixed,
    move_to_tail: true,
    reserve: Reserve::None,
    reserve_costly_only: false,
    nofragment: false,
    defrag_mode: false,
    reclaimable_is_type_1: false,
});

pub(super) const MARKS_2_6_14: MarkRules = MarkRules {
    check: MarkCheck::PerOrder,
    gap: MarkGap::Quarter,
    pages: ZonePages::Present,
    min_free_kbytes_cap: 65_536,
    zero_ratio_is_none: false,
    movable_is_lowmem: true,
    khugepaged: false,
    late_free_count: false,
};

pub(super) const MARKS_2_6_24: MarkRules = MarkRules {
    check: MarkCheck::PerOrder,
    gap: MarkGap::Quarter,
    pages: ZonePages::Present,
    min_free_kbytes_cap: 65_536,
    zero_ratio_is_none: false,
    movable_is_lowmem: true,
    khugepaged: false,
    late_free_count: true,
};

pub(super) const MARKS_5_6: MarkRules = MarkRules {
    check: MarkCheck::BlockExists,
    gap: MarkGap::Scaled,
    pages: ZonePages::Managed,
    min_free_kbytes_cap: 262_144,
    zero_ratio_is_none: true,
    movable_is_lowmem: true,
    khugepaged: true,
    late_free_count: true,
};

pub(super) const MARKS_6_12: MarkRules = MarkRules {
    check: MarkCheck::BlockExists,
    gap: MarkGap::Scaled,
    pages: ZonePages::Managed,
    min_free_kbytes_cap: 262_144,
    zero_ratio_is_none: true,
    movable_is_lowmem: false,
    khugepaged: true,
    late_free_count: true,
};

pub(super) const RIGHTS_2_6_14: RightsRules = RightsRules {
    nomemalloc_forbids: false,
    leaves_cpuset: LeavesCpuset::AllThatCannotWait,
    realtime: RealtimeRight::NonBlock,
    realtime_in_interrupt: false,
};

pub(super) const RIGHTS_2_6_31: RightsRules = RightsRules {
    nomemalloc_forbids: false,
    leaves_cpuset: LeavesCpuset::AllThatCannotWait,
    realtime: RealtimeRight::NonBlock,
    realtime_in_interrupt: true,
};

pub(super) const RIGHTS_5_6: RightsRules = RightsRules {
    nomemalloc_forbids: true,
    leaves_cpuset: LeavesCpuset::HighThatCannotWait,
    realtime: RealtimeRight::MinReserve,
    realtime_in_interrupt: false,
};

pub(super) const RETRY_2_6_14: RetryRules = RetryRules {
    form: RetryForm::Pauses {
        repeats_from: None,
        oom: OomOrders::Any,
    },
    drain: RetryDrain::EachBlock,
    wake_on_restart: true,
};

pub(super) const RETRY_V19: RetryRules = RetryRules {
    form: RetryForm::Pauses {
        repeats_from: Some(5),
        oom: OomOrders::BelowHalf,
    },
    drain: RetryDrain::EachBlock,
    wake_on_restart: true,
};

pub(super) const RETRY_2_6_24: RetryRules = RetryRules {
    form: RetryForm::Pauses {
        repeats_from: None,
        oom: OomOrders::Cheap,
    },
    drain: RetryDrain::EachBlock,
    wake_on_restart: true,
};

pub(super) const RETRY_2_6_31: RetryRules = RetryRules {
    form: RetryForm::Pauses {
        repeats_from: None,
        oom: OomOrders::Cheap,
    },
    drain: RetryDrain::EachBlock,
    wake_on_restart: false,
};

pub(super) const RETRY_5_6: RetryRules = RetryRules {
    form: RetryForm::Bounded,
    drain: RetryDrain::OnceInVain,
    wake_on_restart: true,
};

pub(super) const KSWAPD_2_6_14: KswapdRules = KswapdRules {
    form: KswapdForm::PerZone { drops_order: false },
    sleep: KswapdSleep::Direct,
    nap: KswapdNap::Trouble,
    notices_order_at_once: false,
};

pub(super) const KSWAPD_2_6_28: KswapdRules = KswapdRules {
    form: KswapdForm::PerZone { drops_order: true },
    sleep: KswapdSleep::Direct,
    nap: KswapdNap::Trouble,
    notices_order_at_once: false,
};

pub(super) const KSWAPD_2_6_33: KswapdRules = KswapdRules {
    form: KswapdForm::PerZone { drops_order: true },
    sleep: KswapdSleep::Staged,
    nap: KswapdNap::NotBelowMin,
    notices_order_at_once: false,
};

pub(super) const KSWAPD_5_6: KswapdRules = KswapdRules {
    form: KswapdForm::PerNode,
    sleep: KswapdSleep::Staged,
    nap: KswapdNap::No,
    notices_order_at_once: false,
};

/// As they tune themselves in 6.12.
pub(super) const PCP_6_12: Pcp = Pcp::Orders {
    tuned: Some(Tuned { late_burst: false }),
};

/// As they tune themselves in 6.18.
pub(super) const PCP_6_18: Pcp = Pcp::Orders {
    tuned: Some(Tuned { late_burst: true }),
};
