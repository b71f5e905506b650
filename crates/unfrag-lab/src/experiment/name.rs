//! The published experiments. S0 to S4 are the sources that they come from.

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// S0: blocks of order 10 while seven kernels are built, and afterwards.
    HighOrder,
    /// S0: eight small programs.
    Aim9,
    /// S2: two builds on tmpfs, with slabs of several orders.
    SlabOrder,
    /// S4: reclaim behind an encrypted disk, with order-2 requests from interrupts.
    Atomic,
    /// S1: as many huge pages as possible out of fragmented memory.
    HugepageLatency,
    /// S1: a heap is touched in fragmented memory.
    JavaHeap,
    /// S1: compaction ahead of demand where nothing can be moved.
    Backoff,
    /// S1: all of memory compacted in one go.
    OneTime,
    /// `defrag_mode`, March 2025: builds in little memory, with bursts of huge-page requests.
    ThpBurst,
}

/// Which of the experiments on page frames alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    HugepageLatency,
    JavaHeap,
    Backoff,
    OneTime,
}

impl Name {
    /// All of them.
    pub const ALL: [Name; 9] = [
        Name::HighOrder,
        Name::Aim9,
        Name::SlabOrder,
        Name::Atomic,
        Name::HugepageLatency,
        Name::JavaHeap,
        Name::Backoff,
        Name::OneTime,
        Name::ThpBurst,
    ];

    /// Which of the experiments on page frames alone it is, if it is one.
    pub(super) const fn bare(self) -> Option<Which> {
        match self {
            Name::HugepageLatency => Some(Which::HugepageLatency),
            Name::JavaHeap => Some(Which::JavaHeap),
            Name::Backoff => Some(Which::Backoff),
            Name::OneTime => Some(Which::OneTime),
            Name::HighOrder | Name::Aim9 | Name::SlabOrder | Name::Atomic | Name::ThpBurst => None,
        }
    }

    /// Runs of each kernel if nobody says how many. Those on page frames alone differ by a few parts in a thousand
    /// between seeds, if at all.
    pub const fn default_runs(self) -> u32 {
        if self.bare().is_some() { 1 } else { 20 }
    }

    /// The name that users know.
    pub const fn as_str(self) -> &'static str {
        match self {
            Name::HighOrder => "highorder",
            Name::Aim9 => "aim9",
            Name::SlabOrder => "slab-order",
            Name::Atomic => "atomic",
            Name::HugepageLatency => "hugepage-latency",
            Name::JavaHeap => "java-heap",
            Name::Backoff => "backoff",
            Name::OneTime => "one-time",
            Name::ThpBurst => "thp-burst",
        }
    }
}
