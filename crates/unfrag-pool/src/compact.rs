//! Compaction: an [`Evacuator`] for each node, and the owners who move what is in its way.

use crate::handles::HANDLES;
use crate::inner::Inner;
use crate::memory::Node;
use crate::owner::Owned;
use crate::record::Record;
use crate::settings::{Cost, DIRECT};
use crate::space::FRAME_BYTES;
use unfrag::Order;
use unfrag::shared::{Evacuator, Move, Moved};

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
            let mut e = Evacuator::new(wanted - gained, cost.copies, cost.most);
            let mut answer = Moved::Go;
            loop {
                match e.step(&node.shared, answer) {
                    Ok(Move::Frame(from)) => answer = self.relocate(node, &e, from.0 as u32),
                    Ok(Move::Done) => break,
                    Ok(_) => answer = Moved::Stays,
                    Err(_) => {
                        self.base.memory.count_refused();
                        answer = Moved::Go;
                    }
                }
            }
            gained += e.gained();
            if gained >= wanted {
                break;
            }
        }
        gained
    }

    /// Moves the block at a frame, if its owner can.
    fn relocate(&self, node: &Node, e: &Evacuator, from: u32) -> Moved {
        let record = self.base.records.of(from);
        let place = record.and_then(|r| e.place(&node.shared, r.order));
        if let (Some(record), Some(to)) = (record, place) {
            match self.migrate(record, from, to.0 as u32) {
                Outcome::Moved => {
                    let frames = record.order.frames();
                    self.events.pgmigrate_success.add(frames.into());
                    return Moved::Away(record.order);
                }
                Outcome::Stays => {
                    let back = e.put_back(&node.shared, to, record.order);
                    if back.is_err() {
                        self.base.memory.count_refused();
                    }
                }
                Outcome::Kept => {}
            }
        }
        self.events.pgmigrate_fail.add(1);
        // It may be one that a thread keeps: it is given back with that thread's next free.
        node.shared.call_home();
        Moved::Stays
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
