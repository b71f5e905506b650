//! The eras as values.

use super::*;

/// A named era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name, such as `6.1`.
    pub name: &'static str,
    /// Its rules.
    pub switches: Switches,
}

const K6_1: Switches = Switches {
    grouping: Grouping::Pageblocks,
    block_order: 9,
    tail_if_merge_likely: true,
    merge: Merge::Ordinary,
    scan: FallbackScan::MovableAscends,
    unmovable_may_claim: true,
    claim_test: ClaimTest::HalfFreeOrAlike,
    move_before_test: true,
    move_to_tail: true,
    remainder_to_victim: false,
    mark_check: MarkCheck::BlockExists,
    mark_gap: MarkGap::Scaled,
    movable_is_lowmem: true,
    khugepaged: true,
    boost: Boost::EachFallback,
    reserve: Reserve::HighAtomic(HighAtomicLimit::PercentPlusBlock),
    pcp: Pcp::Orders {
        tuned: false,
        type_at_drain: false,
    },
    late_free_count: true,
    reclaimable_is_type_1: false,
    nofragment: true,
    defrag_mode: false,
    atomic_bit: true,
    reclaim: ReclaimRules::K6,
};

const K6_18: Switches = Switches {
    merge: Merge::OrdinaryRetype,
    scan: FallbackScan::ClaimThenSteal,
    move_before_test: false,
    remainder_to_victim: true,
    movable_is_lowmem: false,
    boost: Boost::ClaimTries,
    reserve: Reserve::HighAtomic(HighAtomicLimit::PercentRoundedUp),
    pcp: Pcp::Orders {
        tuned: true,
        type_at_drain: true,
    },
    defrag_mode: true,
    atomic_bit: false,
    ..K6_1
};

/// 5.6 and 5.9: the lists of 6.1 with per-CPU lists of order 0 alone, drained type by type in turns.
const K5: Switches = Switches {
    pcp: Pcp::PerType {
        drain: Drain::BatchFree,
        keep_type: true,
    },
    tail_if_merge_likely: true,
    reclaim: ReclaimRules::K5_9,
    ..K6_1
};

const K2_6_32: Switches = Switches {
    grouping: Grouping::Pageblocks,
    block_order: 9,
    tail_if_merge_likely: false,
    merge: Merge::Free,
    scan: FallbackScan::Descending,
    unmovable_may_claim: false,
    claim_test: ClaimTest::HalfFree,
    move_before_test: true,
    move_to_tail: false,
    remainder_to_victim: true,
    mark_check: MarkCheck::PerOrder,
    mark_gap: MarkGap::Quarter,
    movable_is_lowmem: true,
    khugepaged: false,
    boost: Boost::No,
    reserve: Reserve::Blocks { capped: true },
    pcp: Pcp::PerType {
        drain: Drain::BatchFree,
        keep_type: false,
    },
    late_free_count: true,
    reclaimable_is_type_1: true,
    nofragment: false,
    defrag_mode: false,
    atomic_bit: false,
    reclaim: ReclaimRules::K2_6_32,
};

const K2_6_24: Switches = Switches {
    reserve: Reserve::Blocks { capped: false },
    pcp: Pcp::HotCold { searched: true },
    reclaim: ReclaimRules::K2_6_24,
    ..K2_6_32
};

const K2_6_28: Switches = Switches {
    reserve: Reserve::Blocks { capped: false },
    pcp: Pcp::Searched,
    reclaim: ReclaimRules::K2_6_28,
    ..K2_6_32
};

const K2_6_30: Switches = Switches {
    reclaim: ReclaimRules::K2_6_30,
    ..K2_6_28
};

const K2_6_31: Switches = Switches {
    pcp: Pcp::Searched,
    reclaim: ReclaimRules::K2_6_31,
    ..K2_6_32
};

const K2_6_32_RC6: Switches = Switches {
    reclaim: ReclaimRules::K2_6_32_RC6,
    ..K2_6_32
};

const K2_6_36: Switches = Switches {
    pcp: Pcp::PerType {
        drain: Drain::BatchFree,
        keep_type: true,
    },
    reclaim: ReclaimRules::K2_6_33,
    ..K2_6_32
};

const K2_6_14: Switches = Switches {
    grouping: Grouping::None,
    block_order: 10,
    reserve: Reserve::None,
    pcp: Pcp::HotCold { searched: false },
    late_free_count: false,
    reclaim: ReclaimRules::K2_6_14,
    ..K2_6_32
};

const V19: Switches = Switches {
    grouping: Grouping::V19,
    reserve: Reserve::Fallback,
    pcp: Pcp::Kinds,
    reclaim: ReclaimRules::V19,
    ..K2_6_14
};

/// All eras, oldest first. Those that differ in reclaim or compaction alone share their rules here.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "2.6.14",
        switches: K2_6_14,
    },
    Preset {
        name: "v19",
        switches: V19,
    },
    Preset {
        name: "2.6.24",
        switches: K2_6_24,
    },
    Preset {
        name: "2.6.28",
        switches: K2_6_28,
    },
    Preset {
        name: "2.6.30",
        switches: K2_6_30,
    },
    Preset {
        name: "2.6.31",
        switches: K2_6_31,
    },
    Preset {
        name: "2.6.32-rc6",
        switches: K2_6_32_RC6,
    },
    Preset {
        name: "2.6.32",
        switches: K2_6_32,
    },
    Preset {
        name: "2.6.33",
        switches: K2_6_36,
    },
    Preset {
        name: "2.6.36",
        switches: K2_6_36,
    },
    Preset {
        name: "5.6",
        switches: Switches {
            reclaim: ReclaimRules::K5_6,
            ..K5
        },
    },
    Preset {
        name: "5.9",
        switches: K5,
    },
    Preset {
        name: "6.1",
        switches: K6_1,
    },
    Preset {
        name: "6.18",
        switches: K6_18,
    },
];

/// The era called `name`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name.eq_ignore_ascii_case(name))
}
