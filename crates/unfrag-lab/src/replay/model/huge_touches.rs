//! How many small pages a task takes after a fault that got no huge page.
//!
//! The trace of a host shows nothing of what a task touches of a huge page that it has. It does show what a task takes one
//! by one where it got none: of that follows what it would take of a huge page that the model refuses.
//!
//! Invariant: what a task took is counted up to its next fault for a huge page, and up to the pages of one.

use crate::error::Result;
use crate::replay::causes::{Action, Causes, is_huge_page};
use std::collections::BTreeMap;
use unfrag_eras::{Gfp, Order};

/// Whether a request of an order below that of a huge page is one for a page of a process that a fault fills.
#[inline]
pub(super) fn is_small_page(order: u8, gfp: Gfp, huge: Order) -> bool {
    order < huge.0 && gfp.contains(Gfp::HIGHUSER_MOVABLE.union(Gfp::ZERO))
}

/// What tasks took after faults that got no huge page.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    /// By task: the middle of its faults.
    by_task: BTreeMap<u32, u32>,
    /// The middle of all faults, if there was any.
    any: Option<u32>,
}

impl Touches {
    /// Of all operations of a recording.
    ///
    /// # Errors
    /// If the operations cannot be read.
    pub fn of(causes: &Causes, huge: Order) -> Result<Touches> {
        let mut walk = Walk {
            huge,
            ..Walk::default()
        };
        causes.ops.each(0..causes.ops.len(), |_, op| {
            let (order, gfp, got) = match op.action {
                Action::AllocFailed { order, gfp } => (order, gfp.get(), false),
                _ => match op.allocated() {
                    Some((block, gfp)) => (block.order, gfp, true),
                    None => return,
                },
            };
            if is_huge_page(order, gfp, huge) && !causes.collapses(op.task) {
                walk.fault(op.task, got);
            } else if got && is_small_page(order, gfp, huge) {
                walk.small(op.task, order);
            }
        })?;
        Ok(walk.end())
    }

    /// Small pages that a task takes in place of a huge page: as many as after most of its faults that got none, or else
    /// after most of all tasks'. Where no fault of the recording went without, all of `huge` are.
    pub(super) fn of_task(&self, task: u32, huge: u32) -> u32 {
        let known = self.by_task.get(&task).copied().or(self.any);
        known.map_or(huge, |n| n.min(huge))
    }
}

#[derive(Default)]
struct Walk {
    huge: Order,
    /// By task: small pages since a fault that got no huge page.
    since: BTreeMap<u32, u32>,
    /// By task: small pages of each such fault.
    taken: BTreeMap<u32, Vec<u32>>,
}

impl Walk {
    fn fault(&mut self, task: u32, got: bool) {
        self.close(task);
        if !got {
            self.since.insert(task, 0);
        }
    }

    fn small(&mut self, task: u32, order: u8) {
        if let Some(n) = self.since.get_mut(&task) {
            *n = (*n + (1 << order)).min(self.huge.frames());
        }
    }

    /// A fault's second try comes before any small page: the first one alone says nothing.
    fn close(&mut self, task: u32) {
        if let Some(n) = self.since.remove(&task).filter(|&n| n > 0) {
            self.taken.entry(task).or_default().push(n);
        }
    }

    fn end(mut self) -> Touches {
        for task in self.since.keys().copied().collect::<Vec<_>>() {
            self.close(task);
        }
        let mut all: Vec<u32> = self.taken.values().flatten().copied().collect();
        let by_task = self.taken.into_iter();
        Touches {
            any: middle(&mut all),
            by_task: by_task
                .filter_map(|(task, mut n)| Some((task, middle(&mut n)?)))
                .collect(),
        }
    }
}

fn middle(of: &mut [u32]) -> Option<u32> {
    of.sort_unstable();
    of.get(of.len() / 2).copied()
}
