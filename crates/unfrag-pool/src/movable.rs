//! [`Movable`]: a block that the pool may move while nobody holds it.

use crate::inner::Inner;
use crate::record::Record;
use crate::word::Place;
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use unfrag::MigrateType;
use unfrag::{AllocError, Order};

/// The owner number of all handles.
pub(crate) const HANDLES: u16 = u16::MAX;

/// Places of a part of the table.
const PART: usize = 4096;
/// Parts of the table.
const PARTS: usize = 1 << 16;

/// Where all movable blocks are. A handle's tag is its number here.
pub(crate) struct Handles {
    parts: Box<[OnceLock<Box<[Place]>>]>,
    numbers: Mutex<Numbers>,
}

#[derive(Default)]
struct Numbers {
    free: Vec<u32>,
    next: u32,
}

impl Handles {
    pub fn new() -> Handles {
        Handles {
            parts: (0..PARTS).map(|_| OnceLock::new()).collect(),
            numbers: Mutex::default(),
        }
    }

    fn place(&self, tag: u32) -> &Place {
        let part = self.parts[tag as usize / PART]
            .get_or_init(|| (0..PART).map(|_| Place::new(0)).collect());
        &part[tag as usize % PART]
    }

    /// A number for a block at a frame; `None`, if there are no more.
    fn add(&self, frame: u32) -> Option<u32> {
        let tag = {
            let mut numbers = self.numbers.lock();
            match numbers.free.pop() {
                Some(tag) => tag,
                None if (numbers.next as usize) < PARTS * PART => {
                    numbers.next += 1;
                    numbers.next - 1
                }
                None => return None,
            }
        };
        self.place(tag).reset(frame);
        Some(tag)
    }

    /// Copies a block to another place, with `copy`, unless it is held or elsewhere.
    pub fn migrate(&self, tag: u32, from: u32, to: u32, copy: impl FnOnce()) -> bool {
        let place = self.place(tag);
        if !place.begin_move(from) {
            return false;
        }
        copy();
        place.end_move(from, to);
        true
    }
}

/// A block of `2^order` frames that the pool may move while nobody holds it, so that it does not stand in the way of huge
/// pages. It is given back when it is dropped.
pub struct Movable<'p> {
    inner: &'p Inner,
    tag: u32,
    order: Order,
}

impl<'p> Movable<'p> {
    pub(crate) fn alloc(
        inner: &'p Inner,
        order: Order,
        waits: bool,
    ) -> Result<Movable<'p>, AllocError> {
        let frame = if waits {
            inner.alloc(order, MigrateType::Movable)?
        } else {
            inner.try_alloc(order, MigrateType::Movable)?
        };
        let Some(tag) = inner.handles.add(frame) else {
            inner.free(frame, order, MigrateType::Movable);
            return Err(AllocError::Reserved);
        };
        inner.records.set(
            frame,
            Record {
                owner: HANDLES,
                tag,
                order,
            },
        );
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
        PinnedMut {
            frame: self.hold(),
            of: self,
        }
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
        self.inner.records.clear(frame);
        self.inner.free(frame, self.order, MigrateType::Movable);
        self.inner.handles.numbers.lock().free.push(self.tag);
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
            self.of.inner.bytes(self.frame, self.of.order)
        }
    }
}

/// The bytes of a [`Movable`] to write to, which stays where it is meanwhile.
#[derive(Debug)]
pub struct PinnedMut<'h> {
    of: &'h Movable<'h>,
    frame: u32,
}

impl Drop for PinnedMut<'_> {
    #[inline]
    fn drop(&mut self) {
        self.of.release();
    }
}

impl Deref for PinnedMut<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block is the handle's, is held here, and the handle is borrowed alone.
        #[allow(unsafe_code)]
        unsafe {
            self.of.inner.bytes(self.frame, self.of.order)
        }
    }
}

impl DerefMut for PinnedMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            self.of.inner.bytes_mut(self.frame, self.of.order)
        }
    }
}
