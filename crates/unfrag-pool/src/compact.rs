//! Compaction: an [`Evacuator`] for each node, and the owners who move what is in its way.

use crate::handles::HANDLES;
use crate::inner::Inner;
use crate::memory::{Lock, Node};
use crate::owner::Owned;
use crate::record::Record;
use crate::settings::{Cost, DIRECT};
use crate::space::FRAME_BYTES;
use unfrag::shared::{Evacuator, Move};
use unfrag::{Order, Pfn};

impl Inner {
    /// Makes up to `wanted` whole free blocks. Returns how many it made.
    pub fn compact(&self, wanted: u32, cost: Cost) -> u32 {
        let _one = self.compacting.lock();
        self.evacuate(wanted, cost)
    }

    /// Makes a whole free block for an allocation that found none, unless somebody has made one meanwhile. True, if there
    /// is one.
    pub fn compact_unless_whole(&self) -> bool {
        let _one = self.compacting.lock();
        self.base.memory.whole_blocks() > 0 || self.evacuate(1, DIRECT) > 0
    }

    /// Makes whole free blocks. The caller has the lock.
    fn evacuate(&self, wanted: u32, cost: Cost) -> u32 {
        let mut gained = 0;
        for node in &self.base.memory.nodes {
            let mut e = Evacuator::new(&node.shared, wanted - gained, cost.copies, cost.most);
            while let Move::Frame(from) = e.step() {
                self.relocate(node, &mut e, from.0 as u32);
            }
            gained += e.gained();
            if gained >= wanted {
                break;
            }
        }
        gained
    }

    /// Moves the block at a frame, if its owner can.
    fn relocate(&self, node: &Node, e: &mut Evacuator<'_, '_, Lock>, from: u32) {
        let record = self.base.records.of(from);
        let place = record.and_then(|r| e.place(r.order));
        if let (Some(record), Some(place)) = (record, place) {
            match self.migrate(record, from, place.pfn().0 as u32) {
                Outcome::Moved => {
                    let frames = record.order.frames();
                    self.events.pgmigrate_success.add(frames.into());
                    place.into_pfn();
                    // SAFETY: its owner has the new place, and gave the old one up.
                    #[allow(unsafe_code)]
                    let old = unsafe { e.moved(Pfn(from.into()), record.order) };
                    if old.is_err() {
                        self.base.memory.count_refused();
                    }
                    return;
                }
                Outcome::Stays => drop(place),
                Outcome::Kept => drop(place.into_pfn()),
            }
        }
        self.events.pgmigrate_fail.add(1);
        // It may be one that a thread keeps: it is given back with that thread's next free.
        node.shared.call_home();
    }

    /// Has an owner move a block.
    fn migrate(&self, record: Record, from: u32, to: u32) -> Outcome {
        self.base.records.set(to, record);
        let outcome = if record.owner == HANDLES {
            let copy = || self.copy(from, to, record.order);
            if self.handles.migrate(record.tag, from, to, copy) {
                Outcome::Moved
            } else {
                Outcome::Stays
            }
        } else {
            self.migrate_owned(record, from, to)
        };
        match outcome {
            Outcome::Moved => drop(self.base.records.clear(from)),
            Outcome::Stays => drop(self.base.records.clear(to)),
            Outcome::Kept => {}
        }
        outcome
    }

    fn migrate_owned(&self, record: Record, from: u32, to: u32) -> Outcome {
        let owner = self.owners.read().get(usize::from(record.owner)).cloned();
        let Some(owner) = owner else {
            return Outcome::Stays;
        };
        let place = Owned::new(self.base.clone(), to, record.order);
        match owner.migrate(record.tag, from, place) {
            Ok(old) if old.frame() == from && old.order() == record.order => {
                old.forget();
                Outcome::Moved
            }
            Err(place) if place.frame() == to => {
                place.forget();
                Outcome::Stays
            }
            // It gave another block than the one that it was asked for: that one is free now, and it has `to`.
            Ok(other) | Err(other) => {
                drop(other);
                Outcome::Kept
            }
        }
    }

    /// Copies a block.
    fn copy(&self, from: u32, to: u32, order: Order) {
        let (from, to) = (self.base.space.at(from), self.base.space.at(to));
        // SAFETY: both are blocks in use: one nobody may touch while it is being moved, the other one is ours.
        #[allow(unsafe_code)]
        unsafe {
            to.copy_from_nonoverlapping(from, FRAME_BYTES << order.0);
        }
    }
}

/// What became of a block that should move.
enum Outcome {
    Moved,
    /// It stays, and its new place is ours still.
    Stays,
    /// It stays, and its owner has the new place for something else.
    Kept,
}
