//! Free page reporting: whole free blocks that a host may take back, each once as long as it stays free.
//!
//! A run of blocks is in use while it is being reported, so that nobody gets a frame of it. When it is given back, its blocks
//! are marked; the mark goes as soon as a block is handed out.
//!
//! Invariant: only whole free blocks are marked.

use super::engine::Engine;
use super::error::GiveError;
use super::map::Map;
use super::sizes::{BLOCK_ORDER, FRAMES, LARGEST_ORDER, MOVABLE};
use super::tables::Entries;
use crate::frame::{MigrateType, Order, Pfn};

/// A free run that was taken to be reported. It is given back once, to the engine that it is of; one that is forgotten leaves
/// its frames in use, until they are given back as any others.
#[derive(Debug)]
#[must_use = "its frames stay in use until it is given back"]
pub struct FreeRun {
    first: Pfn,
    order: Order,
    /// Which of its blocks have been reported before, and stayed free since.
    known: Map,
}

impl FreeRun {
    /// The first frame and the number of frames of each stretch that has not been reported.
    pub fn stretches(&self) -> impl Iterator<Item = (Pfn, u64)> + '_ {
        let blocks = self.blocks().frames();
        let first = (self.first.0 / u64::from(FRAMES)) as u32 % FRAMES;
        let is_known = move |i: u32| self.known.is_free(first + i);
        let mut at = 0;
        core::iter::from_fn(move || {
            let start = (at..blocks).find(|&i| !is_known(i))?;
            let end = (start..blocks).find(|&i| is_known(i)).unwrap_or(blocks);
            at = end;
            let place = Pfn(self.first.0 + u64::from(start * FRAMES));
            Some((place, u64::from((end - start) * FRAMES)))
        })
    }

    fn blocks(&self) -> Order {
        Order(self.order.0 - BLOCK_ORDER.0)
    }
}

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Whether [`take_unreported`](Self::take_unreported) would find a run.
    pub(crate) fn has_unreported(&mut self, order: Order) -> bool {
        self.find_unreported(order).is_some()
    }

    /// A free run of which something has not been reported, and which of its blocks have been.
    fn find_unreported(&mut self, order: Order) -> Option<(u32, Map)> {
        if !(BLOCK_ORDER..=LARGEST_ORDER).contains(&order) {
            return None;
        }
        let blocks = Order(order.0 - BLOCK_ORDER.0);
        self.gigabytes().find_unreported(blocks)
    }

    /// Takes a free run of `2^order` frames, at least [`BLOCK_ORDER`], of which something has not been reported. `None`, if
    /// there is no such run, or if there is none of this order.
    pub fn take_unreported(&mut self, order: Order) -> Option<FreeRun> {
        let (first, known) = self.find_unreported(order)?;
        let blocks = Order(order.0 - BLOCK_ORDER.0);
        self.take_whole_run(first, blocks);
        self.use_whole(first, blocks, MOVABLE);
        self.count_free(-i64::from(order.frames()));
        Some(FreeRun {
            first: self.frame(first * FRAMES),
            order,
            known,
        })
    }

    /// Gives a run back. `reported`: its host knows that it is free, and all of it is marked; else what was marked before
    /// is.
    ///
    /// # Errors
    /// [`GiveError`], if it is not in use as a whole: somebody has freed it meanwhile.
    pub fn give_reported(&mut self, run: FreeRun, reported: bool) -> Result<(), GiveError> {
        self.give(&[run.first.0], run.order, MigrateType::Movable)?;
        let first = self.number(run.first.0).unwrap_or(0) / FRAMES;
        for i in first..first + run.blocks().frames() {
            // One that is being emptied is not free to be had.
            let is_whole = self.of.block(i).is_whole();
            if is_whole && (reported || run.known.is_free(i % FRAMES)) {
                self.gigabytes().mark_reported(i);
            }
        }
        Ok(())
    }
}
