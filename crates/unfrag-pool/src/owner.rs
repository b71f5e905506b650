//! Owners: who can move what they have in frames, or let go of it.

use crate::base::Base;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use unfrag::MigrateType::Movable;
use unfrag::Order;

/// Somebody who has frames and can move what is in them, such as a page cache.
///
/// Both calls come from any thread, with nothing of the pool locked. They may come while another thread of the owner
/// waits in [`Pool::alloc_for`](crate::Pool::alloc_for): an owner that holds a lock which these calls take uses
/// [`try_alloc_for`](crate::Pool::try_alloc_for) under it.
pub trait Owner: Send + Sync {
    /// Moves what `tag` names from the block at frame `from` into `to`: the owner copies it, keeps `to` from now on, and
    /// returns the block that it had.
    ///
    /// # Errors
    /// `to`, if that cannot be moved now: it is pinned, or there no more.
    fn migrate(&self, tag: u32, from: u32, to: Owned) -> Result<Owned, Owned>;

    /// Lets go of about so many frames, those first that it will miss the least. Returns how many it gave back.
    fn reclaim(&self, frames: usize) -> usize {
        let _ = frames;
        0
    }
}

/// Number of an owner in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnerId(pub(crate) u16);

/// A block that an owner has. It is given back when it is dropped.
pub struct Owned {
    base: Arc<Base>,
    frame: u32,
    order: Order,
}

impl Owned {
    pub(crate) fn new(base: Arc<Base>, frame: u32, order: Order) -> Owned {
        Owned { base, frame, order }
    }

    /// The number of its first frame in the pool.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Whoever calls has it from now on: it is not given back.
    pub(crate) fn forget(self) {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: it is not dropped, so this is the only read of the field that counts.
        #[allow(unsafe_code)]
        drop(unsafe { std::ptr::read(&this.base) });
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.base.records.clear(self.frame);
        self.base.free(self.frame, self.order, Movable);
    }
}

impl Deref for Owned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the block is the owner's, who has it by this value.
        #[allow(unsafe_code)]
        unsafe {
            self.base.bytes(self.frame, self.order)
        }
    }
}

impl DerefMut for Owned {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this value is borrowed alone.
        #[allow(unsafe_code)]
        unsafe {
            self.base.bytes_mut(self.frame, self.order)
        }
    }
}

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Owned(frame {:#x}, order {})", self.frame, self.order.0)
    }
}
