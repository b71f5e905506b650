//! The trace events that causes are read from.

use crate::error::{Error, Result};
use unfrag_linux::recording::{EventTable, Recording};

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

pub(super) fn column<'a>(table: &'a EventTable, name: &str) -> Result<&'a [u64]> {
    table.column(name).ok_or_else(|| {
        Error::lacking(format!(
            "the events `{}` have no field `{name}`; record them with their raw data",
            table.name
        ))
    })
}

/// Pages that `mm_compaction_isolate_migratepages` isolated.
pub(super) const NR_TAKEN: &str = "nr_taken";

/// Whether the trace says when compaction migrates.
pub(super) fn shows_migration(rec: &Recording) -> bool {
    let happened = |name: &str, field: &str| {
        let mut tables = rec.events.tables.iter().filter(|t| t.name == name);
        tables.any(|t| t.column(field).is_some_and(|c| !c.is_empty()))
    };
    happened("mm_compaction_isolate_migratepages", NR_TAKEN)
        && happened("mm_compaction_migratepages", "nr_migrated")
}
