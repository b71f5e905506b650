//! [`Slot`]: what the blocks of an owner share with each other, and with those who call the owner.
//!
//! Invariant: the number of a slot is no other owner's until the slot has gone.

use crate::base::Base;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use unfrag::owners::OwnerId;

/// What the blocks of an owner share, and who calls it. The number is nobody's once all of them have gone.
pub(crate) struct Slot {
    pub base: Arc<Base>,
    pub number: OwnerId,
    /// No other owner of the pool has it, before or after.
    pub serial: u64,
    /// Calls of the owner that run.
    calls: Mutex<u32>,
    ended: Condvar,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // At the end of a pool its owners are there still, and nobody asks for their numbers.
        let _ = self.base.roster.release(self.number);
    }
}

impl Slot {
    pub fn new(base: Arc<Base>, number: OwnerId, serial: u64) -> Slot {
        Slot {
            base,
            number,
            serial,
            calls: Mutex::new(0),
            ended: Condvar::new(),
        }
    }

    /// Waits until no call of the owner runs.
    pub fn wait_for_calls(&self) {
        let mut calls = self.calls.lock();
        self.ended.wait_while(&mut calls, |calls| *calls > 0);
    }
}

/// A call of an owner, until it is dropped.
pub(crate) struct Calling(Arc<Slot>);

impl Calling {
    pub fn new(slot: &Arc<Slot>) -> Calling {
        *slot.calls.lock() += 1;
        Calling(slot.clone())
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        let mut calls = self.0.calls.lock();
        *calls -= 1;
        if *calls == 0 {
            self.0.ended.notify_all();
        }
    }
}
