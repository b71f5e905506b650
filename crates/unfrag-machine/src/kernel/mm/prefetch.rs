//! Prefetching of the records of pages.
//!
//! The records of a machine's pages take some megabytes, more than the caches next to a CPU hold. Prefetching
//! changes the time of a run on the host and nothing else.

use crate::kernel::Sim;
use crate::mm::object::Entry;

/// Pages of an object that are looked up together.
pub(crate) const TOGETHER: usize = 32;

/// Distance in pages between a prefetch and the use.
pub(crate) const AHEAD: usize = 8;

impl Sim {
    /// Prefetches the records of the first pages. To be called before the first is used.
    #[inline]
    pub(crate) fn prefetch_first(&mut self, entries: &[Entry]) {
        for i in 0..AHEAD {
            self.prefetch(entries, i);
        }
    }

    /// Prefetches the records of a page ahead of page `i`. To be called before page `i` is used.
    #[inline]
    pub(crate) fn prefetch_next(&mut self, entries: &[Entry], i: usize) {
        self.prefetch(entries, i + AHEAD);
    }

    #[inline]
    fn prefetch(&mut self, entries: &[Entry], i: usize) {
        if let Some(pfn) = entries.get(i).and_then(|e| e.pfn()) {
            let (world, pages) = self.manager().host_and_pages();
            unfrag::hint::prefetch(world.kernel.frames.get(pfn));
            pages.prefetch(pfn);
        }
    }
}
