//! The memory of a set of caches: its source of pages, the direct map through which it accesses them, and the
//! bootstrap cache, which divides them into records.

use crate::bootstrap::BootstrapCache;
use crate::map::DirectMap;
use crate::pages::Pages;
use core::ptr::NonNull;
use lock_api::RawMutex;
use unfrag::Gfp;

/// A set's memory.
pub(crate) struct Memory<R: RawMutex> {
    pub pages: &'static dyn Pages,
    pub map: DirectMap<R>,
    pub bootstrap: BootstrapCache<R>,
}

impl<R: RawMutex> Memory<R> {
    /// `bytes` of zeroed memory for a record, at a multiple of 64.
    pub fn alloc_record(&self, bytes: usize, gfp: Gfp, node: u8) -> Option<NonNull<u8>> {
        self.bootstrap
            .alloc(self.pages, &self.map, bytes, gfp, node)
    }
    /// Takes a record back.
    ///
    /// # Safety
    /// As for [`BootstrapCache::free`].
    #[allow(unsafe_code)]
    pub unsafe fn free_record(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: as the caller says.
        unsafe { self.bootstrap.free(self.pages, &self.map, at, bytes) }
    }
    /// Returns the pages without a record in use.
    pub fn trim(&self) {
        self.bootstrap.trim(self.pages, &self.map);
    }
}
