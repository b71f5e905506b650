//! Reclaim: which pages in use are given back when memory runs short, by whom, and who waits for it.
//!
//! - `lru`: pages wait on lists by age and kind. `flags`: [`PageFlags`] say what became of them.
//! - `scan`: the ends of these lists are looked at, in batches; the host is asked to let go.
//! - `shrink`: how much of which list, at which priority.
//! - `direct`: a request that finds nothing reclaims by itself.
//! - [`Kswapd`]: the daemon that does so ahead of demand.
//!
//! Nothing here blocks: an operation is a value whose `step` runs until it is [`Done`](Step::Done) or
//! has a [`Need`] that only the host can meet (wait, write, shrink, kill); the host meets it and steps
//! again with an [`Answer`].
//!
//! Invariant: a page is on the LRU list that its state names, or isolated by the one operation that
//! holds it; a page under writeback is never freed by reclaim. `spec: linux-mm 4`

pub(crate) mod direct;
mod flags;
mod kswapd;
mod lru;
mod scan;
pub(crate) mod shrink;

use crate::frame::Pfn;
use crate::place::List;
use bitflags::bitflags;
pub(crate) use flags::FlagCounts;
pub use flags::FlagsMut;
pub use kswapd::Kswapd;
pub use lru::LruView;

/// An LRU list. The order of the first four is that of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Lru {
    /// Anonymous pages (and tmpfs) not used lately.
    InactiveAnon = 1,
    /// Anonymous pages in use.
    ActiveAnon = 2,
    /// Page cache not used lately.
    InactiveFile = 3,
    /// Page cache in use.
    ActiveFile = 4,
    /// Locked in memory.
    Unevictable = 5,
}

/// Number of LRU lists.
pub const NR_LRU: usize = 5;

/// State of a page that reclaim holds apart.
pub(crate) const ISOLATED: u8 = 6;

impl Lru {
    /// The lists that reclaim scans.
    pub const EVICTABLE: [Lru; 4] = [
        Lru::InactiveAnon,
        Lru::ActiveAnon,
        Lru::InactiveFile,
        Lru::ActiveFile,
    ];

    pub(crate) const fn from_code(code: u8) -> Option<Lru> {
        Some(match code {
            1 => Lru::InactiveAnon,
            2 => Lru::ActiveAnon,
            3 => Lru::InactiveFile,
            4 => Lru::ActiveFile,
            5 => Lru::Unevictable,
            _ => return None,
        })
    }
    pub(crate) const fn index(self) -> usize {
        self as usize - 1
    }
    /// Whether it holds page cache.
    pub const fn is_file(self) -> bool {
        matches!(self, Lru::InactiveFile | Lru::ActiveFile)
    }
    /// Whether its pages are in use.
    pub const fn is_active(self) -> bool {
        matches!(self, Lru::ActiveAnon | Lru::ActiveFile)
    }
    pub(crate) const fn new(file: bool, active: bool) -> Lru {
        match (file, active) {
            (false, false) => Lru::InactiveAnon,
            (false, true) => Lru::ActiveAnon,
            (true, false) => Lru::InactiveFile,
            (true, true) => Lru::ActiveFile,
        }
    }
}

bitflags! {
    /// What became of a page since it was allocated.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct PageFlags: u16 {
        /// Used once since the last scan, by read or write (`PG_referenced`).
        const REFERENCED = 1;
        /// Used by way of a mapping since the last scan (the young bits of its page table entries).
        const YOUNG = 1 << 1;
        /// Its content is newer than what is stored.
        const DIRTY = 1 << 2;
        /// It is being written.
        const WRITEBACK = 1 << 3;
        /// Its owner holds it fast at the moment.
        const LOCKED = 1 << 4;
        /// Some process maps it.
        const MAPPED = 1 << 5;
        /// It is to be freed when its writeback ends.
        const RECLAIM = 1 << 6;
        /// A program runs from it.
        const EXEC = 1 << 7;
        /// Freed by its owner while reclaim held it apart.
        const GONE = 1 << 8;
        /// Held apart by reclaim: it was on an active list, or is to go there.
        const ACTIVE = 1 << 9;
        /// Held apart by reclaim: it is anonymous, or of tmpfs.
        const SWAPBACKED = 1 << 10;
    }
}

/// What a host says to the wish that a page be unmapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmap {
    /// No process maps it any more; if it was anonymous it has a place in swap.
    Gone,
    /// Not now.
    Busy,
    /// Swap has no place for it.
    NoSpace,
}

/// What a host says to the wish that a dirty page be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Writing has begun; the host calls [`end_page_writeback`](crate::Manager::end_page_writeback).
    Started,
    /// It has been given a place, and stays dirty: it is to be written when reclaim meets it again, at
    /// the other end of its list.
    Later,
    /// The device has too much to write as it is.
    Congested,
    /// It cannot be written; the page goes back to the active list.
    Failed,
}

/// Class of requests at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Somebody waits for them: reads, and writes on demand.
    Sync,
    /// Writes in the background.
    Async,
}

/// Why somebody waits: kernels tell the reasons apart since 5.16, but the last one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// Until writeback gets on: until [`WRITTEN_ENOUGH`] pages more are written.
    Writeback,
    /// Until others have put back what they isolated.
    Isolated,
    /// Until somebody makes progress.
    NoProgress,
    /// Until a device is less busy.
    Congested,
    /// Until kswapd has freed pages: what is left is for those that reclaim. A host ends it when kswapd
    /// answers with a [`Need::Turn`] in which it freed some, and when it asks for [`Need::Sleep`]; a
    /// wait in which it freed none is not repeated.
    Reserves,
}

