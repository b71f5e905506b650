//! Whether a recording's allocations and frees add up.
//!
//! A page that was allocated is freed in the recording, or held at its end, or its free was not seen. A free
//! was not seen if the page was allocated once more without one, or if the last snapshot shows it free. Such
//! frees are done by tasks that were not traced, mostly after a grace period.
//!
//! Invariant: `allocated = freed + held + unseen`.

use crate::procfs::kpageflags::{BUDDY, PageFlags};
use crate::recording::Recording;

/// Numbers of pages of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Allocated.
    pub allocated: u64,
    /// Of these, seen freed.
    pub freed: u64,
    /// Of these, in use at the end.
    pub held: u64,
    /// Of these, freed with no event.
    pub unseen: u64,
    /// Freed in the recording, but allocated before it.
    pub from_before: u64,
}

/// Page frames from this number on are not counted: 64 TiB of memory.
const MAX_FRAMES: u64 = 1 << 34;

/// Counts the pages of a recording. Without page flags at its end, every page that is not seen freed counts
/// as held.
pub fn balance(recording: &Recording) -> Balance {
    let events = &recording.events;
    let of = |name: &str| {
        let kind = events.tables.iter().position(|t| t.name == name)?;
        let table = &events.tables[kind];
        Some((kind, table.column("pfn")?, table.column("order")?))
    };
    let (allocs, frees) = (of("mm_page_alloc"), of("mm_page_free"));
    let pages = |pfn: u64, order: u64| {
        let end = pfn.saturating_add(1 << order.min(20));
        if pfn == 0 {
            0..0
        } else {
            pfn.min(MAX_FRAMES)..end.min(MAX_FRAMES)
        }
    };
    let highest = [allocs, frees]
        .into_iter()
        .flatten()
        .flat_map(|(_, p, o)| p.iter().zip(o));
    let highest = highest.map(|(&p, &o)| pages(p, o).end).max().unwrap_or(0);
    let mut live = vec![false; highest as usize];
    let mut rows = vec![0; events.tables.len()];
    let mut sum = Balance::default();
    for &kind in &events.kind {
        let kind = usize::from(kind);
        let row = rows[kind];
        rows[kind] += 1;
        match (allocs, frees) {
            (Some((k, pfn, order)), _) if k == kind => {
                for page in pages(pfn[row], order[row]) {
                    sum.allocated += 1;
                    sum.unseen += u64::from(std::mem::replace(&mut live[page as usize], true));
                }
            }
            (_, Some((k, pfn, order))) if k == kind => {
                for page in pages(pfn[row], order[row]) {
                    match std::mem::replace(&mut live[page as usize], false) {
                        true => sum.freed += 1,
                        false => sum.from_before += 1,
                    }
                }
            }
            _ => {}
        }
    }
    let last = recording.snapshots.last();
    let flags = last.and_then(|s| PageFlags::of(s).ok()?);
    let is_free = |page: usize| {
        flags
            .as_ref()
            .is_some_and(|f| f.frame(page as u64) & BUDDY != 0)
    };
    for (page, _) in live.iter().enumerate().filter(|(_, live)| **live) {
        match is_free(page) {
            true => sum.unseen += 1,
            false => sum.held += 1,
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{EventTable, Events, Field, FieldKind, Snapshot, SnapshotFile};

    #[test]
    fn pages_are_freed_held_or_freed_unseen() {
        // Allocated: 8-9 (freed one by one), 3 twice, 4 (free at the end), 5 (held), and one that failed.
        let table = |name: &str, rows: &[(u64, u64)]| EventTable {
            system: "kmem".into(),
            name: name.into(),
            fields: ["pfn", "order"]
                .map(|n| Field {
                    name: n.into(),
                    kind: FieldKind::Unsigned,
                })
                .into(),
            columns: vec![
                rows.iter().map(|r| r.0).collect(),
                rows.iter().map(|r| r.1).collect(),
            ],
        };
        let kind = vec![0, 0, 0, 0, 0, 0, 1, 1, 1, 1];
        let mut flags = PageFlags { words: vec![0; 16] };
        flags.words[4] = BUDDY;
        let recording = Recording {
            events: Events {
                time: vec![0; kind.len()],
                tables: vec![
                    table(
                        "mm_page_alloc",
                        &[(8, 1), (3, 0), (3, 0), (4, 0), (5, 0), (0, 9)],
                    ),
                    table("mm_page_free", &[(8, 0), (9, 0), (3, 0), (12, 0)]),
                ],
                kind,
                ..Events::default()
            },
            snapshots: vec![Snapshot {
                name: "end".into(),
                files: vec![SnapshotFile {
                    name: "kpageflags".into(),
                    time: None,
                    content: flags.write().into(),
                }],
            }],
            ..Recording::default()
        };
        let wanted = Balance {
            allocated: 6,
            freed: 3,
            held: 1,
            unseen: 2,
            from_before: 1,
        };
        assert_eq!(balance(&recording), wanted);
    }
}
