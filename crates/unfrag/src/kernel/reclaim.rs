//! Rules of reclaim that changed between kernels, each a switch of its own.
//! `spec: linux-mm 4; the five patches of source S4: 4.6`

/// How pages wait for reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LruShape {
    /// One active and one inactive list a zone; mapped pages are spared until reclaim is in distress
    /// (to 2.6.27).
    Joined,
    /// Anonymous and file pages apart, in each zone (2.6.28 to 4.7).
    PerZone,
    /// The same for a whole node; new anonymous pages start inactive (4.8; 5.9).
    PerNode,
}

/// How a scan is divided between anonymous pages and page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanBalance {
    /// By the share of pages found in use, without bound (to 5.7).
    Rotated,
    /// By what each kind cost, where neither counts for more than twice the other (5.8).
    Cost,
}

/// What reclaim waits for when it meets congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionWait {
    /// The queue of synchronous requests (2.6.30, and 2.6.31 with 8aa7e847 reverted).
    Sync,
    /// The queue of asynchronous requests (8aa7e847, 2.6.31; to 2.6.29 that of writes, which is the
    /// same but for writes that somebody waits for).
    Async,
    /// Asynchronous; with the time that is left, synchronous. In the allocator's retry and in direct
    /// reclaim (patch 3 of S4).
    Both,
    /// The same for kswapd too (the variant that S4 mentions).
    BothEverywhere,
    /// No queue: throttling by reason (5.16 and later).
    Throttle,
}

/// How kswapd ends a run and goes to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KswapdSleep {
    /// At once, unless a higher order was asked for meanwhile (to 2.6.32).
    Direct,
    /// First for HZ/10, and again only if the high marks still hold then (patch 4 of S4, 2.6.33).
    Staged,
}

/// When kswapd naps between two priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KswapdNap {
    /// Below priority 10.
    Trouble,
    /// Below `10 - min(10, order)`: higher orders count as trouble later (patch 5 of S4).
    TroubleLater,
    /// Below priority 10, but not while a zone is below its min mark (2.6.33).
    NotBelowMin,
    /// Never (modern: throttled instead).
    No,
}

/// What an order above 0 makes reclaim do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HighOrder {
    /// Nothing (to 2.6.22).
    Nothing,
    /// From this order on, reclaim is repeated up to three times (V19).
    Repeats(u8),
    /// Neighbours in the aligned block are taken too (2.6.23 to 3.4).
    Lumpy,
    /// Left to compaction.
    Compaction,
}

/// Which orders may call the OOM killer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OomOrders {
    /// Any (2.6.14).
    Any,
    /// Those below half of the orders (V19).
    BelowHalf,
    /// Up to 3.
    Cheap,
}

/// When a zone, or a node, has enough memory for kswapd to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KswapdGoal {
    /// All zones meet the high mark at the order asked for, however long it takes (to 2.6.26).
    AllZones,
    /// The same, but an order that brings nothing is dropped to 0 (2.6.27 to 2.6.38).
    AllZonesDropOrder,
    /// One zone is enough (modern).
    AnyZone,
}

/// The rules of reclaim of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReclaimRules {
    /// Lists.
    pub lru: LruShape,
    /// Anonymous pages against page cache.
    pub balance: ScanBalance,
    /// Congestion.
    pub congestion: CongestionWait,
    /// kswapd's way to sleep.
    pub sleep: KswapdSleep,
    /// kswapd's naps.
    pub nap: KswapdNap,
    /// kswapd's goal.
    pub goal: KswapdGoal,
    /// Orders above 0.
    pub high_order: HighOrder,
    /// OOM killer.
    pub oom: OomOrders,
    /// An allocation that starts over after direct reclaim wakes kswapd again (2.6.30; patch 1 of S4).
    pub wake_on_restart: bool,
    /// A real-time task lends its rights to the interrupts that interrupt it (2.6.31; mended by
    /// patch 2 of S4).
    pub realtime_in_interrupt: bool,
    /// kswapd starts over at once when a higher order is asked for (dropped after V2 of S4).
    pub notices_order_at_once: bool,
    /// Direct reclaimers wait while more pages are isolated than inactive (2.6.32 and later).
    pub isolated_throttle: bool,
    /// Direct reclaimers wait for kswapd while less is free than half of the min marks (modern).
    pub reserves_throttle: bool,
    /// Executable file pages in use stay active (2.6.31 and later).
    pub keeps_exec: bool,
    /// The active list of page cache is shortened only when it is the longer one (2.6.31 and later, by
    /// that kernel's change log; before it, in every scan).
    pub spares_active_files: bool,
    /// Direct reclaim for orders 1 to 3 waits for the blocks that it started to write, as it does for
    /// higher ones (2.6.31 and later, by that kernel's change log).
    pub cheap_orders_wait: bool,
    /// Direct reclaim writes file pages (to 3.1).
    pub direct_writes_files: bool,
}

