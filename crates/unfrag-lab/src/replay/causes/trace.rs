//! The walk over a whole trace, event by event.

use super::events::{EventKind, NR_TAKEN, column};
use super::operations::{Action, Causes};
use super::tasks::{COMPACTING, MIGRATING, RECLAIMING};
use super::walk::Walk;
use crate::era::Era;
use crate::error::Result;
use unfrag_linux::recording::Recording;

/// Walks the trace.
///
/// `frames` is the number of frame numbers of the host; `free_at` says of a frame whether it was
/// free at `from` (nanoseconds of the trace clock), where that is known exactly. Operations before
/// `from` and after `until` are left out.
///
/// # Errors
/// If events lack a field that is needed, or name frames beyond `frames`.
pub fn causes(
    rec: &Recording,
    era: Era,
    frames: u32,
    from: u64,
    until: u64,
    free_at: Option<&dyn Fn(u32) -> bool>,
) -> Result<Causes> {
    let ev = &rec.events;
    let kinds: Vec<EventKind> = ev.tables.iter().map(|t| EventKind::of(&t.name)).collect();
    let mut w = Walk::new(rec, era, frames, from, free_at);
    let empty: &[u64] = &[];
    let mut cols = vec![[empty; 4]; ev.tables.len()];
    for (i, t) in ev.tables.iter().enumerate() {
        let names: &[&str] = match kinds[i] {
            EventKind::Alloc => &["pfn", "order", "migratetype", "gfp_flags"],
            EventKind::Free => &["pfn", "order"],
            EventKind::Extfrag => &["pfn"],
            EventKind::SetMigration | EventKind::RemoveMigration => &["addr", "pte"],
            _ => &[],
        };
        for (c, n) in cols[i].iter_mut().zip(names) {
            *c = column(t, n)?;
        }
        match kinds[i] {
            EventKind::Isolated => cols[i][0] = t.column(NR_TAKEN).unwrap_or_default(),
            EventKind::CompactBegin => cols[i][0] = t.column("zone_start").unwrap_or_default(),
            EventKind::CompactEnd => {
                cols[i][0] = t.column("migrate_pfn").unwrap_or_default();
                cols[i][1] = t.column("free_pfn").unwrap_or_default();
            }
            EventKind::CompactFor => cols[i][0] = t.column("order").unwrap_or_default(),
            EventKind::KswapdWake | EventKind::KswapdSleep | EventKind::WakeupKswapd => {
                cols[i][0] = t.column("nid").unwrap_or_default();
            }
            _ => {}
        }
    }
    let mut rows = vec![0usize; ev.tables.len()];
    let start = ev.time.partition_point(|&t| t < from);
    let end = ev.time.partition_point(|&t| t <= until);
    for (i, &k) in ev.kind[..end].iter().enumerate() {
        let row = rows[k as usize];
        rows[k as usize] += 1;
        let [a, b, _, d] = &cols[k as usize];
        w.at(i, ev);
        let live = i >= start;
        match kinds[k as usize] {
            EventKind::Alloc if live => w.alloc(a[row], b[row], d[row])?,
            EventKind::Free if live => w.free(a[row], b[row])?,
            EventKind::Extfrag if live => w.out.extfrag.push((w.time, a[row] as u32)),
            EventKind::CompactBegin => {
                w.note_kcompactd();
                w.note_kcompactd_begin(a.get(row));
                w.task_state[w.task as usize] |= COMPACTING;
            }
            EventKind::CompactEnd => {
                w.note_kcompactd_end(a.get(row), b.get(row));
                w.task_state[w.task as usize] &= !(COMPACTING | MIGRATING);
            }
            EventKind::Isolated if a.get(row).is_some_and(|&n| n > 0) => {
                w.task_state[w.task as usize] |= MIGRATING
            }
            EventKind::Isolated | EventKind::Migrated => {
                w.task_state[w.task as usize] &= !MIGRATING
            }
            EventKind::CompactFor => {
                let order = a.get(row).map_or(0, |&o| o.min(10) as u8);
                w.compacts_for.insert(w.task, order);
            }
            EventKind::KcompactdSleep => {
                w.note_kcompactd();
                w.compacts_for.remove(&w.task);
            }
            EventKind::SetMigration => w.set_migration(a[row], b[row]),
            EventKind::RemoveMigration => w.remove_migration(a[row], b[row]),
            EventKind::ReclaimBegin => w.task_state[w.task as usize] |= RECLAIMING,
            EventKind::ReclaimEnd => {
                w.task_state[w.task as usize] &= !RECLAIMING;
                w.push(Action::DrainAll);
            }
            EventKind::KswapdWake => w.kswapd_wakes(a.get(row)),
            EventKind::KswapdSleep => w.kswapd_sleeps(a.get(row)),
            EventKind::WakeupKswapd => w.kswapd_is_asked(a.get(row)),
            _ => {}
        }
        w.note_kcompactd_cpu();
    }
    w.finish();
    w.out.shows_kcompactd = kinds.contains(&EventKind::KcompactdSleep);
    Ok(w.out)
}
