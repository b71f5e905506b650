//! Rules of kswapd. `spec: 4.2, 4.6, 4.8`

/// When kswapd stops, sleeps and naps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KswapdRules {
    /// What it works for.
    pub form: KswapdForm,
    /// How it goes to sleep.
    pub sleep: KswapdSleep,
    /// Its naps.
    pub nap: KswapdNap,
    /// It starts over at once when a higher order is asked for (dropped after V2 of S4).
    pub notices_order_at_once: bool,
}

/// When a zone, or a node, has enough memory for kswapd to stop, and to be left asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KswapdForm {
    /// It balances zones: all of them meet the high mark at the order asked for. It is woken when one
    /// is below the low mark.
    PerZone {
        /// An order that brings nothing is dropped to 0 (2.6.27 to 2.6.38); else it goes on, however
        /// long it takes.
        drops_order: bool,
    },
    /// It balances the node: one zone that meets the high mark is enough; boosts are worked off, and
    /// a run that brings nothing again and again is given up (modern). It is woken when no zone is
    /// above the high mark, or one is boosted.
    PerNode,
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
