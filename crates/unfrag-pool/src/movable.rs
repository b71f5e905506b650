//! [`Movable`] and [`MovableBlock`]: a block that the pool may move while nobody holds it.

use crate::handles::HANDLES;
use crate::inner::Inner;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use unfrag::MigrateType;
use unfrag::owners::Owned as Record;
use unfrag::{AllocError, Order, Pfn};

/// The handle of a block, with the way to its pool: borrowed, or shared.
struct Handle<I: AsRef<Inner>> {
    inner: I,
    tag: u32,
    order: Order,
}

impl<I: AsRef<Inner>> Handle<I> {
    #[inline]
    fn pin(&self) -> Pinned<'_> {
        let inner = self.inner.as_ref();
        Pinned {
            frame: hold(inner, self.tag),
            inner,
            tag: self.tag,
            order: self.order,
        }
    }

    fn describe(&self, name: &str, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{name}(number {}, order {})", self.tag, self.order.0)
    }
}

/// Holds a block where it is, and waits while it is being moved.
#[inline]
fn hold(inner: &Inner, tag: u32) -> u32 {
    let place = inner.handles.place(tag);
    loop {
        if let Some(frame) = place.hold() {
            return frame;
        }
        std::thread::yield_now();
    }
}

impl<I: AsRef<Inner>> Drop for Handle<I> {
    fn drop(&mut self) {
        let inner = self.inner.as_ref();
        // Held, it is not moved; and the next block with this number starts without holds.
        let frame = hold(inner, self.tag);
        inner.base.records.forget(Pfn(frame.into()));
        // SAFETY: the block is this handle's, which ends.
        #[allow(unsafe_code)]
        unsafe {
            inner.base.free(frame, self.order, MigrateType::Movable);
        }
        inner.handles.remove(self.tag);
    }
}

/// A block of `2^order` frames that the pool may move while nobody holds it, so that it does not stand in the way of huge
/// pages. It is given back when it is dropped.
pub struct Movable<'p>(Handle<&'p Arc<Inner>>);

impl<'p> Movable<'p> {
    /// A handle for a block that the caller took; it is given back if there are no more handles.
    pub(crate) fn new(inner: &'p Arc<Inner>, frame: u32, order: Order) -> Result<Self, AllocError> {
        let Some(tag) = inner.handles.add(frame) else {
            // SAFETY: the caller took the block for this handle, which there is not.
            #[allow(unsafe_code)]
            unsafe {
                inner.base.free(frame, order, MigrateType::Movable);
            }
            return Err(AllocError::NoHandle);
        };
        let record = Record {
            owner: HANDLES,
            tag,
            order,
        };
        let set = inner.base.records.set(Pfn(frame.into()), record);
        debug_assert_eq!(set, Ok(()), "a block that was taken has words");
        Ok(Movable(Handle { inner, tag, order }))
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.0.order
    }

    /// Holds the block where it is, to read it. It waits while the block is being moved, which takes about as long as a
    /// copy of it.
    #[inline]
    pub fn pin(&self) -> Pinned<'_> {
        self.0.pin()
    }

    /// Holds the block where it is, to write to it.
    #[inline]
    pub fn pin_mut(&mut self) -> PinnedMut<'_> {
        PinnedMut(self.pin())
    }

    /// The same block, for a struct that has it beside its pool, as [`Frame::detach`](crate::Frame::detach) does.
    pub fn detach(self) -> MovableBlock {
        let own = ManuallyDrop::new(self);
        let Handle { inner, tag, order } = own.0;
        MovableBlock(Handle {
            inner: inner.clone(),
            tag,
            order,
        })
    }
}

impl std::fmt::Debug for Movable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.0.describe("Movable", f)
    }
}

/// A block that borrows nothing, and that its pool may move while nobody holds it: a [`Movable`],
/// [detached](Movable::detach). It is given back when it is dropped, before its pool or after it.
pub struct MovableBlock(Handle<Arc<Inner>>);

impl MovableBlock {
    /// Its order.
    pub fn order(&self) -> Order {
        self.0.order
    }

    /// Holds the block where it is, to read it, as [`Movable::pin`] does.
    #[inline]
    pub fn pin(&self) -> Pinned<'_> {
        self.0.pin()
    }

    /// Holds the block where it is, to write to it.
    #[inline]
    pub fn pin_mut(&mut self) -> PinnedMut<'_> {
        PinnedMut(self.pin())
    }
}

impl std::fmt::Debug for MovableBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.0.describe("MovableBlock", f)
    }
}

/// The bytes of a [`Movable`] or a [`MovableBlock`], which stays where it is meanwhile.
pub struct Pinned<'h> {
    inner: &'h Inner,
    tag: u32,
    frame: u32,
    order: Order,
}

impl Drop for Pinned<'_> {
    #[inline]
    fn drop(&mut self) {
        self.inner.handles.place(self.tag).release();
    }
}

impl Deref for Pinned<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block is the handle's, is held here, and only a handle that is borrowed alone is written to.
        #[allow(unsafe_code)]
        unsafe {
            self.inner.base.bytes(self.frame, self.order)
        }
    }
}

impl std::fmt::Debug for Pinned<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Pinned { frame, order, .. } = self;
        write!(f, "Pinned(frame {frame:#x}, order {})", order.0)
    }
}

/// The bytes of a [`Movable`] or a [`MovableBlock`] to write to, which stays where it is meanwhile.
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
        let Pinned {
            inner,
            frame,
            order,
            ..
        } = self.0;
        // SAFETY: the block is the handle's, is held here, and the handle is borrowed alone.
        #[allow(unsafe_code)]
        unsafe {
            inner.base.bytes_mut(frame, order)
        }
    }
}
