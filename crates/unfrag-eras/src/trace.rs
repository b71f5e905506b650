//! The kernel's own tracepoints as typed events.
//!
//! The allocator emits them where Linux does, so that a replay can be compared event by event.
//! `spec: 7.6`

use crate::frame::{MigrateType, Order, Pfn, ZoneId};
use crate::gfp::Gfp;

/// One tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// `kmem:mm_page_alloc`: the end of every allocation, also a failed one.
    PageAlloc {
        /// First frame; `None` if there was none.
        pfn: Option<Pfn>,
        /// Order of the request.
        order: Order,
        /// Type of the request.
        migratetype: MigrateType,
        /// Its flags.
        gfp: Gfp,
    },
    /// `kmem:mm_page_free`: once for each block given back.
    PageFree {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
    },
    /// `kmem:mm_page_free_batched`: a second event for a page of a batch.
    PageFreeBatched {
        /// The frame.
        pfn: Pfn,
    },
    /// `kmem:mm_page_alloc_zone_locked`: a block was taken from the buddy lists.
    PageAllocZoneLocked {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
        /// List it came from.
        migratetype: MigrateType,
        /// Whether the order and type are served by per-CPU lists.
        percpu_refill: bool,
    },
    /// `kmem:mm_page_pcpu_drain`: a block went from a per-CPU list to the buddy lists.
    PagePcpuDrain {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
        /// List it goes to.
        migratetype: MigrateType,
    },
    /// `kmem:mm_page_alloc_extfrag`: a request took from a list of another type.
    PageAllocExtfrag(Extfrag),
    /// `compaction:mm_compaction_try_to_compact_pages`: a request compacts.
    CompactionTryToCompactPages {
        /// Order of the request.
        order: Order,
        /// Its flags.
        gfp: Gfp,
        /// 0: whole zones, 1: synchronous, 2: asynchronous.
        priority: u8,
    },
    /// `compaction:mm_compaction_begin`: a run over a zone begins.
    CompactionBegin {
        /// The zone.
        zone: ZoneId,
        /// Where its migrate scanner begins.
        migrate: Pfn,
        /// Where its free scanner begins.
        free: Pfn,
        /// Whether it may wait.
        sync: bool,
    },
    /// `compaction:mm_compaction_end`: it is over.
    CompactionEnd {
        /// The zone.
        zone: ZoneId,
        /// Where its migrate scanner is.
        migrate: Pfn,
        /// Where its free scanner is.
        free: Pfn,
        /// Whether it might wait.
        sync: bool,
        /// The outcome, by its name there.
        outcome: &'static str,
    },
    /// `compaction:mm_compaction_isolate_migratepages`: a part of a pageblock was searched for pages to move.
    CompactionIsolateMigratepages {
        /// First frame.
        start: Pfn,
        /// Frame behind the last one.
        end: Pfn,
        /// Frames looked at.
        nr_scanned: u32,
        /// Pages isolated.
        nr_taken: u32,
    },
    /// `compaction:mm_compaction_isolate_freepages`: a part of a pageblock was searched for free pages.
    CompactionIsolateFreepages {
        /// First frame.
        start: Pfn,
        /// Frame behind the last one.
        end: Pfn,
        /// Frames looked at.
        nr_scanned: u32,
        /// Pages taken.
        nr_taken: u32,
    },
    /// `compaction:mm_compaction_migratepages`: the pages of one scan were moved, or not.
    CompactionMigratepages {
        /// Pages moved.
        nr_migrated: u32,
        /// Pages that stayed.
        nr_failed: u32,
    },
}

/// A fallback to another type's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extfrag {
    /// First frame of the block found.
    pub pfn: Pfn,
    /// Order of the request.
    pub alloc_order: Order,
    /// Order of the block found.
    pub fallback_order: Order,
    /// Type of the request.
    pub alloc_migratetype: MigrateType,
    /// Type of the list it was found on.
    pub fallback_migratetype: MigrateType,
    /// Whether the pageblock has the type of the request afterwards.
    pub change_ownership: bool,
}
