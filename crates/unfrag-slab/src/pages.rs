//! Where slabs come from: the trait [`Pages`], and the caches' window on memory.
//!
//! The caches know no zones. They ask for blocks of frames and access them through a *direct map*: one
//! range of addresses in which frame `first + n` lies at `base + 4096 n`, whatever holes there are
//! between. Only frames that serve as slabs (or hold the caches' own records) are ever touched.

use crate::fault::Fault;
use core::ptr::NonNull;
use unfrag::frame::Pfn;
use unfrag::{Gfp, MigrateType};

/// A request for a block of `2^order` frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRequest {
    /// Order of the block: `2^order` frames.
    pub order: u8,
    /// What the caller may do for it.
    pub gfp: Gfp,
    /// Node to take it from, or near.
    pub node: u8,
    /// Give up after the first pass over the free lists. `spec: 6.5 (d)`
    pub first_pass_only: bool,
    /// Bytes from one object to the next of the slab that the frames are for, the first at their start but for a lead; 0 if they are
    /// for something else.
    pub object_bytes: u32,
}

impl PageRequest {
    /// A request for `2^order` frames of node 0, or near it, by someone with these rights.
    pub const fn new(order: u8, gfp: Gfp) -> PageRequest {
        PageRequest {
            order,
            gfp,
            node: 0,
            first_pass_only: false,
            object_bytes: 0,
        }
    }
    /// Asks for frames of a node, or near it.
    #[must_use]
    pub const fn node(mut self, node: u8) -> PageRequest {
        self.node = node;
        self
    }
    /// Gives up after the first pass over the free lists.
    #[must_use]
    pub const fn first_pass_only(mut self) -> PageRequest {
        self.first_pass_only = true;
        self
    }
    /// The migrate type that its flags ask for, with which the block is freed too. Slab caches ask for unmovable pages, and for
    /// reclaimable ones where their objects are (`CacheFlags::RECLAIM_ACCOUNT`). Flags that contradict each other name none
    /// ([`Gfp::mobility`]): a source refuses them, or takes them for unmovable as this does.
    pub const fn mt(&self) -> MigrateType {
        match self.gfp.mobility() {
            Some(mt) => mt,
            None => MigrateType::Unmovable,
        }
    }
}

/// The range of addresses at which the caches access frames. It gives no right to access them.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Frame at `base`.
    pub first: Pfn,
    /// Frames that it spans, holes included.
    pub frames: usize,
    /// Its address, a multiple of the page size.
    pub base: NonNull<u8>,
}

// SAFETY: the address is a number here; each access to it is justified where it is made.
#[allow(unsafe_code)]
unsafe impl Send for Window {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Window {}

/// A source of pages for slab caches.
///
/// # Safety
/// - [`window`](Pages::window) always answers the same.
/// - What [`alloc`](Pages::alloc) hands out lies within the window, is aligned to its order, may be
///   read and written there, and is not handed out again until it is freed.
/// - None of the methods uses a cache with the token of a CPU that is in the midst of a call to it, as that CPU's lists are
///   not whole then. They may use caches without a token ([`KmemCache::alloc_without_cpu`](crate::KmemCache)): no lock of the
///   caches is held while they run.
#[allow(unsafe_code)]
pub unsafe trait Pages: Sync {
    /// A block of frames: its first one. `None` if there is none, or not with these rights.
    ///
    /// Users other than slab caches take a [`PageBlock`](crate::PageBlock), which is freed on drop.
    fn alloc(&self, request: &PageRequest) -> Option<Pfn>;
    /// Takes back a block that [`alloc`](Pages::alloc) handed out.
    ///
    /// # Safety
    /// The caller got the block from [`alloc`](Pages::alloc) of this source, at this order, for a request of this
    /// [type](PageRequest::mt); it was not freed since, and is not used any more.
    unsafe fn free(&self, first: Pfn, order: u8, mt: MigrateType);
    /// Where frames are seen. Asked once, when a set of caches is made, and whenever a block is taken.
    fn window(&self) -> Window;
    /// Node of a frame that [`alloc`](Pages::alloc) handed out.
    fn node_of(&self, pfn: Pfn) -> u8 {
        let _ = pfn;
        0
    }
    /// Free pages, and pages that exist without those kept for huge pages. `spec: 6.5 (a)`
    fn free_and_total(&self) -> (u64, u64) {
        (0, 0)
    }
    /// A cache found a misuse of its memory. A call that frees the object returns the fault too.
    fn fault(&self, fault: &Fault) {
        let _ = fault;
    }
}
