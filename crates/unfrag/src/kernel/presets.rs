//! The eras as values.
//!
//! Each room of the rules is a constant that spells out all its fields, named after the first of our
//! kernels that has it; an era names its rooms, and is never a difference from another one.

use super::*;

/// A named era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preset {
    /// Name, such as `6.1`.
    pub name: &'static str,
    /// Its rules.
    pub rules: Rules,
}

const PLACEMENT_2_6_24: Placement = Placement::Pageblocks(PageblockRules {
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
    nofragment: false,
    defrag_mode: false,
    reclaimable_is_type_1: true,
});

const PLACEMENT_2_6_31: Placement = Placement::Pageblocks(PageblockRules {
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
    nofragment: false,
    defrag_mode: false,
    reclaimable_is_type_1: true,
});

const PLACEMENT_5_6: Placement = Placement::Pageblocks(PageblockRules {
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
    nofragment: true,
    defrag_mode: false,
    reclaimable_is_type_1: false,
});

const PLACEMENT_6_18: Placement = Placement::Pageblocks(PageblockRules {
    fallback: Fallback::ClaimThenSteal {
        boost: Some(Boost {
            recheck: BoostRecheck::High,
            wakes: BoostWakes::IfItMay,
        }),
    },
    unmovable_may_claim: true,
    claim_test: ClaimTest::HalfFreeOrAlike,
    move_to_tail: true,
    reserve: Reserve::HighAtomic(HighAtomicLimit::PercentRoundedUp),
    nofragment: true,
    defrag_mode: true,
    reclaimable_is_type_1: false,
});

const MARKS_2_6_14: MarkRules = MarkRules {
    check: MarkCheck::PerOrder,
    gap: MarkGap::Quarter,
    pages: ZonePages::Present,
    min_free_kbytes_cap: 65_536,
    zero_ratio_is_none: false,
    movable_is_lowmem: true,
    khugepaged: false,
    late_free_count: false,
};

const MARKS_2_6_24: MarkRules = MarkRules {
    check: MarkCheck::PerOrder,
    gap: MarkGap::Quarter,
    pages: ZonePages::Present,
    min_free_kbytes_cap: 65_536,
    zero_ratio_is_none: false,
    movable_is_lowmem: true,
    khugepaged: false,
    late_free_count: true,
};

const MARKS_5_6: MarkRules = MarkRules {
    check: MarkCheck::BlockExists,
    gap: MarkGap::Scaled,
    pages: ZonePages::Managed,
    min_free_kbytes_cap: 262_144,
    zero_ratio_is_none: true,
    movable_is_lowmem: true,
    khugepaged: true,
    late_free_count: true,
};

const MARKS_6_18: MarkRules = MarkRules {
    check: MarkCheck::BlockExists,
    gap: MarkGap::Scaled,
    pages: ZonePages::Managed,
    min_free_kbytes_cap: 262_144,
    zero_ratio_is_none: true,
    movable_is_lowmem: false,
    khugepaged: true,
    late_free_count: true,
};

const RIGHTS_2_6_14: RightsRules = RightsRules {
    nomemalloc_forbids: false,
    leaves_cpuset: LeavesCpuset::AllThatCannotWait,
    realtime: RealtimeRight::NonBlock,
    realtime_in_interrupt: false,
};

const RIGHTS_2_6_31: RightsRules = RightsRules {
    nomemalloc_forbids: false,
    leaves_cpuset: LeavesCpuset::AllThatCannotWait,
    realtime: RealtimeRight::NonBlock,
    realtime_in_interrupt: true,
};

const RIGHTS_5_6: RightsRules = RightsRules {
    nomemalloc_forbids: true,
    leaves_cpuset: LeavesCpuset::HighThatCannotWait,
    realtime: RealtimeRight::MinReserve,
    realtime_in_interrupt: false,
};

const RETRY_2_6_14: RetryRules = RetryRules {
    form: RetryForm::Pauses {
        repeats_from: None,
        oom: OomOrders::Any,
    },
    drain: RetryDrain::EachBlock,
    wake_on_restart: true,
};

const RETRY_V19: RetryRules = RetryRules {
    form: RetryForm::Pauses {
        repeats_from: Some(5),
        oom: OomOrders::BelowHalf,
    },
    drain: RetryDrain::EachBlock,
    wake_on_restart: true,
};

const RETRY_2_6_24: RetryRules = RetryRules {
    form: RetryForm::Pauses {
        repeats_from: None,
        oom: OomOrders::Cheap,
    },
    drain: RetryDrain::EachBlock,
    wake_on_restart: true,
};

const RETRY_2_6_31: RetryRules = RetryRules {
    form: RetryForm::Pauses {
        repeats_from: None,
        oom: OomOrders::Cheap,
    },
    drain: RetryDrain::EachBlock,
    wake_on_restart: false,
};

const RETRY_5_6: RetryRules = RetryRules {
    form: RetryForm::Bounded,
    drain: RetryDrain::OnceInVain,
    wake_on_restart: true,
};

const KSWAPD_2_6_14: KswapdRules = KswapdRules {
    form: KswapdForm::PerZone { drops_order: false },
    sleep: KswapdSleep::Direct,
    nap: KswapdNap::Trouble,
    notices_order_at_once: false,
};

const KSWAPD_2_6_28: KswapdRules = KswapdRules {
    form: KswapdForm::PerZone { drops_order: true },
    sleep: KswapdSleep::Direct,
    nap: KswapdNap::Trouble,
    notices_order_at_once: false,
};

