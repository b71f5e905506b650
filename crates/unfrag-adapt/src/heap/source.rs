//! Where a heap's frames come from: for slab caches, which reach the first part of the window alone, and for runs.
//!
//! Invariant: frames are numbered by their address. Each is handed out once until it is given back.
//!
//! `unfrag_slab::MemoryPages` does not serve: what stands below it, a `Memory`, has a directory of all addresses that there may
//! be, where a heap has up to `N` gigabytes of any.

use crate::gigabytes::{AddError, Gigabytes};
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use lock_api::{Mutex, RawMutex};
use unfrag::{MigrateType, Order, Pfn};
use unfrag_slab::{PageRequest, Pages, Window};

/// Bytes of a frame.
pub(super) const FRAME: usize = 4096;

/// Frames that slab caches reach at most: 256 GiB.
pub(super) const REACH: usize = 1 << 26;

/// A lock of what `&mut` guards already.
pub(super) struct Exclusive(AtomicBool);

// SAFETY: Whoever comes second is told so, and does not get in.
unsafe impl RawMutex for Exclusive {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Exclusive = Exclusive(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        assert!(self.try_lock(), "used by two at a time");
    }

    fn try_lock(&self) -> bool {
        // Pairs with the release in `unlock`.
        !self.0.swap(true, Acquire)
    }

    unsafe fn unlock(&self) {
        // Pairs with the acquire in `try_lock`.
        self.0.store(false, Release);
    }
}

/// Frames for slabs and runs.
pub(super) struct Source<const N: usize> {
    pub frames: Mutex<Exclusive, Gigabytes<N>>,
    pub first: u64,
    base: NonNull<u8>,
    /// Frames that it may have, and those that slab caches reach: the first ones.
    pub window: usize,
    reach: usize,
}

// SAFETY: The address is a number here.
unsafe impl<const N: usize> Sync for Source<N> {}

// SAFETY: Frames are numbered by their address, all of them in the window, and handed out once until they are given back.
unsafe impl<const N: usize> Pages for Source<N> {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        let mut all = self.frames.lock();
        let first = if self.reach < self.window {
            let end = self.first + self.reach as u64;
            all.take_before(end, Order(request.order), request.mt())
        } else {
            let frames = 1u64.checked_shl(request.order.into())?;
            all.take(frames, frames, request.mt())
        };
        first.map(Pfn)
    }

    unsafe fn free(&self, first: Pfn, order: u8, mt: MigrateType) {
        self.frames.lock().give(first.0, 1 << order, mt);
    }

    fn window(&self) -> Window {
        Window {
            first: Pfn(self.first),
            frames: self.reach,
            base: self.base,
        }
    }

    fn free_and_total(&self) -> (u64, u64) {
        let frames = self.frames.lock();
        (frames.free(), frames.present())
    }
}

impl<const N: usize> Source<N> {
    /// Without frames as yet. The first one there may be, of so many, is at `base`.
    pub fn new(first: u64, base: NonNull<u8>, window: usize, reach: usize) -> Self {
        Source {
            frames: Mutex::new(Gigabytes::new()),
            first,
            base,
            window,
            reach,
        }
    }

    /// Adds memory.
    ///
    /// # Safety
    /// These frames are memory that nobody uses.
    pub unsafe fn add(&self, first: u64, count: u64) -> Result<(), AddError> {
        let mut frames = self.frames.lock();
        // SAFETY: As the caller says.
        unsafe { frames.add(first, count, FRAME, address) }
    }
}

/// Where a frame is.
pub(super) fn address(frame: u64) -> *mut u8 {
    with_exposed_provenance_mut(frame as usize * FRAME)
}
