//! The tracepoints that are read.
//!
//! `mm_page_free_batched` is none of them: each of its pages has an `mm_page_free`, too.

use super::unreadable::Unreadable;
use crate::recording::EventTable;

/// Which tracepoint a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A block is allocated, or a request for one fails.
    Alloc,
    /// A block is freed.
    Free,
    /// A block goes from a zone to a per-CPU list.
    Refill,
    /// A block goes from a per-CPU list to its zone.
    Drain,
    /// A request is served from a pageblock of another type.
    Fallback,
    /// A request is about to compact.
    CompactTry,
    /// A run of compaction over a zone begins.
    CompactBegin,
    /// It ends.
    CompactEnd,
    /// Whether a zone is worth compacting.
    Suitable,
    /// Whether a run is done.
    Finished,
    /// Pages are isolated to be moved.
    IsolateMigrate,
    /// Free pages are isolated as targets.
    IsolateFree,
    /// A batch of pages was moved.
    Migrated,
    /// Compaction is put off, as earlier runs were in vain.
    Deferred,
    /// A request, or kswapd, wakes kcompactd.
    WakeupKcompactd,
    /// kcompactd wakes up.
    KcompactdWake,
    /// kcompactd goes to sleep.
    KcompactdSleep,
    /// A page table entry is that of a page under migration.
    SetMigration,
    /// It is that of the page's new frame.
    RemoveMigration,
    /// A request wakes kswapd.
    WakeupKswapd,
    /// kswapd wakes up.
    KswapdWake,
    /// kswapd goes to sleep.
    KswapdSleep,
    /// A task begins to reclaim.
    ReclaimBegin,
    /// It ends.
    ReclaimEnd,
    /// A page enters page cache.
    CacheAdd,
    /// A page leaves page cache.
    CacheDelete,
    /// An object of a slab cache is allocated.
    Object,
    /// An object is allocated by size.
    Kmalloc,
    /// An object is freed.
    ObjectFree,
    /// khugepaged, or a task in its place, looks at small pages to make a huge one of.
    CollapseScan,
    /// A CPU switches to another task.
    Switch,
    /// The kernel stack at the event before it, of the same task and CPU.
    Stack,
}

/// A tracepoint: its subsystem, the names that it has had, its fields, and how many of them (the first ones) no answer can do without.
struct Tracepoint {
    kind: Kind,
    system: &'static str,
    names: &'static [&'static str],
    fields: &'static [&'static str],
    needed: usize,
}

const fn row(
    kind: Kind,
    system: &'static str,
    names: &'static [&'static str],
    fields: &'static [&'static str],
    needed: usize,
) -> Tracepoint {
    Tracepoint {
        kind,
        system,
        names,
        fields,
        needed,
    }
}

/// Most fields of a tracepoint that are read.
pub(super) const FIELDS: usize = 6;