/// What an operation needs before it can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: so much was done that others should get a turn. `scanned` pages were looked at,
    /// `freed` given back; that is what the host charges time for.
    Turn {
        /// Pages looked at.
        scanned: u32,
        /// Pages given back.
        freed: u32,
    },
    /// Sleep until a device leaves congestion in this class, at most for this long. Answer:
    /// [`Answer::Left`].
    CongestionWait {
        /// Class of requests.
        class: Class,
        /// Most milliseconds.
        ms: u32,
    },
    /// Sleep until what is waited for happens, at most for this long.
    Throttle {
        /// Why.
        why: Throttle,
        /// Most milliseconds; 0 is one tick.
        ms: u32,
    },
    /// Sleep until this page is written.
    PageWriteback(Pfn),
    /// Shrink the caches in proportion to `scanned` of `lru_pages` pages. Answer:
    /// [`Answer::Freed`] with the number of objects, before any other step.
    Shrink {
        /// Pages looked at.
        scanned: u64,
        /// Pages that could have been.
        lru_pages: u64,
    },
    /// Have somebody else write this many dirty pages.
    WakeFlushers(u64),
    /// End a process. Answer: [`Answer::Killed`].
    Oom,
    /// kswapd only: sleep until woken, at most for so many milliseconds if some are given. Answer:
    /// [`Answer::Left`], 0 if nobody woke it.
    Sleep(Option<u32>),
}

/// What became of a [`Need`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was met; also the first step of every operation.
    Go,
    /// The wait ended with so many milliseconds left.
    Left(u32),
    /// So many objects of the caches were freed.
    Freed(u64),
    /// Whether a process will end.
    Killed(bool),
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// Finished.
    Done(T),
    /// To be stepped again with an answer.
    Need(Need),
}

/// Who asks for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// It reclaims memory itself (`PF_MEMALLOC`): no mark holds it, and it does not reclaim.
    pub memalloc: bool,
    /// A real-time task, or an interrupt that interrupted one.
    pub realtime: bool,
    /// An interrupt.
    pub in_interrupt: bool,
    /// The OOM killer has chosen it.
    pub oom_victim: bool,
}

/// Pages and times of reclaim since the start, with the names of `/proc/vmstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimCounters {
    /// Pages that kswapd looked at.
    pub pgscan_kswapd: u64,
    /// Pages that direct reclaim looked at.
    pub pgscan_direct: u64,
    /// Pages that kswapd gave back.
    pub pgsteal_kswapd: u64,
    /// Pages that direct reclaim gave back.
    pub pgsteal_direct: u64,
    /// Direct reclaims.
    pub allocstall: u64,
    /// Direct reclaims that waited first, because too little was free for those that reclaim.
    pub pgscan_direct_throttle: u64,
    /// Runs of kswapd.
    pub pageoutrun: u64,
    /// Pages moved from the inactive to the active lists.
    pub pgactivate: u64,
    /// Pages moved from the active to the inactive lists.
    pub pgdeactivate: u64,
    /// Pages of the active lists looked at.
    pub pgrefill: u64,
    /// Pages that reclaim gave to be written.
    pub nr_vmscan_write: u64,
    /// Pages freed at the end of their writeback's wait.
    pub pgrotated: u64,
    /// Times kswapd was woken before its first sleep ended, or found the low mark hit at once.
    pub kswapd_low_wmark_hit_quickly: u64,
    /// Times kswapd found the high mark broken after its first sleep.
    pub kswapd_high_wmark_hit_quickly: u64,
    /// Naps that kswapd skipped because a zone was below its min mark.
    pub kswapd_skip_congestion_wait: u64,
    /// Processes that the OOM killer was asked for.
    pub oom_kill: u64,
}

/// The LRU lists of a zone, or of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LruVec {
    pub lists: [List; NR_LRU],
    /// Scans that were too small to make.
    pub saved_scan: [u64; NR_LRU],
    /// Pages looked at lately, anonymous and file.
    pub recent_scanned: [u64; 2],
    /// Of them, those found in use.
    pub recent_rotated: [u64; 2],
    /// Priority of the last reclaim that was under way (joined lists).
    pub prev_priority: u8,
    /// Pages held apart, anonymous and file.
    pub isolated: [u64; 2],
}

impl LruVec {
    pub const EMPTY: LruVec = LruVec {
        lists: [List::EMPTY; NR_LRU],
        saved_scan: [0; NR_LRU],
        recent_scanned: [0; 2],
        recent_rotated: [0; 2],
        prev_priority: DEF_PRIORITY,
        isolated: [0; 2],
    };

    pub fn len(&self, lru: Lru) -> u64 {
        u64::from(self.lists[lru.index()].len)
    }
}

/// Reclaim begins at this priority and scans `size >> priority` of each list.
pub(crate) const DEF_PRIORITY: u8 = 12;

/// Pages that one reclaim wants, and the size of a batch.
pub(crate) const SWAP_CLUSTER_MAX: u64 = 32;

/// Pages whose writing ends a wait for [`Throttle::Writeback`]: what reclaim takes at a time. The
/// specification says how long such a wait lasts at most, not what ends it.
pub const WRITTEN_ENOUGH: u32 = SWAP_CLUSTER_MAX as u32;

/// What shrinkers are told of a pass over the LRU lists. One that found nothing to scan counts as one
/// cluster: caches must be able to go when they are all that is left. The specification does not say.
pub(crate) const fn pressure(scanned: u64) -> u64 {
    if scanned == 0 {
        SWAP_CLUSTER_MAX
    } else {
        scanned
    }
}
