//! [`Frame`]: a block of memory that gives itself back.

use crate::base::Base;
use std::ops::{Deref, DerefMut};
use unfrag::{MigrateType, Order};

/// A block of `2^order` frames of 4 KiB, aligned to its size. It stays where it is, and is given back when it is dropped.
///
/// What it holds at first is what its last user left, or zeros; [`zero`](Self::zero) makes sure.
pub struct Frame<'p> {
    base: &'p Base,
    frame: u32,
    order: Order,
    mt: MigrateType,
}

impl<'p> Frame<'p> {
    pub(crate) fn new(base: &'p Base, frame: u32, order: Order, mt: MigrateType) -> Frame<'p> {
        Frame {
            base,
            frame,
            order,
            mt,
        }
    }

    /// The number of its first frame in the pool.
    pub fn number(&self) -> u32 {
        self.frame
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The NUMA node that it is from.
    pub fn node(&self) -> usize {
        let memory = &self.base.memory;
        memory.nodes[memory.node_of(self.frame)].id
    }

    /// Fills it with zeros.
    #[must_use]
    pub fn zero(mut self) -> Self {
        self.fill(0);
        self
    }
}

impl Drop for Frame<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the block is this value's, which ends.
        #[allow(unsafe_code)]
        unsafe {
            self.base.free(self.frame, self.order, self.mt);
        }
    }
}

impl Deref for Frame<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block is this value's.
        #[allow(unsafe_code)]
        unsafe {
            self.base.bytes(self.frame, self.order)
        }
    }
}

impl DerefMut for Frame<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this value is borrowed alone.
        #[allow(unsafe_code)]
        unsafe {
            self.base.bytes_mut(self.frame, self.order)
        }
    }
}

impl std::fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Frame(frame {:#x}, order {})", self.frame, self.order.0)
    }
}

/// Memory of any length in as few blocks as there were: huge pages first.
#[derive(Debug)]
pub struct Extent<'p> {
    pub(crate) pieces: Vec<Frame<'p>>,
}

impl<'p> Extent<'p> {
    /// Its blocks, the larger ones first.
    pub fn pieces(&self) -> &[Frame<'p>] {
        &self.pieces
    }

    /// Its blocks, to write to.
    pub fn pieces_mut(&mut self) -> &mut [Frame<'p>] {
        &mut self.pieces
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|p| p.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes in blocks of 2 MiB and more.
    pub fn huge_bytes(&self) -> usize {
        let huge = self.pieces.iter().filter(|p| p.order >= Order::HUGE);
        huge.map(|p| p.len()).sum()
    }

    /// Bytes in smaller blocks: those that no huge page was there for, and a last part of less than 2 MiB.
    pub fn fallback_bytes(&self) -> usize {
        self.len() - self.huge_bytes()
    }
}
