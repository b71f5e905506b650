//! The walk over a whole trace, event by event.

use super::found::Causes;
use super::operations::Action;
use super::tasks::{COMPACTING, MIGRATING, RECLAIMING};
use super::walk::Walk;
use crate::era::Era;
use crate::error::{Error, Result};
use crate::input::Input;
use unfrag_linux::event::page::{Compaction, Migration, Reclaim};
use unfrag_linux::event::{At, Coverage, Kind, Page, Tracker, Unreadable};
use unfrag_linux::file::Common;

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
    input.check(&[
        Kind::Alloc,
        Kind::Free,
        Kind::SetMigration,
        Kind::RemoveMigration,
    ])?;
    let mut w = Walk::new(&input, era, frames, from..=until, free_at)?;
    let common = [Common::Cpu, Common::Task, Common::Flags];
    input.walk(0..=until, &common, &mut w)?;
    w.finish()?;
    let recorded = Coverage::of(input.recording);
    w.out.shows_fallbacks = recorded.has(Kind::Fallback);
    w.out.shows_kcompactd = recorded.has(Kind::KcompactdSleep);
    Ok(w.out)
}

impl Tracker for Walk {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Alloc
                | Kind::Free
                | Kind::Fallback
                | Kind::CompactTry
                | Kind::CompactBegin
                | Kind::CompactEnd
                | Kind::IsolateMigrate
                | Kind::Migrated
                | Kind::KcompactdWake
                | Kind::KcompactdSleep
                | Kind::SetMigration
                | Kind::RemoveMigration
                | Kind::WakeupKswapd
                | Kind::KswapdWake
                | Kind::KswapdSleep
                | Kind::ReclaimBegin
                | Kind::ReclaimEnd
                | Kind::CollapseScan
        )
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        if at.time > self.until {
            return Ok(());
        }
        self.at(at);
        let live = self.time >= self.from;
        match page {
            Some(Page::Alloc(request)) if live => self.alloc(&request)?,
            Some(Page::Free(block)) if live => self.free(block)?,
            Some(Page::Fallback(_)) if live => self.out.fallbacks.note(self.time),
            Some(Page::Compaction(event)) => self.compaction(&event),
            Some(Page::Migration(Migration::Leaves { addr, pte })) => self.set_migration(addr, pte),
            Some(Page::Migration(Migration::Arrives { addr, pte })) => {
                self.remove_migration(addr, pte);
            }
            Some(Page::Reclaim(event)) => self.reclaim(&event)?,
            Some(Page::CollapseScan) => self.looks_for_collapses(),
            _ => {}
        }
        self.note_kcompactd_cpu();
        Ok(())
    }

    fn unreadable(&mut self, at: &At, kind: Kind, why: Unreadable) -> Result<()> {
        let is_before = at.time < self.from && matches!(kind, Kind::Alloc | Kind::Free);
        match is_before || at.time > self.until {
            true => self.event(at, None),
            false => Err(why.into()),
        }
    }
}

impl Walk {
    fn set(&mut self, bits: u8) {
        self.task_state[self.task as usize] |= bits;
    }

    fn clear(&mut self, bits: u8) {
        self.task_state[self.task as usize] &= !bits;
    }

    fn compaction(&mut self, event: &Compaction<'_>) {
        match *event {
            Compaction::Begin { zone_start } => {
                self.note_kcompactd();
                self.note_kcompactd_begin(zone_start);
                self.set(COMPACTING);
            }
            Compaction::End { migrate, free, .. } => {
                self.note_kcompactd_end(migrate, free);
                self.clear(COMPACTING | MIGRATING);
            }
            Compaction::IsolateMigrate { taken, .. } => match taken {
                Some(1..) => self.set(MIGRATING),
                _ => self.clear(MIGRATING),
            },
            Compaction::Migrated { .. } => self.clear(MIGRATING),
            Compaction::Try { order, .. } | Compaction::KcompactdWake { order, .. } => {
                let order = order.map_or(0, |o| o.min(self.geometry.max_order.0.into()) as u8);
                self.compacts_for.insert(self.task, order);
            }
            Compaction::KcompactdSleep { .. } => {
                self.note_kcompactd();
                self.compacts_for.remove(&self.task);
            }
            _ => {}
        }
    }

    fn reclaim(&mut self, event: &Reclaim) -> Result<()> {
        match *event {
            Reclaim::Begin { .. } => self.set(RECLAIMING),
            Reclaim::End { .. } => {
                self.clear(RECLAIMING);
                self.push(Action::DrainAll);
            }
            Reclaim::Wakes { node, .. } => self.kswapd_wakes(node)?,
            Reclaim::Sleeps { node } => self.kswapd_sleeps(node)?,
            Reclaim::Asked { node, .. } => self.kswapd_is_asked(node),
        }
        Ok(())
    }
}
