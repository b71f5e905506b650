//! Faults that ask for a huge page, whose outcome in the model may differ from the recorded one.
//!
//! A fault tries on its own node first, with little effort (`__GFP_THISNODE|__GFP_NORETRY`), and then anywhere with
//! all effort, if it may wait at all. The two tries are two requests of the recording; the model makes the second one
//! if its own first one fails.
//!
//! A huge page of the model that the recorded task never got is held as one block, as the kernel would hold it: its pieces
//! stand for the small pages that the task took instead, and the block is freed with the last of them, when the task unmaps
//! them or ends. In place of a huge page that the model refuses the task takes as many small pages as the recording
//! shows that it touches ([`Touches`](super::huge_touches::Touches)).
//!
//! Invariant: each piece that stands for a recorded frame belongs to a block of `gained`, which is in use; each block of
//! `gained` has such a piece, or is the one from which its task takes the next.

use super::Sim;
use super::huge_rules::{HugeRules, Silent};
use super::huge_touches::is_small_page;
use super::huge_tries::{Gained, Kept};
use super::tally::FaultWork;
use crate::replay::causes::{HostBlock, NONE};
use unfrag_eras::{Gfp, Pfn};

impl Sim<'_> {
    /// Lets other faults ask for huge pages than did on the recorded host, or with another effort.
    pub fn set_huge_rules(&mut self, rules: HugeRules) {
        self.huge.rules = rules;
    }

    /// A try of a fault; the block is the one that it got on the recorded host.
    #[cold]
    pub(super) fn huge_fault(&mut self, recorded: Option<HostBlock>, mask: Gfp, task: u32) {
        self.close_gained(task);
        if !self.huge.rules.asks(mask) {
            recorded
                .into_iter()
                .for_each(|block| self.small_pages_instead(block, task));
            return;
        }
        let gfp = self.huge.rules.mask(mask);
        let is_first = gfp.contains(Gfp::THISNODE);
        let waits = |gfp: Gfp| gfp.contains(Gfp::DIRECT_RECLAIM);
        let before = self.huge.first_tries.remove(&task);
        let got = match before.flatten() {
            Some(at) if !is_first => Some(at),
            // Of two recorded tries the model makes one, if it may not wait.
            None if !is_first && waits(mask) && !waits(gfp) => None,
            unused => {
                if let Some(at) = unused {
                    self.free_huge(at);
                }
                self.try_huge(gfp, recorded.is_none(), task)
            }
        };
        let has_second = is_first && waits(gfp);
        if is_first && waits(mask) && recorded.is_none() {
            self.huge.first_tries.insert(task, got);
            return;
        }
        let got = got.or_else(|| {
            let second = mask.difference(Gfp::THISNODE | Gfp::NORETRY);
            let second = self.huge.rules.mask(second);
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
            (Some(block), None) => self.small_pages_instead(block, task),
            (None, Some(at)) => {
                self.tally.huge_instead += 1;
                self.huge.open.insert(task, at);
                self.huge.gained.insert(at, Gained::default());
            }
            (None, None) => {}
        }
    }

    /// khugepaged asks for a huge page to collapse small pages to, whose tasks keep them if there is none.
    #[cold]
    pub(super) fn collapse(&mut self, recorded: Option<HostBlock>, gfp: Gfp, task: u32) {
        self.huge.kept = None;
        let asks = self.huge.rules.silent != Silent::All;
        let got = asks.then(|| self.alloc_block(self.huge_order.0, gfp).ok());
        let got = got.flatten().map(|p| p.0 as u32);
        if asks {
            let counts = &mut self.tally.collapses;
            counts.count(got.is_some(), recorded.is_some());
        }
        if got.is_none() && asks {
            let of_huge = (self.huge_order.0, gfp);
            *self.tally.failures.entry(of_huge).or_default() += 1;
            self.tally.failed_in_both += u64::from(recorded.is_none());
        }
        match (recorded, got) {
            (Some(block), Some(at)) => self.allocated(block, gfp, at),
            // The small pages stay that the recorded kernel frees next.
            (Some(block), None) => {
                self.tally.small_instead += 1;
                self.lose(block, self.huge_order.frames());
                self.huge.kept = Some(Kept {
                    task,
                    next: block.pfn,
                    end: block.frames().end,
                });
            }
            // Nobody frees what khugepaged never got.
            (None, Some(at)) => self.free_huge(at),
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

    /// The task takes small pages, as many as it would touch of the huge page.
    fn small_pages_instead(&mut self, block: HostBlock, task: u32) {
        self.tally.small_instead += 1;
        let all = self.huge_order.frames();
        let touched = self.huge.touches.of_task(task, all);
        for pfn in block.frames().take(touched as usize) {
            let small = Gfp::HIGHUSER_MOVABLE | Gfp::COMP | Gfp::ZERO;
            match self.alloc_block(0, small) {
                Ok(Pfn(at)) => self.allocated(HostBlock { pfn, order: 0 }, small, at as u32),
                Err(_) => self.set_model_frame(pfn, NONE),
            }
        }
        self.lose(block, all - touched);
    }

    /// Of the recorded huge page at `block`, nobody has so many pages in the model.
    fn lose(&mut self, block: HostBlock, pages: u32) {
        match pages {
            0 => self.huge.lost.remove(&block.pfn),
            _ => self.huge.lost.insert(block.pfn, pages),
        };
    }

    /// Whether a recorded frame, which stands for none of the model, belongs to a huge page of which some were never
    /// taken. It is one of these then.
    pub(super) fn never_taken(&mut self, pfn: u32) -> bool {
        let first = pfn & !(self.huge_order.frames() - 1);
        let Some(left) = self.huge.lost.get_mut(&first) else {
            return false;
        };
        *left -= 1;
        if *left == 0 {
            self.huge.lost.remove(&first);
        }
        true
    }

    /// Whether a recorded free of a small page is one of those that a refused collapse leaves where they are. It stands
    /// for the next part of the huge page then.
    pub(super) fn keeps(&mut self, pfn: u32, order: u8, task: u32) -> bool {
        let Some(kept) = &mut self.huge.kept else {
            return false;
        };
        if kept.task != task || order != 0 || kept.next == kept.end {
            return false;
        }
        let Some(at) = self.model_frame(pfn) else {
            return false;
        };
        let Some(kept) = &mut self.huge.kept else {
            return false;
        };
        let now = kept.next;
        kept.next += 1;
        self.never_taken(now);
        self.rename(pfn, now, at);
        true
    }

    /// Whether a task may have pieces of a huge page of the model left.
    #[inline]
    pub(super) fn has_huge_pieces(&self) -> bool {
        !self.huge.open.is_empty()
    }

    /// Takes a block from the task's huge page, if it has one. Returns whether it has.
    pub(super) fn alloc_from_huge(&mut self, block: HostBlock, gfp: Gfp, task: u32) -> bool {
        if !is_small_page(block.order, gfp, self.huge_order) {
            return false;
        }
        let Some(&at) = self.huge.open.get(&task) else {
            return false;
        };
        let Some(gained) = self.huge.gained.get_mut(&at) else {
            return false;
        };
        let pages = 1 << block.order;
        let piece = gained.given.next_multiple_of(pages);
        if piece + pages > self.huge_order.frames() {
            self.close_gained(task);
            return false;
        }
        gained.given = piece + pages;
        gained.in_use += pages;
        for (i, pfn) in block.frames().enumerate() {
            self.set_model_frame(pfn, at + piece + i as u32);
        }
        true
    }

    /// The task takes no more pieces of its huge page.
    fn close_gained(&mut self, task: u32) {
        if let Some(at) = self.huge.open.remove(&task) {
            let unused = self.huge.gained.get(&at).is_some_and(|g| g.in_use == 0);
            // The trace shows nothing that the task did with it, so nothing would show its end.
            if unused {
                self.huge.gained.remove(&at);
                self.free_huge(at);
            }
        }
    }

    /// A recorded free gives a piece of a gained huge page back. Returns whether the page had one in use: a free of a frame
    /// that stands for none of its pieces takes nothing from it.
    pub(super) fn free_piece(&mut self, at: u32) -> bool {
        let first = at & !(self.huge_order.frames() - 1);
        let Some(gained) = self.huge.gained.get_mut(&first) else {
            return false;
        };
        let Some(left) = gained.in_use.checked_sub(1) else {
            return false;
        };
        gained.in_use = left;
        if left == 0 {
            self.huge.gained.remove(&first);
            self.huge.open.retain(|_, open| *open != first);
            self.free_huge(first);
        }
        true
    }

    /// Whether a frame of the model is a piece of a gained huge page.
    pub(super) fn is_piece(&self, at: u32) -> bool {
        let first = at & !(self.huge_order.frames() - 1);
        self.huge.gained.contains_key(&first)
    }

    fn free_huge(&mut self, at: u32) {
        self.free_block(at, self.huge_order.0);
    }

    /// Frees the huge pages that no recorded fault took, and those that no small page was taken from, so that none is
    /// lost.
    pub fn free_huge_pieces(&mut self) {
        for at in std::mem::take(&mut self.huge.first_tries).into_values() {
            at.into_iter().for_each(|at| self.free_huge(at));
        }
        for task in self.huge.open.keys().copied().collect::<Vec<_>>() {
            self.close_gained(task);
        }
    }
}