/// `spec: 7.6`
static TRACEPOINTS: [Tracepoint; 32] = [
    row(
        Kind::Alloc,
        "kmem",
        &["mm_page_alloc"],
        &["pfn", "order", "gfp_flags", "migratetype"],
        3,
    ),
    row(
        Kind::Free,
        "kmem",
        &["mm_page_free", "mm_page_free_direct"],
        &["pfn", "order"],
        2,
    ),
    row(
        Kind::Refill,
        "kmem",
        &["mm_page_alloc_zone_locked"],
        &["pfn", "order", "migratetype"],
        2,
    ),
    row(
        Kind::Drain,
        "kmem",
        &["mm_page_pcpu_drain"],
        &["pfn", "order", "migratetype"],
        2,
    ),
    row(
        Kind::Fallback,
        "kmem",
        &["mm_page_alloc_extfrag"],
        &[
            "alloc_order",
            "fallback_order",
            "alloc_migratetype",
            "fallback_migratetype",
            "change_ownership",
            "pageblock_order",
        ],
        0,
    ),
    row(
        Kind::CompactTry,
        "compaction",
        &["mm_compaction_try_to_compact_pages"],
        &["order", "gfp_mask"],
        0,
    ),
    row(
        Kind::CompactBegin,
        "compaction",
        &["mm_compaction_begin"],
        &["zone_start"],
        0,
    ),
    row(
        Kind::CompactEnd,
        "compaction",
        &["mm_compaction_end"],
        &["migrate_pfn", "free_pfn", "status"],
        0,
    ),
    row(
        Kind::Suitable,
        "compaction",
        &["mm_compaction_suitable"],
        &["order", "ret"],
        0,
    ),
    row(
        Kind::Finished,
        "compaction",
        &["mm_compaction_finished"],
        &["order", "ret"],
        0,
    ),
    row(
        Kind::IsolateMigrate,
        "compaction",
        &["mm_compaction_isolate_migratepages"],
        &["nr_scanned", "nr_taken"],
        0,
    ),
    row(
        Kind::IsolateFree,
        "compaction",
        &[
            "mm_compaction_isolate_freepages",
            "mm_compaction_fast_isolate_freepages",
        ],
        &["nr_scanned", "nr_taken"],
        0,
    ),
    row(
        Kind::Migrated,
        "compaction",
        &["mm_compaction_migratepages"],
        &["nr_migrated", "nr_failed"],
        0,
    ),
    row(
        Kind::Deferred,
        "compaction",
        &["mm_compaction_deferred"],
        &["order"],
        0,
    ),
    row(
        Kind::WakeupKcompactd,
        "compaction",
        &["mm_compaction_wakeup_kcompactd"],
        &["nid", "order"],
        0,
    ),
    row(
        Kind::KcompactdWake,
        "compaction",
        &["mm_compaction_kcompactd_wake"],
        &["nid", "order"],
        0,
    ),
    row(
        Kind::KcompactdSleep,
        "compaction",
        &["mm_compaction_kcompactd_sleep"],
        &["nid"],
        0,
    ),
    row(
        Kind::SetMigration,
        "migrate",
        &["set_migration_pte"],
        &["addr", "pte"],
        2,
    ),
    row(
        Kind::RemoveMigration,
        "migrate",
        &["remove_migration_pte"],
        &["addr", "pte"],
        2,
    ),
    row(
        Kind::WakeupKswapd,
        "vmscan",
        &["mm_vmscan_wakeup_kswapd"],
        &["nid", "order", "gfp_flags"],
        0,
    ),
    row(
        Kind::KswapdWake,
        "vmscan",
        &["mm_vmscan_kswapd_wake"],
        &["nid", "order"],
        0,
    ),
    row(
        Kind::KswapdSleep,
        "vmscan",
        &["mm_vmscan_kswapd_sleep"],
        &["nid"],
        0,
    ),
    row(
        Kind::ReclaimBegin,
        "vmscan",
        &["mm_vmscan_direct_reclaim_begin"],
        &["order"],
        0,
    ),
    row(
        Kind::ReclaimEnd,
        "vmscan",
        &["mm_vmscan_direct_reclaim_end"],
        &["nr_reclaimed"],
        0,
    ),
    // Page cache had single pages before it had folios: an order may be missing.
    row(
        Kind::CacheAdd,
        "filemap",
        &["mm_filemap_add_to_page_cache"],
        &["pfn", "i_ino", "s_dev", "index", "order"],
        4,
    ),
    row(
        Kind::CacheDelete,
        "filemap",
        &["mm_filemap_delete_from_page_cache"],
        &["pfn", "order"],
        1,
    ),
    row(
        Kind::Object,
        "kmem",
        &["kmem_cache_alloc", "kmem_cache_alloc_node"],
        SLAB,
        5,
    ),
    row(Kind::Kmalloc, "kmem", &["kmalloc", "kmalloc_node"], SLAB, 5),
    row(
        Kind::ObjectFree,
        "kmem",
        &["kfree", "kmem_cache_free"],
        &["ptr", "name"],
        1,
    ),
    row(
        Kind::CollapseScan,
        "huge_memory",
        &["mm_khugepaged_scan_pmd"],
        &[],
        0,
    ),
    row(
        Kind::Switch,
        "sched",
        &["sched_switch"],
        &["prev_pid", "next_pid"],
        2,
    ),
    row(Kind::Stack, "ftrace", &["kernel_stack"], &["stack"], 0),
];

/// Fields of an allocation of a slab object.
const SLAB: &[&str] = &[
    "ptr",
    "call_site",
    "bytes_req",
    "bytes_alloc",
    "gfp_flags",
    "name",
];

impl Kind {
    /// By the event's name; `None` for those that are not read.
    pub fn of(event: &str) -> Option<Kind> {
        let named = TRACEPOINTS.iter().find(|t| t.names.contains(&event));
        named.map(|t| t.kind)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Kind> {
        TRACEPOINTS.iter().map(|t| t.kind)
    }

    fn tracepoint(self) -> &'static Tracepoint {
        &TRACEPOINTS[self as usize]
    }

    /// The event as tracers name it, with its subsystem: `kmem:mm_page_alloc`.
    pub fn event(self) -> String {
        let Tracepoint { system, names, .. } = self.tracepoint();
        format!("{system}:{}", names[0])
    }

    /// The fields that are read.
    pub fn fields(self) -> &'static [&'static str] {
        self.tracepoint().fields
    }

    /// Checks that the events of a table can be read at all.
    ///
    /// # Errors
    /// If they lack a field that is needed.
    pub fn check(self, table: &EventTable) -> Result<(), Unreadable> {
        let tracepoint = self.tracepoint();
        let has = |name: &str| table.fields.iter().any(|f| f.name == name);
        let needed = &tracepoint.fields[..tracepoint.needed];
        match needed.iter().find(|name| !has(name)) {
            Some(field) => Err(Unreadable::Lacks {
                event: table.name.clone(),
                field,
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_at_its_place_and_has_no_more_fields_than_are_read() {
        for (i, t) in TRACEPOINTS.iter().enumerate() {
            assert_eq!(t.kind as usize, i, "{:?}", t.names);
            assert!(t.fields.len() <= FIELDS && t.needed <= t.fields.len());
            assert!(t.names.iter().all(|n| Kind::of(n) == Some(t.kind)));
        }
        assert_eq!(Kind::of("mm_page_free_batched"), None);
    }
}
