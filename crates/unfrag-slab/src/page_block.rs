//! Pages for users other than slab caches: an owned block, which is freed on drop.
//!
//! Invariant: a block comes from its source's `alloc` alone and is freed once, so that no safe call
//! frees a frame of another holder.

use crate::formulas::PAGE;
use crate::pages::{PageRequest, Pages};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use unfrag::{MigrateType, Pfn};

/// An owned block of `2^order` frames, with access to its memory. It goes back to its source on drop.
#[must_use = "the pages go back when the block is dropped"]
pub struct PageBlock<'p> {
    pages: &'p dyn Pages,
    first: Pfn,
    at: NonNull<u8>,
    order: u8,
    mt: MigrateType,
}

// SAFETY: the memory is the block's alone, and its source may be used from any thread.
#[allow(unsafe_code)]
unsafe impl Send for PageBlock<'_> {}
// SAFETY: a shared block shows its numbers alone.
#[allow(unsafe_code)]
unsafe impl Sync for PageBlock<'_> {}

impl<'p> PageBlock<'p> {
    /// Takes a block. `None` if the source has none, or not with these rights.
    pub fn alloc(pages: &'p dyn Pages, request: &PageRequest) -> Option<PageBlock<'p>> {
        let first = pages.alloc(request)?;
        let window = pages.window();
        let bytes_before = (first.0 - window.first.0) as usize * PAGE as usize;
        // What the source hands out lies within its window. The window's first frame need not be memory, so that the sum is
        // one of addresses.
        let at = NonNull::new(window.base.as_ptr().wrapping_add(bytes_before))?;
        Some(PageBlock {
            pages,
            first,
            at,
            order: request.order,
            mt: request.mt(),
        })
    }

    /// Its first frame.
    pub fn first(&self) -> Pfn {
        self.first
    }

    /// Its order: it has `2^order` frames.
    pub fn order(&self) -> u8 {
        self.order
    }

    /// Its memory, which holds whatever its last user left.
    #[allow(unsafe_code)]
    pub fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        let len = (PAGE as usize) << self.order;
        // SAFETY: the block is the holder's alone, that long, and may be read and written.
        unsafe { core::slice::from_raw_parts_mut(self.at.as_ptr().cast(), len) }
    }

    /// Frees the block, as dropping it does.
    pub fn free(self) {}
}

impl Drop for PageBlock<'_> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the block came from this source at this order and for this type, and goes.
        unsafe { self.pages.free(self.first, self.order, self.mt) };
    }
}

impl fmt::Debug for PageBlock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "PageBlock({}, order {})", self.first.0, self.order)
    }
}
