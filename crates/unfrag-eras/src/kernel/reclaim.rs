//! Rules of reclaim. `spec: 4, 4.6`

use super::generations::GenerationRules;

/// How pages are aged, taken and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReclaimRules {
    /// Lists.
    pub lru: LruRules,
    /// New anonymous pages start active (to 5.8).
    pub new_anon_active: bool,
    /// A file page that was used once stays inactive another round, and is active after its second
    /// use, or at once if it is executable; else any mapped page in use becomes active at once.
    pub used_once_stays: bool,
    /// What reclaim waits for when it meets congestion.
    pub congestion: CongestionWait,
    /// What an order above 0 makes reclaim do.
    pub high_order: HighOrder,
    /// Direct reclaim that freed nothing counts as progress while a zone has not given up (2.6.28 to
    /// 4.7).
    pub hope_is_progress: bool,
    /// Direct reclaimers wait while more pages are isolated than inactive (2.6.32 and later).
    pub isolated_throttle: bool,
    /// Direct reclaimers wait for kswapd while less is free than half of the min marks (modern).
    pub reserves_throttle: bool,
    /// Direct reclaim writes file pages (to 3.1).
    pub direct_writes_files: bool,
    /// Direct reclaim of active and inactive lists for a costly order goes on, as long as it frees anything, until twice the
    /// block was freed (guests of 6.1, 6.12 and 6.18 freed 360 to 925 pages a request for a huge page in the mean, and up to
    /// 8,700). Of generations it takes one batch.
    pub direct_makes_room: bool,
}

/// The LRU lists of an era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LruRules {
    /// One active and one inactive list a zone; mapped pages are spared until reclaim is in distress
    /// (to 2.6.27).
    Joined,
    /// Anonymous and file pages apart, in each zone (2.6.28 to 4.7).
    PerZone(SplitLru),
    /// Anonymous and file pages apart, for a whole node (4.8 and later).
    PerNode(SplitLru),
}

/// The bare shape of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LruShape {
    /// [`LruRules::Joined`].
    Joined,
    /// [`LruRules::PerZone`].
    PerZone,
    /// [`LruRules::PerNode`].
    PerNode,
}

/// What holds where anonymous and file pages have lists of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitLru {
    /// How a scan is divided between them.
    pub balance: ScanBalance,
    /// Executable file pages in use stay active (2.6.31 and later).
    pub keeps_exec: bool,
    /// When the active list of page cache is shortened.
    pub active_files: ActiveFiles,
    /// Generations in place of active and inactive lists, where the administrator wants them (6.1 and later).
    pub generations: Option<GenerationRules>,
}

impl LruRules {
    /// The bare shape.
    #[inline]
    pub const fn shape(&self) -> LruShape {
        match self {
            LruRules::Joined => LruShape::Joined,
            LruRules::PerZone(_) => LruShape::PerZone,
            LruRules::PerNode(_) => LruShape::PerNode,
        }
    }

    /// The rules of lists apart, if they are.
    #[inline]
    pub const fn split(&self) -> Option<&SplitLru> {
        match self {
            LruRules::Joined => None,
            LruRules::PerZone(s) | LruRules::PerNode(s) => Some(s),
        }
    }

    /// The rules of lists apart, to be changed, if they are.
    pub const fn split_mut(&mut self) -> Option<&mut SplitLru> {
        match self {
            LruRules::Joined => None,
            LruRules::PerZone(s) | LruRules::PerNode(s) => Some(s),
        }
    }
}

/// How a scan is divided between anonymous pages and page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanBalance {
    /// By the share of pages found in use, without bound (to 5.7).
    Rotated,
    /// By what each kind cost, where neither counts for more than twice the other (5.8).
    Cost,
}

/// When the active list of page cache is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveFiles {
    /// In every scan (to 2.6.30, by the change log of 2.6.31).
    EachScan,
    /// When it is the longer one (2.6.31 to 4.7).
    WhenLonger,
    /// When it is longer by the ratio that anonymous pages have, too.
    ByRatio,
}

/// What reclaim waits for when it meets congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionWait {
    /// The queue of synchronous requests (2.6.30, and 2.6.31 with 8aa7e847 reverted).
    Sync,
    /// The queue of asynchronous requests (8aa7e847, 2.6.31; to 2.6.29 that of writes, which is the
    /// same except for synchronous writes).
    Async,
    /// Asynchronous; with the time that is left, synchronous. In the allocator's retry and in direct
    /// reclaim (patch 3 of S4).
    Both,
    /// As [`Both`](CongestionWait::Both), for kswapd too (the variant that S4 mentions).
    BothEverywhere,
    /// No queue: throttling by reason (5.16 and later).
    Throttle,
}

/// What an order above 0 makes reclaim do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HighOrder {
    /// Nothing (to 2.6.22).
    Nothing,
    /// Neighbours in the aligned block are taken too (2.6.23 to 3.4).
    Lumpy {
        /// Direct reclaim for orders 1 to 3 waits for the blocks that it started to write, as it does
        /// for higher ones (2.6.31 and later, by that kernel's change log).
        cheap_orders_wait: bool,
    },
    /// Left to compaction.
    Compaction,
}
