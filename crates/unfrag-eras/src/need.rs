//! Needs of operations, and the answers to them.

use crate::evict::Verdicts;
use crate::frame::Pfn;
use crate::migrate::MoveVerdicts;

/// Class of requests at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Requests that are waited for: reads, and synchronous writes.
    Sync,
    /// Writes in the background.
    Async,
}

/// Reason of a wait (`enum vmscan_throttle_state`). Kernels tell the reasons apart since 5.16;
/// [`Reserves`](Throttle::Reserves) is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// Until [`WRITTEN_ENOUGH`] more pages are written.
    Writeback,
    /// Until fewer pages are isolated.
    Isolated,
    /// Until some reclaim makes progress.
    NoProgress,
    /// Until a device is less busy.
    Congested,
    /// Until kswapd has freed pages: the rest is kept for those that reclaim. A world ends it when kswapd
    /// has a [`Need::Turn`] in which it freed some, and when it has [`Need::Sleep`]; a wait in which it
    /// freed none is not repeated.
    Reserves,
}

/// Pages whose writing ends a wait for [`Throttle::Writeback`]: what reclaim takes at a time.
/// How long such a wait lasts at most is the kernel's; what ends it is assumed. `spec: 4.9`
pub const WRITTEN_ENOUGH: u32 = 32;

/// What an operation needs before it can go on. It is met without a lock of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// Nothing: others may run now (`cond_resched`). `scanned` pages were scanned and `freed` pages freed since
    /// the last turn; a world may charge time for them.
    Turn {
        /// Pages looked at.
        scanned: u32,
        /// Pages given back.
        freed: u32,
    },
    /// Ask the owners of the pages of the operation's [`eviction`](crate::drive::Operation::eviction) to
    /// let go of them. Answer: [`Answer::Evicted`].
    Evict,
    /// Ask the owners of the pages of the operation's [`migration`](crate::drive::Operation::migration) to
    /// move them. Answer: [`Answer::Migrated`].
    Migrate,
    /// Sleep until a device leaves congestion in this class, at most for this long. Answer:
    /// [`Answer::Left`].
    CongestionWait {
        /// Class of requests.
        class: Class,
        /// Most milliseconds.
        ms: u32,
    },
    /// Sleep until the awaited event happens, at most for this long.
    Throttle {
        /// Why.
        why: Throttle,
        /// Most milliseconds; 0 is one tick.
        ms: u32,
    },
    /// Sleep until the writeback of this page ends.
    PageWriteback(Pfn),
    /// Shrink the caches in proportion to `scanned` of `lru_pages` pages. Answer:
    /// [`Answer::Freed`] with the number of objects, before any other step.
    Shrink {
        /// Pages looked at.
        scanned: u64,
        /// Pages that could have been.
        lru_pages: u64,
    },
    /// Wake the flusher threads to write this many dirty pages.
    WakeFlushers(u64),
    /// Kill a process (OOM killer). Answer: [`Answer::Killed`].
    Oom,
    /// kswapd and kcompactd only: sleep until woken, at most for so many milliseconds if some are given. Answer:
    /// [`Answer::Left`], 0 if it was not woken.
    Sleep(Option<u32>),
}

/// What became of a [`Need`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// It was met; also the first step of every operation.
    Go,
    /// The wait ended with so many milliseconds left.
    Left(u32),
    /// So many objects of the caches were freed.
    Freed(u64),
    /// Whether a process will end.
    Killed(bool),
    /// What became of each page of an eviction.
    Evicted(Verdicts),
    /// What became of each page of a migration.
    Migrated(MoveVerdicts),
}

/// Result of one step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// Finished.
    Done(T),
    /// To be stepped again with an answer.
    Need(Need),
}
