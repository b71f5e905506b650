//! Pages from a [`Manager`], behind a lock.
//!
//! The manager works on numbers of frames. The caller provides the memory behind them, at one range of
//! addresses.
//!
//! A frame of a slab may hold values that are borrowed by `&mut`. So no safe call frees a frame that it did not
//! allocate: the manager is lent for reading, and pages come as a [`PageBlock`].
//!
//! Safe code cannot free through the manager that it looks at,
//! ```compile_fail,E0596
//! # use unfrag::{CpuId, Order, Pfn};
//! # use unfrag_eras::NullHost;
//! # use unfrag_slab::LockedPages;
//! # fn with(pages: &LockedPages<NullHost>, of_a_slab: Pfn) {
//! let _ = pages.view(|manager| manager.free(CpuId(0), of_a_slab, Order(0)));
//! # }
//! ```
//! nor have it to itself,
//! ```compile_fail,E0133
//! # use unfrag::{CpuId, Order, Pfn};
//! # use unfrag_eras::NullHost;
//! # use unfrag_slab::LockedPages;
//! # fn with(pages: &LockedPages<NullHost>, of_a_slab: Pfn) {
//! let _ = pages.with_mut(|manager| manager.free(CpuId(0), of_a_slab, Order(0)));
//! # }
//! ```
//! nor free by number as the caches do,
//! ```compile_fail,E0133
//! # use unfrag::{MigrateType, Pfn};
//! # use unfrag_eras::NullHost;
//! # use unfrag_slab::{LockedPages, Pages};
//! # fn with(pages: &LockedPages<NullHost>, of_a_slab: Pfn) {
//! pages.free(of_a_slab, 0, MigrateType::Unmovable);
//! # }
//! ```
//! nor take the manager away while a set of caches has the pages,
//! ```compile_fail,E0505
//! # use unfrag_eras::NullHost;
//! # use unfrag_slab::{FrameEntry, LockedPages, SlabConfig, Slabs};
//! # fn with(pages: LockedPages<NullHost>, table: &mut [FrameEntry]) {
//! let slabs = Slabs::new(&pages, table, &SlabConfig::default());
//! let manager = pages.into_manager();
//! drop(slabs);
//! # }
//! ```
//! nor put a manager of shorter life into its place,
//! ```compile_fail
//! # use unfrag_eras::NullHost;
//! # use unfrag_slab::LockedPages;
//! fn shorter<'short, 'long: 'short>(
//!     pages: LockedPages<'long, NullHost>,
//! ) -> LockedPages<'short, NullHost> {
//!     pages
//! }
//! ```
//! nor free a block twice.
//! ```compile_fail,E0382
//! # use unfrag_slab::PageBlock;
//! # fn with(block: PageBlock) {
//! block.free();
//! block.free();
//! # }
//! ```

use crate::formulas::PAGE;
use crate::lock::SpinLock;
use crate::page_block::PageBlock;
use crate::pages::{PageRequest, Pages, Window};
use core::ptr::NonNull;
use unfrag::{CpuId, MigrateType, NodeId, Order, Pfn};
use unfrag_eras::frame::MAX_ZONES;
use unfrag_eras::{Host, Manager, Request};

/// The CPU of the manager whose lists are used. Under one lock the lists of one CPU are enough.
const CPU: CpuId = CpuId(0);

/// Frames of a zone, and their node.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u64,
    end: u64,
    node: u8,
}

/// A manager that slab caches and other users share.
pub struct LockedPages<'m, H: Host, R: lock_api::RawMutex = SpinLock> {
    manager: lock_api::Mutex<R, Manager<'m, H>>,
    window: Window,
    spans: [Span; MAX_ZONES],
    total: u64,
}

impl<'m, H: Host, R: lock_api::RawMutex> LockedPages<'m, H, R> {
    /// Lends the manager's frames to slab caches, which see its lowest frame at `base` and the others
    /// behind it. `None` if `base` is no multiple of the page size, or the manager has no zone.
    ///
    /// # Safety
    /// From `base` on there are [`frames`](LockedPages::frames_of) pages of memory, valid as long as
    /// this lives; those of frames that the manager hands out through this may be read and written,
    /// and are not used otherwise.
    #[allow(unsafe_code)]
    pub unsafe fn new(manager: Manager<'m, H>, base: NonNull<u8>) -> Option<Self> {
        let (first, frames) = Self::frames_of(&manager)?;
        if !base.addr().get().is_multiple_of(PAGE as usize) {
            return None;
        }
        let mut spans = [Span::default(); MAX_ZONES];
        let mut total = 0;
        let inside = manager.inspect();
        for (zone, span) in inside.zones().zip(&mut spans) {
            let z = inside.zone_config(zone);
            *span = Span {
                start: z.start.0,
                end: z.start.0 + z.spanned,
                node: z.node.0,
            };
            total += z.managed;
        }
        Some(LockedPages {
            manager: lock_api::Mutex::new(manager),
            window: Window {
                first,
                frames,
                base,
            },
            spans,
            total,
        })
    }

