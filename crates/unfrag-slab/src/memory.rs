//! What a set of caches stands on: its source of pages, the direct map through which it sees them, and
//! the bootstrap cache, which cuts them into records.

use crate::boot::Boot;
use crate::map::DirectMap;
use crate::pages::Pages;
use core::ptr::NonNull;
use unfrag::Gfp;

/// A set's memory.
pub(crate) struct Memory {
    pub pages: &'static dyn Pages,
    pub map: DirectMap,
    pub boot: Boot,
}

impl Memory {
    /// `bytes` of zeroed memory for a record, at a multiple of 64.
    pub fn alloc_record(&self, bytes: usize, gfp: Gfp, node: u8) -> Option<NonNull<u8>> {
        self.boot.alloc(self.pages, &self.map, bytes, gfp, node)
    }
    /// Takes a record back.
    ///
    /// # Safety
    /// As for [`Boot::free`].
    #[allow(unsafe_code)]
    pub unsafe fn free_record(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: as the caller says.
        unsafe { self.boot.free(self.pages, &self.map, at, bytes) }
    }
    /// Returns the pages without a record in use.
    pub fn trim(&self) {
        self.boot.trim(self.pages, &self.map);
    }
}
