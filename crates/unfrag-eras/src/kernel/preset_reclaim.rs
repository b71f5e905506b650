//! The rules of reclaim in the eras of `presets`. Each constant spells out all its fields. It is named after the oldest
//! kernel here that has these rules.

use super::*;

pub(super) const RECLAIM_2_6_14: ReclaimRules = ReclaimRules {
    lru: LruRules::Joined,
    new_anon_active: true,
    used_once_stays: false,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Nothing,
    hope_is_progress: false,
    isolated_throttle: false,
    reserves_throttle: false,
    direct_writes_files: true,
    direct_makes_room: false,
};

pub(super) const RECLAIM_2_6_24: ReclaimRules = ReclaimRules {
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
    direct_makes_room: false,
};

pub(super) const RECLAIM_2_6_28: ReclaimRules = ReclaimRules {
    lru: LruRules::PerZone(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: false,
        active_files: ActiveFiles::EachScan,
        generations: None,
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
    direct_makes_room: false,
};

pub(super) const RECLAIM_2_6_30: ReclaimRules = ReclaimRules {
    lru: LruRules::PerZone(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: false,
        active_files: ActiveFiles::EachScan,
        generations: None,
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
    direct_makes_room: false,
};

pub(super) const RECLAIM_2_6_31: ReclaimRules = ReclaimRules {
    lru: LruRules::PerZone(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: true,
        active_files: ActiveFiles::WhenLonger,
        generations: None,
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
    direct_makes_room: false,
};

pub(super) const RECLAIM_2_6_32: ReclaimRules = ReclaimRules {
    lru: LruRules::PerZone(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: true,
        active_files: ActiveFiles::WhenLonger,
        generations: None,
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
    direct_makes_room: false,
};

pub(super) const RECLAIM_5_6: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Rotated,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
        generations: None,
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
    direct_makes_room: false,
};

pub(super) const RECLAIM_5_9: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Cost,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
        generations: None,
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Async,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
    direct_makes_room: false,
};

pub(super) const RECLAIM_6_1: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Cost,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
        generations: Some(GENERATIONS_6_1),
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Throttle,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
    direct_makes_room: true,
};

pub(super) const RECLAIM_6_12: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Cost,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
        generations: Some(GENERATIONS_6_12),
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Throttle,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
    direct_makes_room: true,
};

pub(super) const RECLAIM_6_18: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Cost,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
        generations: Some(GENERATIONS_6_18),
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Throttle,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
    direct_makes_room: true,
};

pub(super) const RECLAIM_7_2: ReclaimRules = ReclaimRules {
    lru: LruRules::PerNode(SplitLru {
        balance: ScanBalance::Cost,
        keeps_exec: true,
        active_files: ActiveFiles::ByRatio,
        generations: Some(GENERATIONS_7_2),
    }),
    new_anon_active: false,
    used_once_stays: true,
    congestion: CongestionWait::Throttle,
    high_order: HighOrder::Compaction,
    hope_is_progress: false,
    isolated_throttle: true,
    reserves_throttle: true,
    direct_writes_files: false,
    direct_makes_room: true,
};

const GENERATIONS_6_1: GenerationRules = GenerationRules {
    read_enters: 2,
    mapped_enters: 0,
    anon_enters: 0,
    starts_by_size: false,
    stops_at_marks: false,
    budget: ScanBudget::EachBatch,
    aging: Aging::TwoLeft,
};

const GENERATIONS_6_12: GenerationRules = GenerationRules {
    read_enters: 2,
    mapped_enters: 0,
    anon_enters: 0,
    starts_by_size: true,
    stops_at_marks: true,
    budget: ScanBudget::EachBatch,
    aging: Aging::TwoLeft,
};

const GENERATIONS_6_18: GenerationRules = GenerationRules {
    read_enters: 3,
    mapped_enters: 1,
    anon_enters: 1,
    starts_by_size: true,
    stops_at_marks: true,
    budget: ScanBudget::EachBatch,
    aging: Aging::FewerThanFour,
};

const GENERATIONS_7_2: GenerationRules = GenerationRules {
    read_enters: 3,
    mapped_enters: 2,
    anon_enters: 1,
    starts_by_size: true,
    stops_at_marks: true,
    budget: ScanBudget::Once,
    aging: Aging::FewerThanFour,
};