    /// The lowest frame of a manager's zones, and how many it is from there to the highest.
    pub fn frames_of(manager: &Manager<'m, H>) -> Option<(Pfn, usize)> {
        let inside = manager.inspect();
        let zones = || inside.zones().map(|z| inside.zone_config(z));
        let first = zones().map(|z| z.start.0).min()?;
        let end = zones().map(|z| z.start.0 + z.spanned).max()?;
        Some((Pfn(first), (end - first) as usize))
    }

    /// Calls `f` with the manager, under the lock. Slab caches wait for it, so `f` must use neither a cache nor
    /// these pages.
    pub fn view<T>(&self, f: impl FnOnce(&Manager<'m, H>) -> T) -> T {
        f(&self.manager.lock())
    }

    /// Calls `f` with the manager, mutable, under the lock. Slab caches wait for it, so `f` must use neither a
    /// cache nor these pages.
    ///
    /// # Safety
    /// - `f` neither frees nor moves a frame that was handed out through these pages (to a slab cache,
    ///   as a [`PageBlock`], by [`Pages::alloc`]), nor puts it where reclaim or compaction would.
    /// - It leaves the manager in its place, with the zones that it has.
    #[allow(unsafe_code)]
    pub unsafe fn with_mut<T>(&self, f: impl FnOnce(&mut Manager<'m, H>) -> T) -> T {
        f(&mut self.manager.lock())
    }

    /// Returns the manager. No frame is borrowed from it any more; leaked blocks, and caches with objects in use,
    /// stay allocated.
    pub fn into_manager(self) -> Manager<'m, H> {
        self.manager.into_inner()
    }
}

impl<H: Host + Send, R: lock_api::RawMutex + Send + Sync> LockedPages<'_, H, R> {
    /// Pages beside those of slab caches, which go back when the block is dropped. `None` if there is
    /// no such block, or not with these rights.
    ///
    /// ```no_run
    /// # use unfrag::Gfp;
    /// # use unfrag_eras::NullHost;
    /// # use unfrag_slab::{LockedPages, PageRequest};
    /// # fn with(pages: &LockedPages<NullHost>) {
    /// let two = PageRequest::new(1, Gfp::KERNEL);
    /// let mut block = pages.alloc_block(&two).expect("two frames");
    /// block.memory()[8191].write(7);
    /// # } // Here they go back.
    /// ```
    pub fn alloc_block(&self, request: &PageRequest) -> Option<PageBlock<'_>> {
        PageBlock::alloc(self, request)
    }
}

// SAFETY: the manager hands a frame out once until it is freed, and blocks at multiples of their
// size; the caller of `new` promised the memory behind them.
#[allow(unsafe_code)]
unsafe impl<H: Host + Send, R: lock_api::RawMutex + Send + Sync> Pages for LockedPages<'_, H, R> {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        let block = Request::new(Order(request.order), request.gfp).near(NodeId(request.node));
        let block = match request.first_pass_only {
            true => block.first_pass_only(),
            false => block,
        };
        self.manager.lock().alloc(&block).ok()
    }
    unsafe fn free(&self, first: Pfn, order: u8, _mt: MigrateType) {
        // The manager knows the type of a frame by its pageblock.
        let freed = self.manager.lock().free(CPU, first, Order(order));
        debug_assert!(freed.is_ok(), "a slab's block is one that the manager gave");
    }
    fn window(&self) -> Window {
        self.window
    }
    fn node_of(&self, pfn: Pfn) -> u8 {
        let of = |s: &&Span| (s.start..s.end).contains(&pfn.0);
        self.spans.iter().find(of).map_or(0, |s| s.node)
    }
    fn free_and_total(&self) -> (u64, u64) {
        let manager = self.manager.lock();
        let inside = manager.inspect();
        let free = |z| inside.zone(z).free_pages + inside.pcp_pages(z);
        (inside.zones().map(free).sum(), self.total)
    }
}
