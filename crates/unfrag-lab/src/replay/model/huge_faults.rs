//! Faults that ask for a huge page, whose outcome in the model may differ from the recorded one.
//!
//! A fault tries on its own node first, with little effort (`__GFP_THISNODE|__GFP_NORETRY`), and then anywhere with
//! all effort, if it may wait at all. The two tries are two requests of the recording; the model makes the second one
//! if its own first one fails.
//!
//! Invariant: a huge page of the model that the recorded task never got is cut into the small pages that it took
//! instead, and the other way round, so that both hosts hold the same pages.

use super::Sim;
use crate::replay::causes::{HostBlock, NONE};
use std::collections::BTreeMap;
use unfrag::{Gfp, Order, Pfn};

/// Order of a huge page.
const HUGE: u8 = 9;
const HUGE_PAGES: u32 = 1 << HUGE;

/// Faults under way.
#[derive(Debug, Default)]
pub(super) struct HugeFaults {
    /// By task: a fault whose first try the recorded kernel refused, and the block that the model gave it, if it did.
    first_tries: BTreeMap<u32, Option<u32>>,
    /// By task: a huge page of the model in place of small pages on the recorded host: model frame of the next
    /// piece, and pieces left.
    pieces: BTreeMap<u32, (u32, u32)>,
}

/// How many faults got a huge page, and how many did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugeFaultCounts {
    /// Faults that got one in the model (`thp_fault_alloc`).
    pub alloc: u64,
    /// Faults that got none in the model (`thp_fault_fallback`).
    pub fallback: u64,
    /// Faults that got one on the recorded host.
    pub alloc_recorded: u64,
    /// Faults that got none on the recorded host.
    pub fallback_recorded: u64,
    /// Faults that got one on both.
    pub alloc_both: u64,
}

impl HugeFaultCounts {
    fn count(&mut self, model: bool, recorded: bool) {
        self.alloc += u64::from(model);
        self.fallback += u64::from(!model);
        self.alloc_recorded += u64::from(recorded);
        self.fallback_recorded += u64::from(!recorded);
        self.alloc_both += u64::from(model && recorded);
    }
}

/// Whether a request is a try of a fault that asks for a huge page.
pub(super) fn is_huge(order: u8, gfp: Gfp) -> bool {
    order == HUGE && gfp.contains(Gfp::MOVABLE)
}

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
                    let _ = self.manager.free(self.cpu, Pfn(at.into()), Order(HUGE));
                }
                self.try_huge(gfp, recorded.is_none())
            }
        };
        let has_second = is_first && gfp.contains(Gfp::DIRECT_RECLAIM);
        if has_second && recorded.is_none() {
            self.huge.first_tries.insert(task, got);
            return;
        }
        let got = got.or_else(|| {
            let second = gfp.difference(Gfp::THISNODE | Gfp::NORETRY);
            has_second.then(|| self.try_huge(second, false)).flatten()
        });
        self.tally
            .huge_faults
            .count(got.is_some(), recorded.is_some());
        match (recorded, got) {
            (Some(block), Some(at)) => self.allocated(block, gfp, at),
            (Some(block), None) => self.small_pages_instead(block),
            (None, Some(at)) => {
                self.tally.huge_instead += 1;
                let _ = self.manager.split(Pfn(at.into()), Order(HUGE), Order::ZERO);
                self.huge.pieces.insert(task, (at, HUGE_PAGES));
            }
            (None, None) => {}
        }
    }

    fn try_huge(&mut self, gfp: Gfp, failed_there: bool) -> Option<u32> {
        let got = self.alloc_block(HUGE, gfp).ok();
        if got.is_none() {
            *self.tally.failures.entry((HUGE, gfp)).or_default() += 1;
            self.tally.failed_in_both += u64::from(failed_there);
        }
        got.map(|p| p.0 as u32)
    }

    fn small_pages_instead(&mut self, block: HostBlock) {
        self.tally.small_instead += 1;
        for i in 0..HUGE_PAGES {
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
            let _ = self.manager.free(self.cpu, Pfn(at.into()), Order(HUGE));
        }
        for (_, (at, left)) in huge.pieces {
            for p in at..at + left {
                let _ = self.manager.free(self.cpu, Pfn(p.into()), Order::ZERO);
            }
        }
    }
}