impl ReclaimRules {
    /// 2.6.30.
    pub const K2_6_30: ReclaimRules = ReclaimRules {
        lru: LruShape::PerZone,
        balance: ScanBalance::Rotated,
        congestion: CongestionWait::Sync,
        sleep: KswapdSleep::Direct,
        nap: KswapdNap::Trouble,
        goal: KswapdGoal::AllZonesDropOrder,
        high_order: HighOrder::Lumpy,
        oom: OomOrders::Cheap,
        wake_on_restart: true,
        realtime_in_interrupt: false,
        notices_order_at_once: false,
        isolated_throttle: false,
        reserves_throttle: false,
        keeps_exec: false,
        spares_active_files: false,
        cheap_orders_wait: false,
        direct_writes_files: true,
    };
    /// 2.6.31.
    pub const K2_6_31: ReclaimRules = ReclaimRules {
        congestion: CongestionWait::Async,
        wake_on_restart: false,
        realtime_in_interrupt: true,
        keeps_exec: true,
        spares_active_files: true,
        cheap_orders_wait: true,
        ..Self::K2_6_30
    };
    /// 2.6.32-rc6.
    pub const K2_6_32_RC6: ReclaimRules = ReclaimRules {
        isolated_throttle: true,
        ..Self::K2_6_31
    };
    /// 2.6.32, with patches 1 and 2 of S4.
    pub const K2_6_32: ReclaimRules = ReclaimRules {
        wake_on_restart: true,
        realtime_in_interrupt: false,
        ..Self::K2_6_32_RC6
    };
    /// 2.6.33 and 2.6.36.
    pub const K2_6_33: ReclaimRules = ReclaimRules {
        sleep: KswapdSleep::Staged,
        nap: KswapdNap::NotBelowMin,
        ..Self::K2_6_32
    };
    /// 2.6.28.
    pub const K2_6_28: ReclaimRules = ReclaimRules {
        congestion: CongestionWait::Async,
        ..Self::K2_6_30
    };
    /// 2.6.24.
    pub const K2_6_24: ReclaimRules = ReclaimRules {
        lru: LruShape::Joined,
        goal: KswapdGoal::AllZones,
        ..Self::K2_6_28
    };
    /// 2.6.14.
    pub const K2_6_14: ReclaimRules = ReclaimRules {
        high_order: HighOrder::Nothing,
        oom: OomOrders::Any,
        ..Self::K2_6_24
    };
    /// V19.
    pub const V19: ReclaimRules = ReclaimRules {
        high_order: HighOrder::Repeats(5),
        oom: OomOrders::BelowHalf,
        ..Self::K2_6_14
    };
    /// 5.6.
    pub const K5_6: ReclaimRules = ReclaimRules {
        lru: LruShape::PerNode,
        nap: KswapdNap::No,
        goal: KswapdGoal::AnyZone,
        high_order: HighOrder::Compaction,
        reserves_throttle: true,
        direct_writes_files: false,
        ..Self::K2_6_33
    };
    /// 5.9.
    pub const K5_9: ReclaimRules = ReclaimRules {
        balance: ScanBalance::Cost,
        ..Self::K5_6
    };
    /// 6.x.
    pub const K6: ReclaimRules = ReclaimRules {
        congestion: CongestionWait::Throttle,
        ..Self::K5_9
    };
}
