//! Pages from a [`Memory`], the engine that any number of CPUs share.
//!
//! A memory works on numbers of frames. The caller says at which addresses they are: a [`Window`], which may be a part of the
//! memory. Slabs take no frame outside of it.
//!
//! Invariant: what is handed out lies within the window, and goes back with the type that it was taken for. So slabs share
//! pageblocks with each other, and not with what can be moved, while there is room.
//!
//! A frame of a slab may hold values that are borrowed by `&mut`. So no safe call gives back a frame that it did not take: pages
//! for others come as a [`PageBlock`], and what the memory itself can do to a frame in use is part of the promise of
//! [`new`](MemoryPages::new), which safe code cannot make,
//! ```compile_fail,E0133
//! # use unfrag::Memory;
//! # use unfrag_slab::{MemoryPages, SpinLock, Window};
//! # fn with(memory: &Memory<SpinLock>, window: Window) {
//! let pages = MemoryPages::new(memory, window);
//! # }
//! ```
//! nor give back by number as the caches do,
//! ```compile_fail,E0133
//! # use unfrag::{MigrateType, Pfn};
//! # use unfrag_slab::{MemoryPages, Pages, SpinLock};
//! # fn with(pages: &MemoryPages<SpinLock>, of_a_slab: Pfn) {
//! pages.free(of_a_slab, 0, MigrateType::Unmovable);
//! # }
//! ```
//! nor through the memory,
//! ```compile_fail,E0133
//! # use unfrag::{MigrateType, Order, Pfn};
//! # use unfrag_slab::{MemoryPages, SpinLock};
//! # fn with(pages: &MemoryPages<SpinLock>, of_a_slab: Pfn) {
//! let _ = pages.memory().free(of_a_slab, Order(0), MigrateType::Unmovable);
//! # }
//! ```
//! nor drop the memory while a set of caches has its pages.
//! ```compile_fail,E0505
//! # use unfrag::Memory;
//! # use unfrag_slab::{FrameEntry, MemoryPages, SlabConfig, Slabs, SpinLock, Window};
//! # fn with(memory: Memory<'static, SpinLock>, window: Window, table: &mut [FrameEntry]) {
//! // SAFETY: it does not compile.
//! let pages = unsafe { MemoryPages::new(&memory, window) }.expect("a window");
//! let slabs = Slabs::new(&pages, table, &SlabConfig::default());
//! drop(memory);
//! drop(slabs);
//! # }
//! ```

use crate::formulas::PAGE;
use crate::lock::SpinLock;
use crate::page_block::PageBlock;
use crate::pages::{PageRequest, Pages, Window};
use lock_api::RawMutex;
use unfrag::{Area, Gfp, Memory, MigrateType, NodeId, Order, Pfn, Request};

/// Where [`Gfp::DMA`] ends: devices of 24 address lines.
const DMA_END: Pfn = Pfn((16 << 20) / PAGE as u64);
/// Where [`Gfp::DMA32`] ends: devices of 32 address lines.
const DMA32_END: Pfn = Pfn((4 << 30) / PAGE as u64);

/// A memory whose pages slab caches and other users share. Frames have 4 KiB.
///
/// What a request's flags mean here:
///
/// | flags | pages |
/// |---|---|
/// | [`RECLAIMABLE`](Gfp::RECLAIMABLE), [`MOVABLE`](Gfp::MOVABLE), neither | of that type, or unmovable ones; both are refused |
/// | [`THISNODE`](Gfp::THISNODE) | from the request's node alone; without it, from another one where that has nothing |
/// | [`DMA`](Gfp::DMA), [`DMA32`](Gfp::DMA32) | from below 16 MiB, or 4 GiB |
/// | [`HIGH`](Gfp::HIGH) without [`DIRECT_RECLAIM`](Gfp::DIRECT_RECLAIM), as in [`ATOMIC_MASK`](Gfp::ATOMIC_MASK); [`MEMALLOC`](Gfp::MEMALLOC) | down to the last frame, below the min watermark |
/// | [`NOMEMALLOC`](Gfp::NOMEMALLOC), [`NORETRY`](Gfp::NORETRY), `first_pass_only` | never below it: a try for a large slab leaves the reserve to who needs a small one |
pub struct MemoryPages<'s, 'm, R: RawMutex = SpinLock> {
    memory: &'s Memory<'m, R>,
    window: Window,
    /// The window's end.
    end: Pfn,
    /// Whether an area reaches beyond it.
    is_part: bool,
}

