//! Compaction: an [`Evacuator`], and the owners who move what is in its way.
//!
//! Several threads may compact at once, each with blocks of its own: nobody waits for another one's owners.

use crate::calls;
use crate::handles::HANDLES;
use crate::inner::Inner;
use crate::memory::Lock;
use crate::owner::Place;
use crate::settings::{self, DIRECT};
use crate::space::FRAME_BYTES;
use std::sync::atomic::Ordering::Relaxed;
use unfrag::moves::{Evacuator, Goal, Limits, Move, Outcome};
use unfrag::owners::Owned as Record;
use unfrag::{Order, Pfn};

impl Inner {
    /// Makes up to `wanted` whole free blocks. Returns how many it made: none, for an owner that is being called.
    pub fn compact(&self, wanted: u32, limits: Limits) -> u32 {
        self.evacuate(Goal::Blocks(wanted), limits).gained()
    }

    /// Makes a free block of an order for an allocation that found none, unless somebody has made one meanwhile. True, if
    /// there is one.
    pub fn compact_for(&self, order: Order) -> bool {
        if order <= Order::HUGE {
            return self.base.memory.whole_blocks() > 0 || self.compact(1, DIRECT) > 0;
        }
        // The run is free when this ends, for who is the first.
        let e = self.evacuate(Goal::Run(order), settings::run(order));
        e.outcome() == Outcome::Reached
    }

    /// Empties blocks until a goal is reached, or the pool ends; none, for an owner that is being called.
    pub fn evacuate(&self, goal: Goal, limits: Limits) -> Evacuator<'_, 'static, Lock> {
        let mut e = Evacuator::new(&self.base.memory.shared, goal, limits);
        // What has no record, or one of an owner that has gone, is nobody's who could move it.
        let order_of = |p: Pfn| {
            let record = self.base.records.get(p)?;
            let is_there = record.owner == HANDLES || self.base.roster.is_there(record.owner);
            is_there.then_some(record.order)
        };
        while !calls::is_inside()
            && !self.stops.load(Relaxed)
            && let Move::Frame(from) = e.step_if(order_of)
        {
            self.relocate(&mut e, from);
        }
        e
    }

    /// Moves the block at a frame, if its owner can.
    fn relocate(&self, e: &mut Evacuator<'_, '_, Lock>, from: Pfn) {
        let record = self.base.records.get(from);
        let place = record.and_then(|r| e.place(r.order));
        if let (Some(record), Some(place)) = (record, place)
            && self.migrate(record, from, place.pfn())
        {
            place.into_pfn();
            let frames = record.order.frames();
            self.events.pgmigrate_success.add(frames.into());
            // SAFETY: its owner has the new place, and gave the old one up.
            #[allow(unsafe_code)]
            let old = unsafe { e.moved(from, record.order) };
            if old.is_err() {
                self.base.memory.count_refused();
            }
            return;
        }
        self.events.pgmigrate_fail.add(1);
    }

    /// Moves the block of a record from a frame to another. False, if it stays.
    fn migrate(&self, record: Record, from: Pfn, to: Pfn) -> bool {
        if record.owner != HANDLES {
            return self.migrate_owned(record, from, to);
        }
        let (at, new) = (from.0 as u32, to.0 as u32);
        self.handles.migrate(record.tag, at, new, || {
            // It is as it was read before nobody could hold it: another block may have come in between.
            let is_same = self.base.records.moved(from, to, record).is_ok();
            if is_same {
                self.copy(at, new, record.order);
            }
            is_same
        })
    }

    /// Has an owner move a block.
    fn migrate_owned(&self, record: Record, from: Pfn, to: Pfn) -> bool {
        let Some((owner, _calling)) = self.owners.begin(record.owner) else {
            return false;
        };
        let mut moved = false;
        let place = Place::new(&self.base, from, to, record.order, &mut moved);
        // A panic after the move changes nothing: the block says where it is. The owner is dropped within, as the pool may
        // have ended meanwhile and this be the last of it.
        let migrate = move || owner.migrate(record.tag, place);
        let _ = calls::call(&self.events.owner_panic, migrate);
        moved
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
