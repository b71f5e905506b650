//! The walk over a whole trace, event by event.

use super::events::EventKind;
use super::found::Causes;
use super::operations::Action;
use super::tasks::{COMPACTING, MIGRATING, RECLAIMING};
use super::walk::Walk;
use crate::era::Era;
use crate::error::Result;
use crate::input::Input;
use unfrag_linux::file::{Common, Wanted};
use unfrag_linux::recording::Events;

/// Walks the trace.
///
/// `frames` is the number of frame numbers of the host; `free_at` says of a frame whether it was
/// free at `from` (nanoseconds of the trace clock), where that is known exactly. Operations before
/// `from` and after `until` are left out.
///
/// # Errors
/// If events lack a field that is needed, or name frames beyond `frames`.
pub fn causes<'r>(
    input: impl Into<Input<'r>>,
    era: Era,
    frames: u32,
    from: u64,
    until: u64,
    free_at: Option<&dyn Fn(u32) -> bool>,
) -> Result<Causes> {
    let input = input.into();
    let mut w = Walk::new(&input, era, frames, from, free_at)?;
    let wanted = Wanted {
        common: &[Common::Cpu, Common::Task, Common::Flags],
        field: &|event, field| EventKind::of(event).reads(field),
    };
    let all = &input.recording.events.tables;
    let kinds: Vec<EventKind> = all.iter().map(|t| EventKind::of(&t.name)).collect();
    input.events.each(0..=until, wanted, &mut |batch| {
        walk(&mut w, &kinds, batch, until)
    })?;
    w.finish()?;
    w.out.shows_fallbacks = kinds.contains(&EventKind::Extfrag);
    w.out.shows_kcompactd = kinds.contains(&EventKind::KcompactdSleep);
    Ok(w.out)
}

/// Walks a batch of events.
fn walk(w: &mut Walk, kinds: &[EventKind], ev: &Events, until: u64) -> Result<()> {
    let columns = kinds.iter().zip(&ev.tables).map(|(k, t)| k.columns(t));
    let cols = columns.collect::<Result<Vec<_>>>()?;
    let mut rows = vec![0usize; ev.tables.len()];
    let start = ev.time.partition_point(|&t| t < w.from);
    let end = ev.time.partition_point(|&t| t <= until);
    for (i, &k) in ev.kind[..end].iter().enumerate() {
        let row = rows[k as usize];
        rows[k as usize] += 1;
        let [a, b, c] = &cols[k as usize];
        w.at(i, ev);
        let live = i >= start;
        match kinds[k as usize] {
            EventKind::Alloc if live => w.alloc(a[row], b[row], c[row])?,
            EventKind::Free if live => w.free(a[row], b[row])?,
            EventKind::Extfrag if live => w.out.fallbacks.note(w.time),
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
            EventKind::KswapdWake => w.kswapd_wakes(a.get(row))?,
            EventKind::KswapdSleep => w.kswapd_sleeps(a.get(row))?,
            EventKind::WakeupKswapd => w.kswapd_is_asked(a.get(row)),
            _ => {}
        }
        w.note_kcompactd_cpu();
    }
    Ok(())
}