impl<'s, 'm, R: RawMutex> MemoryPages<'s, 'm, R> {
    /// Lends a memory's frames to slab caches, which see them through `window`. `None` if the window has no frames, begins at
    /// an address that is no multiple of the page size, or ends beyond the last frame or the last address.
    ///
    /// Where memory may be behind the window, slabs take only what lies before its end: by looking at one block after the
    /// other, and first where [areas are low](unfrag::Area::is_low). So a window over all of the memory is the better one. A
    /// request for which the memory chooses a frame before the window's first fails: let the window begin with the memory.
    ///
    /// # Safety
    /// - Each frame of the window that the memory has, now or later, is there at its address as long as this lives, and may be
    ///   read and written while it is handed out through this.
    /// - Whoever else uses the memory leaves alone what is handed out through this (to a slab cache, as a [`PageBlock`], by
    ///   [`Pages::alloc`]): it is neither given back, nor moved, nor [removed](Memory::remove).
    #[allow(unsafe_code)]
    pub unsafe fn new(memory: &'s Memory<'m, R>, window: Window) -> Option<Self> {
        let frames = u64::try_from(window.frames).ok()?;
        let end = window.first.0.checked_add(frames)?;
        let bytes = window.frames.checked_mul(PAGE as usize)?;
        let base = window.base.addr().get();
        base.checked_add(bytes)?;
        if frames == 0 || !base.is_multiple_of(PAGE as usize) {
            return None;
        }
        let areas = memory.config().areas;
        let is_behind = |a: &Area| a.start.0.saturating_add(a.frames) > end;
        Some(MemoryPages {
            memory,
            window,
            end: Pfn(end),
            is_part: areas.iter().any(is_behind),
        })
    }

    /// The memory.
    pub fn memory(&self) -> &'s Memory<'m, R> {
        self.memory
    }

    /// What is asked of the memory; `None` if the flags contradict each other.
    fn request(&self, request: &PageRequest) -> Option<Request> {
        let PageRequest {
            order,
            gfp,
            node,
            first_pass_only,
            object_bytes: _,
        } = *request;
        let mut own = Request::new(Order(order), gfp.mobility()?);
        own = match gfp.contains(Gfp::THISNODE) {
            true => own.only(NodeId(node)),
            false => own.near(NodeId(node)),
        };
        let dma = gfp.contains(Gfp::DMA).then_some(DMA_END);
        let dma32 = gfp.contains(Gfp::DMA32).then_some(DMA32_END);
        let end = self.is_part.then_some(self.end);
        own.below = [end, dma, dma32].into_iter().flatten().min();
        let may_wait = gfp.contains(Gfp::DIRECT_RECLAIM);
        let needs = gfp.contains(Gfp::MEMALLOC) || gfp.contains(Gfp::HIGH) && !may_wait;
        let spares = first_pass_only || gfp.intersects(Gfp::NOMEMALLOC | Gfp::NORETRY);
        own.is_atomic = needs && !spares;
        Some(own)
    }

    /// Hands a block on that the memory gave, if it lies within the window; else it goes back.
    fn within(&self, first: Pfn, own: &Request) -> Option<Pfn> {
        let frames = u64::from(own.order.frames());
        let is_within = first >= self.window.first && frames <= self.end.0.saturating_sub(first.0);
        if is_within {
            return Some(first);
        }
        // SAFETY: the memory gave it just now, and nobody uses it.
        #[allow(unsafe_code)]
        let given = unsafe { self.memory.free(first, own.order, own.mt) };
        debug_assert!(given.is_ok(), "a block that was just taken");
        None
    }
}

impl<R: RawMutex + Send + Sync> MemoryPages<'_, '_, R> {
    /// Pages beside those of slab caches, which go back when the block is dropped. `None` if there is no such block, or not
    /// with these rights.
    pub fn alloc_block(&self, request: &PageRequest) -> Option<PageBlock<'_>> {
        PageBlock::alloc(self, request)
    }
}

// SAFETY: the memory hands a frame out once until it is given back, and blocks at multiples of their size. What does
// not lie within the window is not handed on. The caller of `new` promised the memory behind the window.
#[allow(unsafe_code)]
unsafe impl<R: RawMutex + Send + Sync> Pages for MemoryPages<'_, '_, R> {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        let own = self.request(request)?;
        let first = self.memory.alloc(&own).ok()?;
        let got = self.within(first, &own);
        if got.is_some() || own.below.is_some() {
            return got;
        }
        // Memory may have been added behind the areas' ends, as they are made up to whole gigabytes.
        let own = own.below(self.end);
        let first = self.memory.alloc(&own).ok()?;
        self.within(first, &own)
    }
    unsafe fn free(&self, first: Pfn, order: u8, mt: MigrateType) {
        // SAFETY: as the caller says.
        let given = unsafe { self.memory.free(first, Order(order), mt) };
        debug_assert!(given.is_ok(), "a block that the memory gave");
    }
    fn window(&self) -> Window {
        self.window
    }
    fn node_of(&self, pfn: Pfn) -> u8 {
        self.memory.node_of(pfn).map_or(0, |node| node.0)
    }
    fn free_and_total(&self) -> (u64, u64) {
        (self.memory.free_frames(), self.memory.present())
    }
}
