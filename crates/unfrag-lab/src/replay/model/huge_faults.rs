//! Faults that ask for a huge page, whose outcome in the model may differ from the recorded one.
//!
//! A fault tries on its own node first, with little effort (`__GFP_THISNODE|__GFP_NORETRY`), and then anywhere with
//! all effort, if it may wait at all. The two tries are two requests of the recording; the model makes the second one
//! if its own first one fails.
//!
//! Invariant: a huge page of the model that the recorded task never got is cut into the small pages that it took
//! instead, and the other way round, so that both hosts hold the same pages.

use super::Sim;
use super::tally::FaultWork;
use crate::replay::causes::{HostBlock, NONE};
use unfrag::{Gfp, Order, Pfn};

impl Sim<'_> {
    /// A try of a fault; the block is the one that it got on the recorded host.
    #[cold]
    pub(super) fn huge_fault(&mut self, recorded: Option<HostBlock>, gfp: Gfp, task: u32) {
        let is_first = gfp.contains(Gfp::THISNODE);
        let before = self.huge.first_tries.remove(&task);
        let got = match before.flatten() {
            Some(at) if !is_first => Some(at),
            unused => {
                if let Some(at) = unused {
                    let _ = self.manager.free(self.cpu, Pfn(at.into()), self.huge_order);
                }
                self.try_huge(gfp, recorded.is_none(), task)
            }
        };
        let has_second = is_first && gfp.contains(Gfp::DIRECT_RECLAIM);
        if has_second && recorded.is_none() {
            self.huge.first_tries.insert(task, got);
            return;
        }
        let got = got.or_else(|| {
            let second = gfp.difference(Gfp::THISNODE | Gfp::NORETRY);
            has_second
                .then(|| self.try_huge(second, false, task))
                .flatten()
        });
        let work = self.huge.work.remove(&task).unwrap_or_default();
        if got.is_some() {
            self.tally.huge_work.push(work);
        }
        self.tally
            .huge_faults
            .count(got.is_some(), recorded.is_some());
        match (recorded, got) {
            (Some(block), Some(at)) => self.allocated(block, gfp, at),
            (Some(block), None) => self.small_pages_instead(block),
            (None, Some(at)) => {
                self.tally.huge_instead += 1;
                let _ = self
                    .manager
                    .split(Pfn(at.into()), self.huge_order, Order::ZERO);
                self.huge
                    .pieces
                    .insert(task, (at, self.huge_order.frames()));
            }
            (None, None) => {}
        }
    }

    /// khugepaged asks for a huge page to collapse small pages to, whose tasks keep them if there is none.
    #[cold]
    pub(super) fn collapse(&mut self, recorded: Option<HostBlock>, gfp: Gfp) {
        let got = self.alloc_block(self.huge_order.0, gfp);
        let got = got.ok().map(|p| p.0 as u32);
        let counts = &mut self.tally.collapses;
        counts.count(got.is_some(), recorded.is_some());
        if got.is_none() {
            let of_huge = (self.huge_order.0, gfp);
            *self.tally.failures.entry(of_huge).or_default() += 1;
            self.tally.failed_in_both += u64::from(recorded.is_none());
        }
        match (recorded, got) {
            (Some(block), Some(at)) => self.allocated(block, gfp, at),
            // The recorded host freed small pages for it: their number stays the same.
            (Some(block), None) => self.small_pages_instead(block),
            // Nobody frees what khugepaged never got.
            (None, Some(at)) => {
                let _ = self.manager.free(self.cpu, Pfn(at.into()), self.huge_order);
            }
            (None, None) => {}
        }
    }

    fn try_huge(&mut self, gfp: Gfp, failed_there: bool, task: u32) -> Option<u32> {
        let before = self.compacted();
        let got = self.alloc_block(self.huge_order.0, gfp).ok();
        let after = self.compacted();
        let work = FaultWork {
            looks: after.looks - before.looks,
            moved: after.moved - before.moved,
        };
        let all = self.huge.work.entry(task).or_default();
        *all = all.and(work);
        if got.is_none() {
            *self
                .tally
                .failures
                .entry((self.huge_order.0, gfp))
                .or_default() += 1;
            self.tally.failed_in_both += u64::from(failed_there);
        }
        got.map(|p| p.0 as u32)
    }

    /// Compaction so far, by whomever.
    fn compacted(&self) -> FaultWork {
        let c = self.manager.inspect().compact_counters();
        FaultWork {
            looks: c.compact_migrate_scanned + c.compact_free_scanned,
            moved: c.pgmigrate_success,
        }
    }

    fn small_pages_instead(&mut self, block: HostBlock) {
        self.tally.small_instead += 1;
        for i in 0..self.huge_order.frames() {
            let small = Gfp::HIGHUSER_MOVABLE | Gfp::COMP | Gfp::ZERO;
            let pfn = block.pfn + i;
            match self.alloc_block(0, small) {
                Ok(Pfn(at)) => self.allocated(HostBlock { pfn, order: 0 }, small, at as u32),
                Err(_) => self.set_model_frame(pfn, NONE),
            }
        }
    }

    /// Whether a task has pieces of a huge page of the model left.
    #[inline]
    pub(super) fn has_huge_pieces(&self) -> bool {
        !self.huge.pieces.is_empty()
    }

    /// Takes a page from the task's huge page, if it has one. Returns whether it has.
    pub(super) fn alloc_from_huge(&mut self, pfn: u32, gfp: Gfp, task: u32) -> bool {
        if !gfp.contains(Gfp::HIGHUSER_MOVABLE) || !gfp.contains(Gfp::ZERO) {
            return false;
        }
        let Some((at, left)) = self.huge.pieces.get_mut(&task) else {
            return false;
        };
        let piece = *at;
        *at += 1;
        *left -= 1;
        if *left == 0 {
            self.huge.pieces.remove(&task);
        }
        self.place(HostBlock { pfn, order: 0 }, gfp, piece);
        true
    }

    /// Frees the huge pages that no recorded fault took, and the pieces that no small page was taken from, so that
    /// none is lost.
    pub fn free_huge_pieces(&mut self) {
        let huge = std::mem::take(&mut self.huge);
        for at in huge.first_tries.into_values().flatten() {
            let _ = self.manager.free(self.cpu, Pfn(at.into()), self.huge_order);
        }
        for (_, (at, left)) in huge.pieces {
            for p in at..at + left {
                let _ = self.manager.free(self.cpu, Pfn(p.into()), Order::ZERO);
            }
        }
    }
}
