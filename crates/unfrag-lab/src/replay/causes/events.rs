//! The trace events that causes are read from.

use crate::error::Result;
use crate::input::{Input, needed};
use unfrag_linux::recording::EventTable;

/// Which event a table holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Alloc,
    Free,
    Extfrag,
    CompactBegin,
    CompactEnd,
    Isolated,
    Migrated,
    CompactFor,
    KcompactdSleep,
    SetMigration,
    RemoveMigration,
    KswapdWake,
    KswapdSleep,
    WakeupKswapd,
    ReclaimBegin,
    ReclaimEnd,
    Other,
}

impl EventKind {
    pub(super) fn of(name: &str) -> EventKind {
        match name {
            "mm_page_alloc" => EventKind::Alloc,
            "mm_page_free" | "mm_page_free_direct" => EventKind::Free,
            "mm_page_alloc_extfrag" => EventKind::Extfrag,
            "mm_compaction_begin" => EventKind::CompactBegin,
            "mm_compaction_end" => EventKind::CompactEnd,
            "mm_compaction_isolate_migratepages" => EventKind::Isolated,
            "mm_compaction_migratepages" => EventKind::Migrated,
            "mm_compaction_try_to_compact_pages" | "mm_compaction_kcompactd_wake" => {
                EventKind::CompactFor
            }
            "mm_compaction_kcompactd_sleep" => EventKind::KcompactdSleep,
            "set_migration_pte" => EventKind::SetMigration,
            "remove_migration_pte" => EventKind::RemoveMigration,
            "mm_vmscan_kswapd_wake" => EventKind::KswapdWake,
            "mm_vmscan_kswapd_sleep" => EventKind::KswapdSleep,
            "mm_vmscan_wakeup_kswapd" => EventKind::WakeupKswapd,
            "mm_vmscan_direct_reclaim_begin" => EventKind::ReclaimBegin,
            "mm_vmscan_direct_reclaim_end" => EventKind::ReclaimEnd,
            _ => EventKind::Other,
        }
    }
}

/// Pages that `mm_compaction_isolate_migratepages` isolated.
const NR_TAKEN: &str = "nr_taken";

/// The event that isolates the sources of a migration, and the one that ends it.
const PHASES: [(&str, &str); 2] = [
    ("mm_compaction_isolate_migratepages", NR_TAKEN),
    ("mm_compaction_migratepages", "nr_migrated"),
];

/// Whether the trace says when compaction migrates.
pub(super) fn shows_migration(input: &Input<'_>) -> bool {
    PHASES
        .iter()
        .all(|(name, field)| input.happened(name, field))
}

impl EventKind {
    /// Fields that have to be there.
    fn needed(self) -> &'static [&'static str] {
        match self {
            EventKind::Alloc => &["pfn", "order", "gfp_flags"],
            EventKind::Free => &["pfn", "order"],
            EventKind::SetMigration | EventKind::RemoveMigration => &["addr", "pte"],
            _ => &[],
        }
    }

    /// Fields that may be there.
    fn helpful(self) -> &'static [&'static str] {
        match self {
            EventKind::Isolated => &[NR_TAKEN],
            EventKind::CompactBegin => &["zone_start"],
            EventKind::CompactEnd => &["migrate_pfn", "free_pfn"],
            EventKind::CompactFor => &["order"],
            EventKind::KswapdWake | EventKind::KswapdSleep | EventKind::WakeupKswapd => &["nid"],
            _ => &[],
        }
    }

    /// Whether a field of it is read.
    pub(super) fn reads(self, field: &str) -> bool {
        self.needed().contains(&field) || self.helpful().contains(&field)
    }

    /// The columns that are read, in turn; one that may be missing is empty then.
    ///
    /// # Errors
    /// If a field is missing that has to be there.
    pub(super) fn columns(self, table: &EventTable) -> Result<[&[u64]; 3]> {
        let mut columns: [&[u64]; 3] = [&[]; 3];
        for (to, name) in columns.iter_mut().zip(self.needed()) {
            *to = needed(table, name)?;
        }
        for (to, name) in columns.iter_mut().zip(self.helpful()) {
            *to = table.column(name).unwrap_or_default();
        }
        Ok(columns)
    }
}
