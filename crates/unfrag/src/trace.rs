//! The kernel's own tracepoints as typed events.
//!
//! The core emits them where Linux does, so that a replay can be compared event by event.
//! `spec: linux-mm 7.6; linux-6.1 7.6`

use crate::frame::{MigrateType, Pfn};
use crate::gfp::Gfp;

/// One tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `kmem:mm_page_alloc`: the end of every allocation, also a failed one.
    PageAlloc {
        /// First frame; `None` if there was none.
        pfn: Option<Pfn>,
        /// Order of the request.
        order: u8,
        /// Type of the request.
        migratetype: MigrateType,
        /// Its flags.
        gfp: Gfp,
    },
    /// `kmem:mm_page_free`: once for each block given back.
    PageFree {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: u8,
    },
    /// `kmem:mm_page_free_batched`: a second event for a page of a batch.
    PageFreeBatched {
        /// The frame.
        pfn: Pfn,
    },
    /// `kmem:mm_page_alloc_zone_locked`: a block was taken from the buddy lists.
    PageAllocZoneLocked {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: u8,
        /// List it came from.
        migratetype: MigrateType,
        /// Whether the order and type are served by per-CPU lists.
        percpu_refill: bool,
    },
    /// `kmem:mm_page_pcpu_drain`: a block went from a per-CPU list to the buddy lists.
    PagePcpuDrain {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: u8,
        /// List it goes to.
        migratetype: MigrateType,
    },
    /// `kmem:mm_page_alloc_extfrag`: a request took from a list of another type.
    PageAllocExtfrag(Extfrag),
}

/// A fallback to another type's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extfrag {
    /// First frame of the block found.
    pub pfn: Pfn,
    /// Order of the request.
    pub alloc_order: u8,
    /// Order of the block found.
    pub fallback_order: u8,
    /// Type of the request.
    pub alloc_migratetype: MigrateType,
    /// Type of the list it was found on.
    pub fallback_migratetype: MigrateType,
    /// Whether the pageblock has the type of the request afterwards.
    pub change_ownership: bool,
}

/// Tells the host what the core does, in the core's own terms.
pub(crate) struct Tracer<'a, H> {
    pub host: &'a mut H,
    pub map: &'a crate::frame::FrameMap,
}

impl<H: crate::host::Host> Tracer<'_, H> {
    #[inline]
    pub fn emit(&mut self, event: impl FnOnce(&crate::frame::FrameMap) -> Event) {
        if H::TRACING {
            let e = event(self.map);
            self.host.trace(&e);
        }
    }

    /// Tells the host of a page that it will see soon.
    #[inline]
    pub fn prefetch(&self, ix: crate::frame::Ix) {
        if H::PREFETCHES {
            self.host.prefetch(self.map.pfn(ix));
        }
    }
}
