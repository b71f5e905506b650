//! Owners: who can move what they have in frames, or let go of it.
//!
//! Invariant: for each block of a pool that an owner has there is one [`Owned`], which says where it is. A [`Place`] moves
//! that very value: nothing that an owner returns says which block has moved.

use crate::base::Base;
use crate::slot::Slot;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use unfrag::MigrateType::Movable;
use unfrag::{Order, Pfn, owners};

/// Somebody who has frames and can move what is in them, such as a page cache.
///
/// # When it is called
/// By the pool's daemons, and by threads whose request finds too little: at any time, from several threads at once, for the
/// same tag too. Nothing of the pool is locked meanwhile, and other threads go on; a call may take long, but the daemon or
/// the request that made it waits for it, and so does whoever drops the pool.
///
/// # What it may do
/// Anything, with this and with other pools: allocate, free what it has, register owners, [`release`](crate::Pool::release),
/// drop the pool. A thread that runs a call of an owner neither reclaims, compacts nor waits in a pool: a request is served from
/// what is free, or gets its error at once, and [`compact`](crate::Pool::compact) makes nothing. So no call leads to another
/// one on its thread. Threads that an owner has work for it are not known to the pool: there it uses the forms with `try_`.
///
/// A lock that the calls take must not be held by a thread that waits for the pool: one in [`alloc`](crate::Pool::alloc) and
/// its like, in [`compact`](crate::Pool::compact) or in [`remove_owner`](crate::Pool::remove_owner), or that drops the pool. Under
/// such a lock, use
/// [`try_alloc_for`](crate::Pool::try_alloc_for).
///
/// # If it panics
/// The panic ends with the call, which counts as one that moved nothing more and gave nothing back. `owner_panic` of
/// [`Stats::events`](crate::Stats::events) counts it, and the owner is called again at the next occasion.
pub trait Owner: Send + Sync {
    /// Moves what `tag` names into `place`, unless that cannot be moved now: it is pinned, or there no more.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use unfrag_pool::{Owned, Owner, Place};
    ///
    /// struct Table(Mutex<Vec<Option<Owned>>>);
    ///
    /// impl Owner for Table {
    ///     fn migrate(&self, tag: u32, place: Place<'_>) {
    ///         let mut table = self.0.lock().expect("nobody panics under it");
    ///         if let Some(Some(block)) = table.get_mut(tag as usize) {
    ///             place.carry(block);
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// The place belongs to this call. It cannot be kept:
    ///
    /// ```compile_fail,E0521
    /// use std::sync::Mutex;
    /// use unfrag_pool::{Owner, Place};
    ///
    /// struct Keeps(Mutex<Vec<Place<'static>>>);
    ///
    /// impl Owner for Keeps {
    ///     fn migrate(&self, _tag: u32, place: Place<'_>) {
    ///         self.0.lock().expect("no panic").push(place);
    ///     }
    /// }
    /// ```
    fn migrate(&self, tag: u32, place: Place<'_>);

    /// Lets go of about so many frames, those first that it will miss the least. Returns how many it gave back.
    fn reclaim(&self, frames: usize) -> usize {
        let _ = frames;
        0
    }
}

/// Number of an owner, in the pool that it is registered with: another pool does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnerId {
    /// Each pool of the process has a number of its own.
    pub(crate) pool: u64,
    pub(crate) number: owners::OwnerId,
    /// Owners that have the number one after the other differ in this.
    pub(crate) serial: u64,
}

/// A block that an owner has. It is given back when it is dropped.
pub struct Owned {
    slot: Arc<Slot>,
    frame: u32,
    order: Order,
}

impl Owned {
    /// A block that the caller took for the owner of a slot.
    pub(crate) fn new(slot: Arc<Slot>, frame: u32, order: Order, tag: u32) -> Owned {
        let record = owners::Owned {
            owner: slot.number,
            order,
            tag,
        };
        // A block that was taken has words.
        let set = slot.base.records.set(Pfn(frame.into()), record);
        debug_assert_eq!(set, Ok(()));
        Owned { slot, frame, order }
    }

    #[inline]
    fn base(&self) -> &Arc<Base> {
        &self.slot.base
    }

    /// The number of its first frame in the pool.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.order
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.base().records.forget(Pfn(self.frame.into()));
        // SAFETY: the block is this value's, which ends.
        #[allow(unsafe_code)]
        unsafe {
            self.base().free(self.frame, self.order, Movable);
        }
    }
}

impl Deref for Owned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the block is the owner's, who has it by this value.
        #[allow(unsafe_code)]
        unsafe {
            self.base().bytes(self.frame, self.order)
        }
    }
}

impl DerefMut for Owned {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this value is borrowed alone.
        #[allow(unsafe_code)]
        unsafe {
            self.base().bytes_mut(self.frame, self.order)
        }
    }
}

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Owned(frame {:#x}, order {})", self.frame, self.order.0)
    }
}

/// Where a block should move to, for the call of [`Owner::migrate`] that got it. A place that is not used is free again
/// after the call.
#[must_use = "the block stays where it is, unless the place takes it"]
pub struct Place<'c> {
    base: &'c Arc<Base>,
    from: Pfn,
    to: Pfn,
    order: Order,
    /// What the pool learns of it.
    moved: &'c mut bool,
}

impl<'c> Place<'c> {
    /// A place at `to`, which the caller took, for the block at `from`. `moved` is set if it moves; the caller has the old
    /// frames then.
    pub(crate) fn new(
        base: &'c Arc<Base>,
        from: Pfn,
        to: Pfn,
        order: Order,
        moved: &'c mut bool,
    ) -> Place<'c> {
        Place {
            base,
            from,
            to,
            order,
            moved,
        }
    }

    /// The number of the first frame of the block that should move.
    pub fn from(&self) -> u32 {
        self.from.0 as u32
    }

    /// The order of the block, and of the place.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The bytes of the place, to write to. They hold what their last user left.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the place is nobody else's until a block is there, which takes this value.
        #[allow(unsafe_code)]
        unsafe {
            self.base.bytes_mut(self.to.0 as u32, self.order)
        }
    }

    /// Whether a block is the one that should move.
    pub fn is_for(&self, block: &Owned) -> bool {
        let is_here = Arc::ptr_eq(self.base, block.base()) && block.frame == self.from();
        is_here && block.order == self.order
    }

    /// Copies the block that should move, which is here from now on. False, and nothing has changed, if `block` is another
    /// one.
    pub fn carry(mut self, block: &mut Owned) -> bool {
        if !self.is_for(block) {
            return false;
        }
        self.bytes().copy_from_slice(block);
        self.moved(block)
    }

    /// The block that should move is here from now on, with what the owner has written to [`bytes`](Self::bytes). False, and
    /// nothing has changed, if `block` is another one.
    pub fn moved(self, block: &mut Owned) -> bool {
        if !self.is_for(block) {
            return false;
        }
        let records = &self.base.records;
        // By the new place first: it may be asked for as soon as this block says that it is there.
        if let Some(record) = records.get(self.from) {
            let moved = records.moved(self.from, self.to, record);
            debug_assert_eq!(moved, Ok(()), "both blocks are this call's");
        }
        block.frame = self.to.0 as u32;
        *self.moved = true;
        true
    }
}

impl std::fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Place { from, order, .. } = self;
        write!(f, "Place(for frame {:#x}, order {})", from.0, order.0)
    }
}
