//! What a `Local` shows to others: cache lines that it alone writes, but for the call home.

use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// The slot of a [`Local`](crate::local::Local).
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Slot {
    /// Single frames that an array may keep; 0 calls all of them home.
    limit: AtomicU32,
    /// Frames that it keeps, as of the last batch.
    held: AtomicU32,
    taken: AtomicU32,
    pad: [u32; 29],
}

const _: () = assert!(
    size_of::<Slot>() == 128,
    "two cache lines: they are fetched in pairs"
);

impl Slot {
    /// Becomes the slot of a `Local`; false, if it is another one's.
    pub fn claim(&self, limit: u32) -> bool {
        // Acquire pairs with the release in `release`: what the last owner wrote here comes before what this one does.
        let claimed = self.taken.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        if claimed {
            // Relaxed: a call home that is lost, or obeyed in vain, costs nothing but a flush.
            self.limit.store(limit, Relaxed);
        }
        claimed
    }

    /// Is nobody's any more.
    pub fn release(&self) {
        self.held.store(0, Relaxed);
        // Pairs with the acquire in `claim`.
        self.taken.store(0, Release);
    }

    /// How many single frames an array may keep.
    #[inline]
    pub fn limit(&self) -> u32 {
        // Relaxed: it is only a number, and heeding it one free later is soon enough.
        self.limit.load(Relaxed)
    }

    pub fn set_limit(&self, limit: u32) {
        // Relaxed, as in `limit`.
        self.limit.store(limit, Relaxed);
    }

    /// Has all frames given back at the next free.
    pub fn call_home(&self) {
        // Both relaxed, as in `limit`; nothing else is read of a slot that is taken.
        if self.taken.load(Relaxed) != 0 {
            self.limit.store(0, Relaxed);
        }
    }

    pub fn held(&self) -> u32 {
        // Relaxed: for others a number that is out of date anyway.
        self.held.load(Relaxed)
    }

    /// Counts frames that it keeps in addition, or fewer. Only its `Local` does.
    pub fn add_held(&self, frames: i32) {
        // A load and a store, not one operation: nobody else writes it. Relaxed, as in `held`.
        let held = self.held().wrapping_add_signed(frames);
        self.held.store(held, Relaxed);
    }
}
