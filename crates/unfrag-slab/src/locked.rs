//! Pages from a [`Manager`], behind a lock.
//!
//! The manager deals in numbers of frames; the memory behind those that it manages is the caller's
//! to provide, at one stretch of addresses.

use crate::formulas::PAGE;
use crate::lock::SpinLock;
use crate::pages::{PageRequest, Pages, Window};
use core::ptr::NonNull;
use unfrag::Host;
use unfrag::frame::Pfn;
use unfrag::page_alloc::{MAX_ZONES, Manager};

/// Frames of a zone, and their node.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u64,
    end: u64,
    node: u8,
}

/// A manager that slab caches, and others, may share.
pub struct LockedPages<'m, H: Host, R: lock_api::RawMutex = SpinLock> {
    manager: lock_api::Mutex<R, Manager<'m, H>>,
    window: Window,
    spans: [Span; MAX_ZONES],
    total: u64,
}

// SAFETY: the manager is behind its lock; the window's address is only a number here.
#[allow(unsafe_code)]
unsafe impl<H: Host + Send, R: lock_api::RawMutex + Send> Send for LockedPages<'_, H, R> {}
// SAFETY: the same.
#[allow(unsafe_code)]
unsafe impl<H: Host + Send, R: lock_api::RawMutex + Sync> Sync for LockedPages<'_, H, R> {}

impl<'m, H: Host, R: lock_api::RawMutex> LockedPages<'m, H, R> {
    /// Lends the manager's frames to slab caches, which see its lowest frame at `base` and the others
    /// behind it. `None` if `base` is no multiple of the page size, or the manager has no zone.
    ///
    /// # Safety
    /// From `base` on there are [`frames`](LockedPages::frames_of) pages of memory, valid as long as
    /// this lives; those of frames that the manager hands out through this may be read and written,
    /// and nobody else does.
    #[allow(unsafe_code)]
    pub unsafe fn new(manager: Manager<'m, H>, base: NonNull<u8>) -> Option<Self> {
        let (first, frames) = Self::frames_of(&manager)?;
        if !base.addr().get().is_multiple_of(PAGE as usize) {
            return None;
        }
        let mut spans = [Span::default(); MAX_ZONES];
        let mut total = 0;
        for (zone, span) in spans.iter_mut().enumerate().take(manager.zones()) {
            let z = manager.zone_config(zone);
            *span = Span {
                start: z.start.0,
                end: z.start.0 + z.spanned,
                node: z.node,
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
        let zones = || (0..manager.zones()).map(|z| manager.zone_config(z));
        let first = zones().map(|z| z.start.0).min()?;
        let end = zones().map(|z| z.start.0 + z.spanned).max()?;
        Some((Pfn(first), (end - first) as usize))
    }

    /// Does something with the manager, which nobody else uses meanwhile; slab caches wait.
    pub fn with<T>(&self, f: impl FnOnce(&mut Manager<'m, H>) -> T) -> T {
        f(&mut self.manager.lock())
    }
}

// SAFETY: the manager hands a frame out once until it is freed, and blocks at multiples of their
// size; the caller of `new` promised the memory behind them.
#[allow(unsafe_code)]
unsafe impl<H: Host + Send, R: lock_api::RawMutex + Send + Sync> Pages for LockedPages<'_, H, R> {
    fn alloc(&self, r: &PageRequest) -> Option<Pfn> {
        let mut manager = self.manager.lock();
        let got = match r.first_pass_only {
            true => manager.alloc_first_pass(r.node, r.order, r.gfp),
            false => manager.alloc_on(r.node, r.order, r.gfp),
        };
        got.ok()
    }
    fn free(&self, first: Pfn, order: u8) {
        let freed = self.manager.lock().free(first, order);
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
        let free = |z| manager.zone_view(z).free_pages + manager.pcp_pages(z);
        ((0..manager.zones()).map(free).sum(), self.total)
    }
}
