//! Blocks by address, for callers that keep their own books.
//!
//! An address that is none of the pool's ends the program with the name of the misuse. In debug builds the pool keeps a book
//! too, a byte a frame, that names all others; in release builds a free costs what that of a [`Frame`](crate::Frame) costs,
//! and a double free is refused when its batch goes back.
#![allow(unsafe_code)]

use crate::pool::Pool;
use crate::space::FRAME_BYTES;
use std::ptr::NonNull;
use unfrag::MigrateType::Unmovable;
use unfrag::maps::LARGEST_ORDER;
use unfrag::{AllocError, Order};

impl Pool {
    /// Takes a block of `2^order` frames of 4 KiB, by its address; it stays where it is. Nobody gives it back but
    /// [`free_raw`](Pool::free_raw).
    ///
    /// # Errors
    /// As [`alloc`](Pool::alloc).
    pub fn alloc_raw(&self, order: Order) -> Result<NonNull<u8>, AllocError> {
        let frame = self.inner.alloc(order, Unmovable)?;
        let base = &self.inner.base;
        base.book.take(frame, order);
        Ok(base.space.at(frame))
    }

    /// Gives a block back.
    ///
    /// # Panics
    /// If no block of this order can begin there: the address is not of this pool, or is not aligned. In debug builds also
    /// if none is out there, or one of another order.
    ///
    /// # Safety
    /// The block came from [`alloc_raw`](Pool::alloc_raw) of this pool at this order, was not given back since, and is not
    /// used any more.
    #[track_caller]
    pub unsafe fn free_raw(&self, block: NonNull<u8>, order: Order) {
        let base = &self.inner.base;
        let bytes = block
            .addr()
            .get()
            .wrapping_sub(base.space.at(0).addr().get());
        let frame = bytes / FRAME_BYTES;
        assert!(
            frame < base.space.frames() as usize && bytes.is_multiple_of(FRAME_BYTES),
            "misuse of free_raw: no frame of this pool begins at {block:p}"
        );
        assert!(
            order <= LARGEST_ORDER && frame.is_multiple_of(order.frames() as usize),
            "misuse of free_raw: no block of order {} begins at {block:p}, frame {frame:#x}",
            order.0
        );
        base.book.give(frame as u32, order);
        // SAFETY: as the caller says.
        unsafe { base.free(frame as u32, order, Unmovable) };
    }
}
