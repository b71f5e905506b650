//! Rules of compaction. `spec: 5`

/// What a kernel's compaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactRules {
    /// What chooses the pages that move, and where to.
    pub chooser: Chooser,
    /// Which requests may compact at all.
    pub requests: CompactRequests,
    /// How much must be free for a zone to be worth it.
    pub room: CompactRoom,
    /// Asynchronous and synchronous modes, priorities, and retries by result (3.4 and later).
    pub modes: bool,
    /// A zone that failed is put off only from the order on that failed (3.4 and later).
    pub order_failed: bool,
    /// Pageblocks that brought nothing are marked and skipped, and scans go on where the last one ended
    /// (3.7 and later).
    pub skips: bool,
    /// A pageblock is marked as soon as pages of it are isolated (measured on 6.12); else when it was scanned to its end.
    pub marks_at_once: bool,
    /// The next run leaves out the pageblock behind the last one that was finished (measured on 6.1 and 6.12).
    pub passes_over_next: bool,
    /// How many pages in use a large block may have to be moved: which compound pages are sources.
    pub compound: CompoundSources,
    /// Free blocks are kept whole, so that a compound page moves to a block of its own order (6.10 and later);
    /// else they are cut to single pages.
    pub targets_by_order: bool,
    /// A target block is free as a whole from the wanted order on (6.18); else from the order of a pageblock on.
    pub spares_wanted_order: bool,
    /// Sources and targets are also searched on the free lists, and free scans stride over what seems full (5.1 and
    /// later).
    pub fast_search: bool,
    /// A pageblock that the search for sources found is scanned to its end after the first 32 pages, as others are (measured
    /// on 6.12); else after the first 64 (6.1).
    pub finishes_found_block: bool,
    /// A block that comes together goes straight to the request that compacts.
    pub capture: Capture,
    /// A block that comes together when a run leaves a pageblock ends the run only after the next pages have moved
    /// (measured on 6.12); else at once.
    pub notices_capture_late: bool,
    /// A request that was put off counts as a compaction that failed (measured on 6.1 and 6.12); else it does not count.
    pub counts_deferred: bool,
    /// An asynchronous run that cannot empty an aligned block of the wanted order leaves all of it; else it
    /// finishes the pageblock first (6.18).
    pub async_leaves_block: bool,
    /// When a costly request that gives up early fails after its first run, which is asynchronous.
    pub gives_up: GivesUp,
    /// The daemon of each node (4.6 and later).
    pub kcompactd: bool,
    /// Compaction ahead of demand (5.9 and later).
    pub proactive: Option<ProactiveRules>,
}

/// What chooses the pages that move, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// Two scanners that move towards each other.
    Scanners,
    /// The host's [`Source`](crate::source::Source), for all orders; it also chooses which free block serves a request.
    Source,
}

/// Which requests may compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactRequests {
    /// Those of orders above [`COSTLY`](crate::Order::COSTLY) that may start I/O and call into file systems (2.6.36).
    CostlyWithIo,
    /// All of orders above 0 that may reclaim.
    All,
}

/// How much must be free, beyond twice the wanted block, for a zone to be compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactRoom {
    /// The low mark (2.6.36).
    Low,
    /// The low mark for costly orders, the min mark for others.
    LowIfCostly,
    /// The mark of the caller; for costly orders the gap between low and min more (6.18).
    Callers,
}

/// Which compound pages may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompoundSources {
    /// None.
    No,
    /// Those below the wanted order and the order of a pageblock (6.18).
    BelowWanted,
}

/// Which blocks go straight to the request that compacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// None (to 5.0).
    No,
    /// Those of exactly its order; from a movable pageblock only whole ones.
    NotFromMovable,
    /// Those of exactly its order; from a movable pageblock only whole ones, or for movable requests (6.18).
    MovableForMovable,
}

/// When a costly request that gives up early fails after its first run. Else it reclaims and compacts once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivesUp {
    /// If the run was skipped or put off (to 6.19).
    PutOff,
    /// So, and always if it wants one node (back-ported to 6.1).
    PutOffOrOneNode,
    /// If it wants one node, and only then (7.0 and later).
    OneNode,
}

/// Compaction ahead of demand. `spec: 5.5`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProactiveRules {
    /// The low mark of the score is at least 5, and the high one 10 above it (to 6.12); else the gap shrinks with the
    /// low mark (6.18).
    pub floor: bool,
    /// A zone's run ends by the score weighted by its size, as in the first version of the patch.
    pub weighted_stop: bool,
    /// What it scans counts as the daemon's, as what it scans for requests does (measured on 6.12; not so on 6.1).
    pub counts_as_daemon: bool,
}
