//! [`Movable`]: a block that the pool may move while nobody holds it.

use crate::handles::HANDLES;
use crate::inner::Inner;
use crate::record::Record;
use std::ops::{Deref, DerefMut};
use unfrag::MigrateType;
use unfrag::{AllocError, Order};

/// A block of `2^order` frames that the pool may move while nobody holds it, so that it does not stand in the way of huge
/// pages. It is given back when it is dropped.
pub struct Movable<'p> {
    inner: &'p Inner,
    tag: u32,
    order: Order,
}

impl<'p> Movable<'p> {
    /// A handle for a block that the caller took; it is given back if there are no more handles.
    pub(crate) fn new(inner: &'p Inner, frame: u32, order: Order) -> Result<Self, AllocError> {
        let Some(tag) = inner.handles.add(frame) else {
            // SAFETY: the caller took the block for this handle, which there is not.
            #[allow(unsafe_code)]
            unsafe {
                inner.base.free(frame, order, MigrateType::Movable);
            }
            return Err(AllocError::Reserved);
        };
        let record = Record {
            owner: HANDLES,
            tag,
            order,
        };
        inner.base.records.set(frame, record);
        Ok(Movable { inner, tag, order })
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Holds the block where it is, to read it. It waits while the block is being moved, which takes about as long as a
    /// copy of it.
    #[inline]
    pub fn pin(&self) -> Pinned<'_> {
        Pinned {
            frame: self.hold(),
            of: self,
        }
    }

    /// Holds the block where it is, to write to it.
    #[inline]
    pub fn pin_mut(&mut self) -> PinnedMut<'_> {
        PinnedMut(self.pin())
    }

    #[inline]
    fn hold(&self) -> u32 {
        let place = self.inner.handles.place(self.tag);
        loop {
            if let Some(frame) = place.hold() {
                return frame;
            }
            std::thread::yield_now();
        }
    }

    #[inline]
    fn release(&self) {
        self.inner.handles.place(self.tag).release();
    }
}

impl Drop for Movable<'_> {
    fn drop(&mut self) {
        // Held, it is not moved; and the next block with this number starts without holds.
        let frame = self.hold();
        self.inner.base.records.clear(frame);
        // SAFETY: the block is this handle's, which ends.
        #[allow(unsafe_code)]
        unsafe {
            self.inner
                .base
                .free(frame, self.order, MigrateType::Movable);
        }
        self.inner.handles.remove(self.tag);
    }
}

impl std::fmt::Debug for Movable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Movable(number {}, order {})", self.tag, self.order.0)
    }
}

/// The bytes of a [`Movable`], which stays where it is meanwhile.
#[derive(Debug)]
pub struct Pinned<'h> {
    of: &'h Movable<'h>,
    frame: u32,
}

impl Drop for Pinned<'_> {
    #[inline]
    fn drop(&mut self) {
        self.of.release();
    }
}

impl Deref for Pinned<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block is the handle's, is held here, and only a handle that is borrowed alone is written to.
        #[allow(unsafe_code)]
        unsafe {
            self.of.inner.base.bytes(self.frame, self.of.order)
        }
    }
}

/// The bytes of a [`Movable`] to write to, which stays where it is meanwhile.
#[derive(Debug)]
pub struct PinnedMut<'h>(Pinned<'h>);

impl Deref for PinnedMut<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for PinnedMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let Pinned { of, frame } = self.0;
        // SAFETY: the block is the handle's, is held here, and the handle is borrowed alone.
        #[allow(unsafe_code)]
        unsafe {
            of.inner.base.bytes_mut(frame, of.order)
        }
    }
}
