//! The caches as a program's global allocator, without `std`.
//!
//! A host gives the CPU of the caller ([`CurrentCpu`]), and installs the kmalloc caches into the [`Heap`] once.
//! A caller without a CPU (an interrupt, a thread beyond the number of CPUs, a thread that ends) is served past the lists
//! of CPUs, from the slabs of a node.
//!
//! # Interrupts
//! An interrupt may allocate and free if two things hold. [`CurrentCpu::with`] gives it no CPU that it interrupted in the
//! midst of a call. And the caches' lock ([`Slabs::with_lock`](crate::Slabs::with_lock)) switches interrupts off while it is
//! held; with [`SpinLock`], an interrupt waits for ever for the lock that its own CPU holds. No lock is held while pages are
//! taken or given back, so an interrupt in the midst of that may use the heap. It must not create, destroy, shrink or reap a
//! cache.
//!
//! # Sizes
//! It serves up to 4 MiB at a time, the largest block of pages; and alignments above a page only if
//! the window's first frame lies at an address of that alignment, as its number does.

use crate::cpu::Cpu;
use crate::formulas::PAGE;
use crate::kmalloc::Kmalloc;
use crate::lock::SpinLock;
use crate::sync::{AtomicU32, Ordering, spin};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use lock_api::RawMutex;
use unfrag::Gfp;

/// The CPU of the caller.
pub trait CurrentCpu<R: RawMutex + 'static = SpinLock>: Sync {
    /// Calls `f` with the caller's CPU, if it has one. No other `f` may get that CPU meanwhile, on another thread or in an
    /// interrupt; there it gets none.
    fn with<T>(&self, f: impl FnOnce(Option<&Cpu<'static, R>>) -> T) -> T;

    /// Called once, at the first allocation before the heap is installed. It may
    /// [`install`](Heap::install) it. It must not allocate from the heap, and neither may an interrupt meanwhile: others who
    /// ask wait for it.
    fn start(&self, heap: &Heap<Self, R>)
    where
        Self: Sized,
    {
        let _ = heap;
    }
}

/// A global allocator over slab caches whose lock is `R`.
pub struct Heap<C, R: RawMutex + 'static = SpinLock> {
    cpus: C,
    state: AtomicU32,
    installed: UnsafeCell<Option<Kmalloc<'static, R>>>,
}

const EMPTY: u32 = 0;
const STARTING: u32 = 1;
const FILLING: u32 = 2;
const READY: u32 = 3;
const FAILED: u32 = 4;

// SAFETY: `installed` is written once, before `state` says READY, and only read after that.
#[allow(unsafe_code)]
unsafe impl<C: CurrentCpu<R>, R: RawMutex + Send + Sync + 'static> Sync for Heap<C, R> {}

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

impl<C: CurrentCpu<R>, R: RawMutex + 'static> Heap<C, R> {
    /// An empty heap, for a `static`.
    pub const fn new(cpus: C) -> Heap<C, R> {
        Heap {
            cpus,
            state: AtomicU32::new(EMPTY),
            installed: UnsafeCell::new(None),
        }
    }

    /// Gives the heap its caches.
    ///
    /// # Errors
    /// If it has them already.
    #[allow(unsafe_code)]
    pub fn install(&self, sizes: Kmalloc<'static, R>) -> Result<(), AlreadyInstalled> {
        // Acquire: pairs with the release of FAILED, the only state that another thread leaves behind.
        let mine = |from| {
            let swapped =
                self.state
                    .compare_exchange(from, FILLING, Ordering::Acquire, Ordering::Relaxed);
            swapped.is_ok()
        };
        if !mine(EMPTY) && !mine(STARTING) && !mine(FAILED) {
            return Err(AlreadyInstalled);
        }
        // SAFETY: only the caller that set FILLING writes until the state is READY.
        unsafe { *self.installed.get() = Some(sizes) };
        // Pairs with the acquire in `sizes`.
        self.state.store(READY, Ordering::Release);
        Ok(())
    }

    /// The kmalloc caches, once installed.
    #[inline]
    pub fn sizes(&self) -> Option<&Kmalloc<'static, R>> {
        // Acquire: pairs with the release in `install`.
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
    fn started(&self) -> Option<&Kmalloc<'static, R>> {
        // Relaxed: it only elects who starts.
        let first =
            self.state
                .compare_exchange(EMPTY, STARTING, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            self.cpus.start(self);
            // It stays READY if the caches were installed. Release: pairs with the acquire in `install`.
            let _ =
                self.state
                    .compare_exchange(STARTING, FAILED, Ordering::Release, Ordering::Relaxed);
        }
        // Relaxed: `sizes` looks again.
        while matches!(self.state.load(Ordering::Relaxed), STARTING | FILLING) {
            spin();
        }
        self.sizes()
    }

    #[inline]
    fn with<T>(
        &self,
        f: impl FnOnce(&Kmalloc<'static, R>, Option<&Cpu<'static, R>>) -> T,
    ) -> Option<T> {
        let sizes = self.sizes().or_else(|| self.started())?;
        Some(self.cpus.with(|cpu| f(sizes, cpu)))
    }

    #[inline]
    fn alloc_with(&self, layout: Layout, gfp: Gfp) -> *mut u8 {
        let got = bytes_for(layout)
            .and_then(|n| {
                self.with(|sizes, cpu| match cpu {
                    Some(cpu) => sizes.alloc(cpu, n, gfp).ok(),
                    None => sizes.alloc_without_cpu(n, gfp).ok(),
                })
            })
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
unsafe impl<C: CurrentCpu<R>, R: RawMutex + 'static> GlobalAlloc for Heap<C, R> {
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
        self.with(|sizes, cpu| {
            // SAFETY: the caller gives the memory up; it came from the same class. `Pages::fault` is told what is wrong.
            let _ = unsafe {
                match (sizes.cache(n), cpu) {
                    (Some(cache), Some(cpu)) => cache.free(cpu, memory),
                    (Some(cache), None) => cache.free_without_cpu(memory),
                    (None, Some(cpu)) => sizes.free(cpu, memory),
                    (None, None) => sizes.free_without_cpu(memory),
                }
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
