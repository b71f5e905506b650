//! The owners of a pool: who they are, who is being called, and what becomes of the number of one that has gone.
//!
//! Invariants: an owner is called only while it is counted as called, which it is not any more once it has been removed. A
//! number is another owner's only after the last block of the one before has gone: each block holds on to the [`Slot`].

use crate::base::Base;
use crate::owner::{Owner, OwnerId};
use crate::slot::{Calling, Slot};
use parking_lot::RwLock;
use std::sync::Arc;
use unfrag::owners as engine;

/// An owner that is there.
struct Entry {
    slot: Arc<Slot>,
    owner: Arc<dyn Owner>,
}

/// The owners of a pool, by number.
#[derive(Default)]
pub(crate) struct Registry(RwLock<List>);

#[derive(Default)]
struct List {
    of: Vec<Option<Entry>>,
    serial: u64,
}

impl List {
    fn get(&self, number: engine::OwnerId) -> Option<&Entry> {
        self.of.get(usize::from(number.0))?.as_ref()
    }
}

impl Registry {
    /// Adds an owner.
    ///
    /// # Errors
    /// It gives the owner back, if there are no more numbers.
    pub fn add(&self, base: &Arc<Base>, owner: Arc<dyn Owner>) -> Result<OwnerId, Arc<dyn Owner>> {
        let mut list = self.0.write();
        let Ok(number) = base.roster.add() else {
            return Err(owner);
        };
        list.serial += 1;
        let slot = Slot::new(base.clone(), number, list.serial);
        let id = OwnerId {
            pool: base.memory.id,
            number,
            serial: slot.serial,
        };
        let at = usize::from(number.0);
        let len = list.of.len().max(at + 1);
        list.of.resize_with(len, || None);
        list.of[at] = Some(Entry {
            slot: Arc::new(slot),
            owner,
        });
        Ok(id)
    }

    /// What the blocks of an owner share; `None`, if it is not there, or another pool's.
    pub fn slot(&self, id: OwnerId) -> Option<Arc<Slot>> {
        let list = self.0.read();
        let slot = &list.get(id.number)?.slot;
        (slot.base.memory.id == id.pool && slot.serial == id.serial).then(|| slot.clone())
    }

    /// Removes an owner: no call of it begins from now on. Returns it, and what it is that calls may still run of.
    pub fn remove(&self, id: OwnerId) -> Option<(Arc<dyn Owner>, Arc<Slot>)> {
        let mut list = self.0.write();
        let entry = list.of.get_mut(usize::from(id.number.0))?;
        let is_it = |e: &Entry| e.slot.base.memory.id == id.pool && e.slot.serial == id.serial;
        if !entry.as_ref().is_some_and(is_it) {
            return None;
        }
        let Entry { slot, owner } = entry.take()?;
        drop(list);
        let gone = slot.base.roster.remove(id.number);
        debug_assert!(gone.is_ok(), "an owner that is listed is in the roster");
        Some((owner, slot))
    }

    /// Begins a call of an owner, if it is there.
    pub fn begin(&self, number: engine::OwnerId) -> Option<(Arc<dyn Owner>, Calling)> {
        let list = self.0.read();
        let entry = list.get(number)?;
        // Under the lock of the list: who removes the owner sees the call.
        Some((entry.owner.clone(), Calling::new(&entry.slot)))
    }

    /// The pool ends: all owners go.
    pub fn clear(&self) {
        let all = std::mem::take(&mut self.0.write().of);
        // They may have frames, which have the pool: with nothing locked.
        drop(all);
    }
}
