//! What compaction and migration did: rules 1 and 2.

use super::found::{DaemonRun, FIRST_ALLOC, FIRST_FREE};
use super::operations::Action;
use super::tasks::{COMPACTING, KCOMPACTD, MIGRATING};
use super::walk::{IDLE, LIVE, UNKNOWN, Walk};
use unfrag_eras::Pfn;
use unfrag_linux::event::Block;

impl Walk {
    fn is_kcompactd(&self) -> bool {
        self.task_state[self.task as usize] & KCOMPACTD != 0
    }

    /// kcompactd does something that no request woke it for.
    pub(super) fn note_kcompactd(&mut self) {
        if self.is_kcompactd() && !self.compacts_for.contains_key(&self.task) {
            self.out.proactive_from.get_or_insert(self.time);
        }
    }

    /// kcompactd begins a run over the zone with this first frame.
    pub(super) fn note_kcompactd_begin(&mut self, zone_start: Option<u64>) {
        if self.is_kcompactd() {
            self.moved_before_run = self.out.classes.migrated;
            self.out.kcompactd_runs.push(DaemonRun {
                begin: self.time,
                zone_start,
                ..DaemonRun::default()
            });
        }
    }

    /// Notes on which CPU kcompactd runs.
    #[inline]
    pub(super) fn note_kcompactd_cpu(&mut self) {
        if !self.is_kcompactd() {
            return;
        }
        let moved = self.out.classes.migrated - self.moved_before_run;
        if let Some(run) = self.out.kcompactd_runs.last_mut().filter(|r| r.ns == 0)
            && run.cpus.last().is_none_or(|c| c.1 != self.cpu)
        {
            run.cpus.push((moved, self.cpu));
        }
    }

    /// A run over a zone ends; where its scanners are, if the trace says it.
    pub(super) fn note_kcompactd_end(&mut self, migrate: Option<u64>, free: Option<u64>) {
        let moved = self.out.classes.migrated - self.moved_before_run;
        if self.is_kcompactd()
            && let Some(run) = self.out.kcompactd_runs.last_mut()
        {
            let order = self.geometry.block_order.0;
            run.ns = (self.time - run.begin).max(1);
            run.moved = moved;
            let block = |pfn: u64| pfn >> order;
            run.met = migrate.map(block) >= free.map(block);
        }
    }

    /// Rule 2: a free that no other rule explains belongs to the source that waits longest.
    pub(super) fn match_unpaired_source(&mut self, p: u32) {
        if let Some(number) = self.unpaired_sources.pop_front() {
            self.out.classes.matched += 1;
            let (pfn, number) = (p.into(), number.into());
            self.push(Action::MovedTo { pfn, number });
        }
    }

    /// Rule 1. Returns whether the block was a source or a target.
    pub(super) fn free_by_compaction(&mut self, t: u8, pfn: u32, order: u8) -> bool {
        let migrating = t & MIGRATING != 0;
        if self.phases_known && !migrating {
            if t & COMPACTING == 0 || self.state[pfn as usize] == LIVE {
                return false;
            }
            for p in pfn..pfn + (1 << order) {
                self.unused_target(p);
            }
            return true;
        }
        for p in pfn..pfn + (1 << order) {
            match std::mem::replace(&mut self.state[p as usize], IDLE) {
                IDLE if !migrating || self.era.shows_returned_targets() => self.unused_target(p),
                was => {
                    match was {
                        UNKNOWN => self.out.first[p as usize] = FIRST_FREE,
                        // A migration before had filled it unseen.
                        IDLE => self.match_unpaired_source(p),
                        _ => {}
                    }
                    self.migrated(p);
                }
            }
        }
        true
    }

    pub(super) fn unused_target(&mut self, p: u32) {
        self.out.classes.unused_targets += 1;
        if std::mem::replace(&mut self.state[p as usize], IDLE) == UNKNOWN {
            self.out.first[p as usize] = FIRST_ALLOC;
        }
    }

    /// Rule 2: the source of a migration is freed.
    pub(super) fn migrated(&mut self, p: u32) {
        self.out.classes.migrated += 1;
        let order = self.compacts_for.get(&self.task).copied().unwrap_or(0);
        let Some(to) = self.paired.remove(&p) else {
            // The frame may be taken again before its page is found.
            self.unpaired_sources.push_back(self.moves);
            let (pfn, number) = (p.into(), self.moves.into());
            self.push(Action::MovedAway { order, pfn, number });
            self.moves += 1;
            return;
        };
        self.out.classes.migrated_paired += 1;
        if self.state[to as usize] == UNKNOWN {
            self.out.first[to as usize] = FIRST_ALLOC;
        }
        self.state[to as usize] = LIVE;
        let (pfn, to) = (p.into(), to.into());
        self.push(Action::Moved { order, pfn, to });
    }

    pub(super) fn set_migration(&mut self, addr: u64, pte: u64) {
        // Of other page sizes the form of an entry is not known: their migrations stay unpaired.
        if self.geometry.page_shift != 12 {
            return;
        }
        // The old frame stands in the swap entry: its offset is inverted, from bit 9 on.
        let old = (!pte >> 9) & ((1 << 40) - 1);
        if let Ok((old, _)) = self.frame(page(old)) {
            self.leaving.push((addr, old));
        }
    }

    pub(super) fn remove_migration(&mut self, addr: u64, pte: u64) {
        let new = pte >> 12 & ((1 << 40) - 1);
        let Some(i) = self.leaving.iter().rposition(|l| l.0 == addr) else {
            return;
        };
        let (_, old) = self.leaving.swap_remove(i);
        if let Ok((new, _)) = self.frame(page(new))
            && new != old
        {
            self.paired.insert(old, new);
        }
    }
}

fn page(pfn: u64) -> Block {
    Block {
        pfn: Pfn(pfn),
        order: 0,
    }
}
