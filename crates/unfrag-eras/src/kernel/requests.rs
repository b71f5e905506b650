//! Rules of the slow path: what a request may use, and how long it goes on.
//! `spec: 1.4, 4.3, 4.6, 4.8`

/// The rights of a request that free memory above the low mark does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RightsRules {
    /// `__GFP_NOMEMALLOC` keeps a request that cannot wait from the reserves (modern).
    pub nomemalloc_forbids: bool,
    /// Which requests that cannot wait may leave their cpuset.
    pub leaves_cpuset: LeavesCpuset,
    /// What a real-time task may use.
    pub realtime: RealtimeRight,
    /// A real-time task lends its rights to the interrupts that interrupt it (2.6.31; mended by
    /// patch 2 of S4).
    pub realtime_in_interrupt: bool,
}

/// Which requests that cannot wait may leave their cpuset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeavesCpuset {
    /// All.
    AllThatCannotWait,
    /// Those with `__GFP_HIGH`.
    HighThatCannotWait,
}

/// What a real-time task may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealtimeRight {
    /// What a request may that cannot wait.
    NonBlock,
    /// What a request with `__GFP_HIGH` may.
    MinReserve,
}

/// What an allocation does after a reclaim that did not bring its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryRules {
    /// How long it goes on.
    pub form: RetryForm,
    /// When the per-CPU lists are emptied for it.
    pub drain: RetryDrain,
    /// An allocation that starts over wakes kswapd again (not in 2.6.31; patch 1 of S4).
    pub wake_on_restart: bool,
}

/// How long an allocation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryForm {
    /// With a pause each time, for as long as order and flags say; without progress, the OOM killer
    /// is asked (to 4.6).
    Pauses {
        /// From this order on, reclaim is first repeated up to three times, come what may (V19).
        repeats_from: Option<u8>,
        /// Which orders may call the OOM killer.
        oom: OomOrders,
    },
    /// At once, up to 16 times without progress, while reclaim could bring enough; then what is
    /// reserved, and the OOM killer (4.7 and later).
    Bounded,
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

/// When the per-CPU lists are emptied for an allocation that reclaims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDrain {
    /// After each reclaim for an order above 0.
    EachBlock,
    /// Once, when reclaim made progress but brought no block; a block of the high-order atomic reserve is given
    /// back with it.
    OnceInVain,
}
