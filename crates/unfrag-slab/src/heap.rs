//! The caches as a program's global allocator, without `std`.
//!
//! A host gives the CPU of the caller ([`CurrentCpu`]), and installs the kmalloc caches into the [`Heap`] once.
//! A caller without a CPU (an interrupt, a thread beyond the number of CPUs, a thread that ends) uses a spare
//! CPU behind a lock.
//!
//! It serves up to 4 MiB at a time, the largest block of pages; and alignments above a page only if
//! the window's first frame lies at an address of that alignment, as its number does.

use crate::cpu::Cpu;
use crate::formulas::PAGE;
use crate::kmalloc::Kmalloc;
use crate::lock::Locked;
use crate::sync::{AtomicU32, Ordering, spin};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use unfrag::Gfp;

/// The CPU of the caller.
pub trait CurrentCpu: Sync {
    /// Calls `f` with the caller's CPU, if it has one. No other `f` may get that CPU meanwhile.
    fn with<R>(&self, f: impl FnOnce(Option<&Cpu<'static>>) -> R) -> R;

    /// Called once, at the first allocation before the heap is installed. It may
    /// [`install`](Heap::install) it.
    fn start(&self, heap: &Heap<Self>)
    where
        Self: Sized,
    {
        let _ = heap;
    }
}

struct Installed {
    sizes: Kmalloc<'static>,
    spare: Locked<Cpu<'static>>,
}

/// A global allocator over slab caches.
pub struct Heap<C> {
    cpus: C,
    state: AtomicU32,
    installed: UnsafeCell<Option<Installed>>,
}

const EMPTY: u32 = 0;
const STARTING: u32 = 1;
const FILLING: u32 = 2;
const READY: u32 = 3;
const FAILED: u32 = 4;

// SAFETY: `installed` is written once, before `state` says READY, and only read after that; its CPU is
// behind a lock.
#[allow(unsafe_code)]
unsafe impl<C: CurrentCpu> Sync for Heap<C> {}

/// The heap has its caches already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlreadyInstalled;

impl core::fmt::Display for AlreadyInstalled {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str("the heap has its caches already; install them once")
    }
}

impl core::error::Error for AlreadyInstalled {}

impl<C: CurrentCpu> Heap<C> {
    /// An empty heap, for a `static`.
    pub const fn new(cpus: C) -> Heap<C> {
        Heap {
            cpus,
            state: AtomicU32::new(EMPTY),
            installed: UnsafeCell::new(None),
        }
    }

    /// Gives the heap its caches, and the CPU for callers without one.
    ///
    /// # Errors
    /// If it has them already.
    #[allow(unsafe_code)]
    pub fn install(
        &self,
        sizes: Kmalloc<'static>,
        spare: Cpu<'static>,
    ) -> Result<(), AlreadyInstalled> {
        let mine = |from| {
            let swapped =
                self.state
                    .compare_exchange(from, FILLING, Ordering::Acquire, Ordering::Relaxed);
            swapped.is_ok()
        };
        if !mine(EMPTY) && !mine(STARTING) && !mine(FAILED) {
            return Err(AlreadyInstalled);
        }
        let installed = Installed {
            sizes,
            spare: Locked::new(spare),
        };
        // SAFETY: only the caller that set FILLING writes until the state is READY.
        unsafe { *self.installed.get() = Some(installed) };
        self.state.store(READY, Ordering::Release);
        Ok(())
    }

    /// The kmalloc caches, once installed.
    pub fn sizes(&self) -> Option<&Kmalloc<'static>> {
        self.ready().map(|i| &i.sizes)
    }

    #[inline]
    fn ready(&self) -> Option<&Installed> {
        if self.state.load(Ordering::Acquire) != READY {
            return None;
        }
        // SAFETY: it is not written any more.
        #[allow(unsafe_code)]
        unsafe {
            (*self.installed.get()).as_ref()
        }
    }

    #[cold]
    fn started(&self) -> Option<&Installed> {
        let first =
            self.state
                .compare_exchange(EMPTY, STARTING, Ordering::Acquire, Ordering::Relaxed);
        if first.is_ok() {
            self.cpus.start(self);
            let still =
                self.state
                    .compare_exchange(STARTING, FAILED, Ordering::Release, Ordering::Relaxed);
            debug_assert!(still.is_ok() || self.state.load(Ordering::Relaxed) == READY);
        }
        while matches!(self.state.load(Ordering::Relaxed), STARTING | FILLING) {
            spin();
        }
        self.ready()
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&Installed, &Cpu<'_>) -> R) -> Option<R> {
        let installed = self.ready().or_else(|| self.started())?;
        Some(self.cpus.with(|cpu| match cpu {
            Some(cpu) => f(installed, cpu),
            None => f(installed, &installed.spare.lock()),
        }))
    }
}

impl<C: CurrentCpu> Heap<C> {
    #[inline]
    fn alloc_with(&self, layout: Layout, gfp: Gfp) -> *mut u8 {
        let got = bytes_for(layout)
            .and_then(|n| self.with(|i, cpu| i.sizes.alloc(cpu, n, gfp).ok()))
            .flatten();
        let Some(memory) = got else { return null_mut() };
        if layout.align() > PAGE as usize && !memory.addr().get().is_multiple_of(layout.align()) {
            // SAFETY: allocated above, and not published.
            #[allow(unsafe_code)]
            unsafe {
                self.dealloc(memory.as_ptr(), layout);
            }
            return null_mut();
        }
        memory.as_ptr()
    }
}

/// Bytes to ask for so that the answer has the layout's alignment; `None` if none has.
fn bytes_for(layout: Layout) -> Option<usize> {
    match layout.align() {
        0..=8 => Some(layout.size()),
        // Powers of two are aligned to themselves up to a page, and whole pages to their order.
        align => layout.size().max(align).checked_next_power_of_two(),
    }
}

// SAFETY: what it hands out is an object that is not handed out elsewhere, of the size class that the layout
// leads to in `alloc` and in `dealloc`, aligned as `bytes_for` says.
#[allow(unsafe_code)]
unsafe impl<C: CurrentCpu> GlobalAlloc for Heap<C> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.alloc_with(layout, Gfp::KERNEL)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.alloc_with(layout, Gfp::KERNEL | Gfp::ZERO)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let (Some(memory), Some(n)) = (NonNull::new(memory), bytes_for(layout)) else {
            return;
        };
        self.with(|i, cpu| {
            // SAFETY: the caller gives the memory up; it came from the same class. A checked
            // cache reports what is wrong to `Pages::fault`.
            let _ = match i.sizes.cache(n) {
                Some(cache) => unsafe { cache.free(cpu, memory) },
                None => unsafe { i.sizes.free(cpu, memory) },
            };
        });
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's size is a valid one.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let class = |l| self.sizes()?.sizes().serving(bytes_for(l)?);
        if class(new).is_some() && class(new) == class(layout) {
            return memory;
        }
        // SAFETY: as the caller says; both blocks are as long as the shorter of the two.
        unsafe {
            let to = self.alloc(new);
            if !to.is_null() {
                to.copy_from_nonoverlapping(memory, layout.size().min(new_size));
                self.dealloc(memory, layout);
            }
            to
        }
    }
}
