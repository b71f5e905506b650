//! What threads share of free memory before it goes back to slabs and frames: batches of each class, behind a lock for each.
//!
//! A thread that has none left takes a batch, one that has too many puts one. So memory that one thread takes and another
//! frees goes round by one lock a batch, without a look at the slabs that it is from.
//!
//! Invariant: what is in the depot is free, marked as such, and nobody else's. No other lock is taken while one of these is held.

use super::classes::{CLASSES, MOST_BATCH, batch_of, bytes_of, shared_of};
use super::ground::{leak, system_memory};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Milliseconds for which batches must not have been needed before they are given up.
const IDLE: u64 = 100;

/// The batches of a class.
struct Batches {
    /// Room for all of them, one after the other.
    room: NonNull<NonNull<u8>>,
    count: usize,
    /// The fewest since `since`, in milliseconds of the system's clock.
    fewest: usize,
    since: u64,
}

// SAFETY: the room is reached through the lock alone.
unsafe impl Send for Batches {}

impl Batches {
    /// # Safety
    /// There is room for a batch of this length, which is that of the class, at `to`.
    unsafe fn take_last(&mut self, len: usize, to: NonNull<NonNull<u8>>) -> bool {
        let Some(left) = self.count.checked_sub(1) else {
            return false;
        };
        self.count = left;
        self.fewest = self.fewest.min(left);
        // SAFETY: the last batch is there; the caller has room for it.
        unsafe { to.copy_from_nonoverlapping(self.room.add(left * len), len) };
        true
    }

    fn take_batch(&mut self, class: usize) -> Option<Batch> {
        let mut batch = Batch::empty();
        let to = NonNull::from(&mut batch.memory).cast();
        // SAFETY: a batch has room for the longest.
        if !unsafe { self.take_last(batch_of(class), to) } {
            return None;
        }
        batch.count = batch_of(class);
        Some(batch)
    }
}

/// A batch on its way.
pub(super) struct Batch {
    memory: [MaybeUninit<NonNull<u8>>; MOST_BATCH],
    count: usize,
}

impl Batch {
    /// What is in it.
    pub fn memory(&self) -> &[NonNull<u8>] {
        // SAFETY: so many are written.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.count) }
    }

    fn empty() -> Batch {
        Batch {
            memory: [const { MaybeUninit::uninit() }; MOST_BATCH],
            count: 0,
        }
    }
}

/// The depot.
pub(super) struct Depot {
    classes: [Mutex<Batches>; CLASSES],
}

/// The locks of the depot, held.
pub(super) struct Held {
    _classes: [MutexGuard<'static, Batches>; CLASSES],
}

impl Depot {
    /// An empty one; `None` if the system has no memory for its room.
    pub fn new() -> Option<&'static Depot> {
        let places: usize = (0..CLASSES).map(|c| shared_of(c) * batch_of(c)).sum();
        let mut room = system_memory(places * size_of::<NonNull<u8>>())?.cast();
        leak(Depot {
            classes: std::array::from_fn(|class| {
                let batches = Batches {
                    room,
                    count: 0,
                    fewest: 0,
                    since: 0,
                };
                // SAFETY: the room is that long.
                room = unsafe { room.add(shared_of(class) * batch_of(class)) };
                Mutex::new(batches)
            }),
        })
    }

    fn lock(&self, class: usize) -> MutexGuard<'_, Batches> {
        let lock = self.classes[class].lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a batch of a class; false if there is no room for it.
    pub fn put(&self, class: usize, batch: &[NonNull<u8>]) -> bool {
        debug_assert_eq!(batch.len(), batch_of(class));
        let mut batches = self.lock(class);
        if batches.count >= shared_of(class) {
            return false;
        }
        // SAFETY: the room has a place for so many batches, and this one is not taken.
        unsafe {
            let to = batches.room.add(batches.count * batch.len());
            to.copy_from_nonoverlapping(NonNull::from(batch).cast(), batch.len());
        }
        batches.count += 1;
        true
    }

    /// Takes a batch of a class; false if there is none.
    ///
    /// # Safety
    /// There is room for a batch at `to`.
    pub unsafe fn take(&self, class: usize, to: NonNull<NonNull<u8>>) -> bool {
        let mut batches = self.lock(class);
        // SAFETY: as the caller says.
        unsafe { batches.take_last(batch_of(class), to) }
    }

    /// As [`take`](Depot::take), for a caller without room of its own.
    pub fn take_batch(&self, class: usize) -> Option<Batch> {
        self.lock(class).take_batch(class)
    }

    /// A batch of a class that nobody needed for some time, to be given up. It is a step of a bounded length: whoever calls it from
    /// time to time for each class has them all.
    pub fn take_idle(&self, class: usize, now: u64) -> Option<Batch> {
        let mut batches = self.lock(class);
        if now.wrapping_sub(batches.since) < IDLE {
            return None;
        }
        let Some(left) = batches.fewest.checked_sub(1) else {
            (batches.fewest, batches.since) = (batches.count, now);
            return None;
        };
        let batch = batches.take_batch(class);
        batches.fewest = left;
        batch
    }

    /// Bytes of what is in it.
    pub fn bytes(&self) -> u64 {
        let of = |class: usize| self.lock(class).count * batch_of(class) * bytes_of(class);
        (0..CLASSES).map(|class| of(class) as u64).sum()
    }

    /// Takes all locks, for a fork.
    pub fn hold(&'static self) -> Held {
        Held {
            _classes: std::array::from_fn(|class| self.lock(class)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;

    fn batch(class: usize, from: usize) -> Vec<NonNull<u8>> {
        let address = |n: usize| {
            let address = NonZero::new(from + n).expect("not zero");
            NonNull::without_provenance(address)
        };
        (1..=batch_of(class)).map(address).collect()
    }

    #[test]
    fn what_is_put_is_taken_in_turns_and_no_more_than_there_is_room_for() {
        let depot = Depot::new().expect("memory");
        for class in 1..CLASSES {
            let of = |n: usize| batch(class, n << 20 | class << 10);
            assert!(depot.take_batch(class).is_none());
            for n in 0..shared_of(class) {
                assert!(depot.put(class, &of(n)));
            }
            assert!(!depot.put(class, &of(0)), "it is full");
        }
        for class in 1..CLASSES {
            for n in (0..shared_of(class)).rev() {
                let taken = depot.take_batch(class).expect("a batch");
                assert_eq!(taken.memory(), batch(class, n << 20 | class << 10));
            }
            assert!(depot.take_batch(class).is_none());
        }
        assert_eq!(depot.bytes(), 0);
    }

    #[test]
    fn batches_that_nobody_needs_are_given_up_after_a_while() {
        let depot = Depot::new().expect("memory");
        for n in 0..3 {
            assert!(depot.put(5, &batch(5, n << 10)));
        }
        assert!(depot.take_idle(5, 1000).is_none(), "the first look");
        assert!(depot.take_batch(5).is_some());
        assert!(depot.put(5, &batch(5, 7 << 10)));
        assert!(depot.take_idle(5, 1000 + IDLE - 1).is_none(), "too early");
        // Two of the three were there all the time.
        assert!(depot.take_idle(5, 1000 + IDLE).is_some());
        assert!(depot.take_idle(5, 1001 + IDLE).is_some());
        assert!(depot.take_idle(5, 1002 + IDLE).is_none());
        assert_eq!(depot.bytes(), (batch_of(5) * bytes_of(5)) as u64);
    }
}