const KSWAPD_2_6_33: KswapdRules = KswapdRules {
    form: KswapdForm::PerZone { drops_order: true },
    sleep: KswapdSleep::Staged,
    nap: KswapdNap::NotBelowMin,
    notices_order_at_once: false,
};

const KSWAPD_5_6: KswapdRules = KswapdRules {
    form: KswapdForm::PerNode,
    sleep: KswapdSleep::Staged,
    nap: KswapdNap::No,
    notices_order_at_once: false,
};

const RECLAIM_2_6_14: ReclaimRules = ReclaimRules {
    lru: LruRules::Joined,
    new_anon_active: true,
    used_once_stays: false,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Nothing,
    hope_is_progress: false,
    isolated_throttle: false,
    reserves_throttle: false,
    direct_writes_files: true,
};

const RECLAIM_2_6_24: ReclaimRules = ReclaimRules {
    lru: LruRules::Joined,
    new_anon_active: true,
    used_once_stays: false,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Lumpy {
        cheap_orders_wait: false,
    },
    hope_is_progress: false,
    isolated_throttle: false,
    reserves_throttle: false,
    direct_writes_files: true,
};

const RECLAIM_2_6_28: ReclaimRules = ReclaimRules {
    lru: LruRules::PerZone(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: false,
        active_files: ActiveFiles::EachScan,
    }),
    new_anon_active: true,
    used_once_stays: false,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Lumpy {
        cheap_orders_wait: false,
    },
    hope_is_progress: true,
    isolated_throttle: false,
    reserves_throttle: false,
    direct_writes_files: true,
};

const RECLAIM_2_6_30: ReclaimRules = ReclaimRules {
    lru: LruRules::PerZone(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: false,
        active_files: ActiveFiles::EachScan,
    }),
    new_anon_active: true,
    used_once_stays: false,
    congestion: CongestionWait::Sync,
    high_order: HighOrder::Lumpy {
        cheap_orders_wait: false,
    },
    hope_is_progress: true,
    isolated_throttle: false,
    reserves_throttle: false,
    direct_writes_files: true,
};

const RECLAIM_2_6_31: ReclaimRules = ReclaimRules {
    lru: LruRules::PerZone(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: true,
        active_files: ActiveFiles::WhenLonger,
    }),
    new_anon_active: true,
    used_once_stays: false,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Lumpy {
        cheap_orders_wait: true,
    },
    hope_is_progress: true,
    isolated_throttle: false,
    reserves_throttle: false,
    direct_writes_files: true,
};

const RECLAIM_2_6_32: ReclaimRules = ReclaimRules {
    lru: LruRules::PerZone(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: true,
        active_files: ActiveFiles::WhenLonger,
    }),
    new_anon_active: true,
    used_once_stays: false,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Lumpy {
        cheap_orders_wait: true,
    },
    hope_is_progress: true,
    isolated_throttle: true,
    reserves_throttle: false,
    direct_writes_files: true,
};

const RECLAIM_5_6: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
};

const RECLAIM_5_9: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Cost,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
};

const RECLAIM_6_1: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Cost,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Throttle,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
};

/// All eras, oldest first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "2.6.14",
        rules: Rules {
            placement: Placement::Ungrouped,
            block_order: 10,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_14,
            pcp: Pcp::HotCold { searched: false },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_14,
            kswapd: KSWAPD_2_6_14,
            reclaim: RECLAIM_2_6_14,
        },
    },
    Preset {
        name: "v19",
        rules: Rules {
            placement: Placement::V19,
            block_order: 10,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_14,
            pcp: Pcp::Kinds,
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_V19,
            kswapd: KSWAPD_2_6_14,
            reclaim: RECLAIM_2_6_14,
        },
    },
    Preset {
        name: "2.6.24",
        rules: Rules {
            placement: PLACEMENT_2_6_24,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::HotCold { searched: true },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_14,
            reclaim: RECLAIM_2_6_24,
        },
    },
    Preset {
        name: "2.6.28",
        rules: Rules {
            placement: PLACEMENT_2_6_24,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::Searched,
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_28,
        },
    },
    Preset {
        name: "2.6.30",
        rules: Rules {
            placement: PLACEMENT_2_6_24,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::Searched,
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_30,
        },
    },
    Preset {
        name: "2.6.31",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::Searched,
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_31,
            retry: RETRY_2_6_31,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_31,
        },
    },
    Preset {
        name: "2.6.32-rc6",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: false,
            },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_31,
            retry: RETRY_2_6_31,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_32,
        },
    },
    Preset {
        name: "2.6.32",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: false,
            },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_32,
        },
    },
    Preset {
        name: "2.6.33",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: true,
            },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_33,
            reclaim: RECLAIM_2_6_32,
        },
    },
    Preset {
        name: "2.6.36",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: true,
            },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_33,
            reclaim: RECLAIM_2_6_32,
        },
    },
    Preset {
        name: "5.6",
        rules: Rules {
            placement: PLACEMENT_5_6,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_5_6,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: true,
            },
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_5_6,
        },
    },
    Preset {
        name: "5.9",
        rules: Rules {
            placement: PLACEMENT_5_6,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_5_6,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: true,
            },
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_5_9,
        },
    },
    Preset {
        name: "6.1",
        rules: Rules {
            placement: PLACEMENT_5_6,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_5_6,
            pcp: Pcp::Orders { tuned: false },
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_6_1,
        },
    },
    Preset {
        name: "6.18",
        rules: Rules {
            placement: PLACEMENT_6_18,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_6_18,
            pcp: Pcp::Orders { tuned: true },
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_6_1,
        },
    },
];

/// The era called `name`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name.eq_ignore_ascii_case(name))
}
