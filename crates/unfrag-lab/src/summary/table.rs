//! The columns of the events that are read.
//!
//! Invariant: a field that a recorder left out, or wrote as something that is no number, is `None`.

use super::people::WhoId;
use unfrag_linux::recording::{EventTable, FieldKind, Recording};

/// Which event a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Alloc,
    Extfrag,
    CompactTry,
    CompactBegin,
    CompactEnd,
    Suitable,
    Finished,
    IsolateMigrate,
    IsolateFree,
    Migrated,
    Deferred,
    KcompactdWake,
    WakeupKswapd,
    KswapdWake,
    KswapdSleep,
    ReclaimBegin,
    ReclaimEnd,
    Other,
}

impl Kind {
    /// By the event's name.
    fn of(name: &str) -> Kind {
        match name {
            "mm_page_alloc" => Kind::Alloc,
            "mm_page_alloc_extfrag" => Kind::Extfrag,
            "mm_compaction_try_to_compact_pages" => Kind::CompactTry,
            "mm_compaction_begin" => Kind::CompactBegin,
            "mm_compaction_end" => Kind::CompactEnd,
            "mm_compaction_suitable" => Kind::Suitable,
            "mm_compaction_finished" => Kind::Finished,
            "mm_compaction_isolate_migratepages" => Kind::IsolateMigrate,
            "mm_compaction_isolate_freepages" | "mm_compaction_fast_isolate_freepages" => {
                Kind::IsolateFree
            }
            "mm_compaction_migratepages" => Kind::Migrated,
            "mm_compaction_deferred" => Kind::Deferred,
            "mm_compaction_kcompactd_wake" => Kind::KcompactdWake,
            "mm_vmscan_wakeup_kswapd" => Kind::WakeupKswapd,
            "mm_vmscan_kswapd_wake" => Kind::KswapdWake,
            "mm_vmscan_kswapd_sleep" => Kind::KswapdSleep,
            "mm_vmscan_direct_reclaim_begin" => Kind::ReclaimBegin,
            "mm_vmscan_direct_reclaim_end" => Kind::ReclaimEnd,
            _ => Kind::Other,
        }
    }

    /// The fields that are read, at most [`FIELDS`].
    fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Alloc => &["pfn", "order", "gfp_flags", "migratetype"],
            Kind::Extfrag => &[
                "alloc_order",
                "fallback_order",
                "alloc_migratetype",
                "fallback_migratetype",
                "change_ownership",
                "pageblock_order",
            ],
            Kind::CompactTry | Kind::Deferred | Kind::KcompactdWake | Kind::ReclaimBegin => {
                &["order"]
            }
            Kind::CompactEnd => &["status"],
            Kind::Suitable | Kind::Finished => &["order", "ret"],
            Kind::IsolateMigrate | Kind::IsolateFree => &["nr_scanned", "nr_taken"],
            Kind::Migrated => &["nr_migrated", "nr_failed"],
            Kind::WakeupKswapd | Kind::KswapdWake => &["order", "nid"],
            Kind::ReclaimEnd => &["nr_reclaimed"],
            Kind::CompactBegin | Kind::KswapdSleep | Kind::Other => &[],
        }
    }
}

/// An event as it stands in the trace.
#[derive(Clone, Copy)]
pub(super) struct Event {
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// Index of the task.
    pub task: u32,
    /// Who did it.
    pub who: WhoId,
    /// Its row in the table.
    pub row: usize,
}

/// Most fields of an event that are read.
pub(super) const FIELDS: usize = 6;

/// One kind of event.
pub(super) struct Table<'a> {
    pub kind: Kind,
    columns: [Option<Column<'a>>; FIELDS],
}

#[derive(Clone, Copy)]
struct Column<'a> {
    values: &'a [u64],
    strings: Option<&'a [String]>,
}

impl<'a> Table<'a> {
    /// The table of a recording.
    pub fn of(table: &'a EventTable, rec: &'a Recording) -> Table<'a> {
        let kind = Kind::of(&table.name);
        let mut columns = [None; FIELDS];
        for (to, name) in columns.iter_mut().zip(kind.fields()) {
            let found = table.fields.iter().zip(&table.columns);
            *to = found
                .into_iter()
                .find(|(f, _)| f.name == *name)
                .map(|(field, values)| Column {
                    values,
                    strings: (field.kind == FieldKind::String).then_some(&rec.strings[..]),
                });
        }
        Table { kind, columns }
    }

    /// The number of a field in a row, fields by their place in `Kind::fields`.
    #[inline]
    pub fn number(&self, field: usize, row: usize) -> Option<u64> {
        let column = self.columns[field].as_ref()?;
        let value = *column.values.get(row)?;
        match column.strings {
            None => Some(value),
            Some(strings) => strings.get(value as usize)?.parse().ok(),
        }
    }

    /// The value of a field in a row, as a name or a number.
    #[inline]
    pub fn named(&self, field: usize, row: usize) -> Option<Named<'a>> {
        let column = self.columns[field].as_ref()?;
        let value = *column.values.get(row)?;
        match column.strings {
            None => Some(Named::Number(value)),
            Some(strings) => match strings.get(value as usize)?.as_str() {
                "" => None,
                name => Some(Named::Name(name)),
            },
        }
    }
}

/// A value that some recorders write by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Named<'a> {
    Number(u64),
    Name(&'a str),
}
