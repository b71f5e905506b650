//! The whole manager as a program's allocator: slab caches over the engine, growing with demand.
//!
//! A request takes one of three ways, by its size:
//! - up to 32 KiB: a slab cache of the size ([`Sizes::Fine`](unfrag_slab::Sizes)), through the CPU token of the thread
//!   (`cpus.rs`), mostly without an atomic operation;
//! - up to 32 MiB: a run of frames from the engine, exactly as long as is needed (`pages.rs`);
//! - beyond: a mapping of its own (`big.rs`), which `mremap` makes longer. Zeroed requests from 1 MiB on take this way
//!   too, because the system's pages are zeros already.
//!
//! All state is in `state.rs`, on `ground.rs`. `window.rs` has the addresses, `stock.rs` the free frames, `released.rs` those that the
//! system has back; `fork.rs` keeps it whole when the process forks; `tls.rs` is the thread's word.
//!
//! Invariant: nothing here allocates from the heap itself, so that it may be the allocator of everything else.
#![allow(unsafe_code)]

mod big;
mod cpus;
mod fork;
mod ground;
mod pages;
mod released;
mod state;
mod stats;
mod stock;
mod tls;
mod window;

pub use stats::HeapStats;

use crate::space::FRAME_BYTES;
use ground::misuse;
use pages::{MOST_RUN, Place};
use state::State;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};
use unfrag::Gfp;
use unfrag_slab::Sizes;

/// Zeroed requests of so many bytes get zero pages from the system.
const ZEROED_BY_SYSTEM: usize = 1 << 20;

/// The program's heap: all values of this type are the same one.
///
/// ```
/// #[global_allocator]
/// static HEAP: unfrag_pool::Heap = unfrag_pool::Heap::new();
///
/// let squares: Vec<u64> = (0..1000).map(|n| n * n).collect();
/// assert_eq!(squares[999], 998_001);
/// assert!(HEAP.stats().slab_bytes > 0);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap(());

/// The slab size for a request; `None` if slabs do not serve it.
#[inline(always)]
fn slab_size(size: usize, align: usize) -> Option<usize> {
    const MOST: usize = Sizes::Fine.most() as usize;
    // One that is no power of two is refused where pages are taken.
    if !align.is_power_of_two() {
        return None;
    }
    if align <= 8 {
        return (size <= MOST).then_some(size);
    }
    let size = size.max(align);
    if size > MOST || align > FRAME_BYTES {
        return None;
    }
    if align <= 16 {
        // All sizes from 16 on are multiples of 16.
        return Some(size);
    }
    // Powers of two are aligned to themselves up to a page.
    Some(size.next_power_of_two())
}

impl Heap {
    /// The heap. It takes nothing from the system until the first request.
    pub const fn new() -> Heap {
        Heap(())
    }

    /// `size` bytes at a multiple of `align`. `None` if the system has no memory, or if `align` is no power of two.
    #[inline]
    pub fn allocate(&self, size: usize, align: usize, zeroed: bool) -> Option<NonNull<u8>> {
        let state = State::get()?;
        let Some(size) = slab_size(size, align) else {
            return allocate_pages(state, size, align, zeroed);
        };
        let gfp = if zeroed {
            Gfp::KERNEL | Gfp::ZERO
        } else {
            Gfp::KERNEL
        };
        let got = state.cpus.with(|cpu| state.sizes.alloc(cpu, size, gfp));
        match got {
            Ok(object) => Some(object),
            Err(_) => allocate_in_need(state, size, align, gfp),
        }
    }

    /// Gives memory back.
    ///
    /// An address that is not of the heap, or of memory that is free as the heap can see, ends the program with a message.
    ///
    /// # Safety
    /// The memory came from [`allocate`](Heap::allocate) or [`resize`](Heap::resize), was not given back since, and is not
    /// used any more.
    #[inline]
    pub unsafe fn free(&self, memory: NonNull<u8>) {
        let Some(state) = State::get() else {
            misuse("free of memory of no heap", memory);
        };
        if state.pages.place(memory) == Place::Slab {
            // SAFETY: as the caller says.
            let freed = state
                .cpus
                .with(|cpu| unsafe { state.sizes.free(cpu, memory) });
            if freed.is_err() {
                misuse("free of memory that is not in use", memory);
            }
            return;
        }
        // SAFETY: as the caller says.
        unsafe { free_pages(state, memory) }
    }

    /// Memory of another size with the same content, as far as it fits; the old memory is given back. `None`, and the old
    /// memory is as it was, if the system has no memory.
    ///
    /// # Safety
    /// As [`free`](Heap::free); `align` is that of the request.
    pub unsafe fn resize(
        &self,
        memory: NonNull<u8>,
        align: usize,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller says.
        let usable = unsafe { self.usable_size(memory) };
        // What shrinks by less than half stays where it is.
        if size <= usable && size >= usable / 2 {
            return Some(memory);
        }
        let state = State::get()?;
        if size > ZEROED_BY_SYSTEM && state.pages.place(memory) == Place::Elsewhere {
            state.pages.end_apart(memory);
            // SAFETY: as the caller says.
            let resized = unsafe { state.big.resize(memory, align, size) };
            state.pages.begin_apart(resized.unwrap_or(memory));
            if resized.is_some() {
                return resized;
            }
        }
        let to = self.allocate(size, align, false)?;
        // SAFETY: both are that long, and apart.
        unsafe {
            to.copy_from_nonoverlapping(memory, usable.min(size));
            self.free(memory);
        }
        Some(to)
    }

    /// Bytes that may be used of memory that is in use.
    ///
    /// # Safety
    /// The memory came from [`allocate`](Heap::allocate) or [`resize`](Heap::resize), and was not given back since.
    pub unsafe fn usable_size(&self, memory: NonNull<u8>) -> usize {
        let Some(state) = State::get() else {
            misuse("memory of no heap", memory);
        };
        match state.pages.place(memory) {
            // SAFETY: as the caller says.
            Place::Slab => match unsafe { state.sizes.usable_size(memory) } {
                Ok(bytes) => bytes,
                Err(_) => misuse("size of memory that is not in use", memory),
            },
            Place::Run(frames) => frames as usize * FRAME_BYTES,
            // SAFETY: as the caller says.
            Place::Elsewhere => unsafe { state.big.usable_size(memory) },
        }
    }

    /// Gives free memory back to the system: the pages of empty slabs, and whole free blocks of 2 MiB. Returns the bytes.
    pub fn trim(&self) -> u64 {
        let Some(state) = State::get() else { return 0 };
        state.shrink();
        state.pages.release(0)
    }

    /// Where the memory is.
    pub fn stats(&self) -> HeapStats {
        let Some(state) = State::get() else {
            return HeapStats::default();
        };
        HeapStats {
            slab_bytes: state.slabs.slab_pages() * FRAME_BYTES as u64,
            mapped_bytes: state.big.mapped_bytes(),
            ..state.pages.stats()
        }
    }
}

/// A request in need: empty slabs give their pages back first. Where the heap has no room for a step more, two pages of its
/// own may still be had.
#[cold]
fn allocate_in_need(
    state: &'static State,
    size: usize,
    align: usize,
    gfp: Gfp,
) -> Option<NonNull<u8>> {
    state.shrink();
    let got = state
        .cpus
        .with(|cpu| state.sizes.alloc(cpu, size, gfp).ok());
    got.or_else(|| allocate_apart(state, size, align))
}

/// A request with a mapping of its own.
fn allocate_apart(state: &'static State, size: usize, align: usize) -> Option<NonNull<u8>> {
    let mut got = state.big.allocate(size, align);
    if got.is_none() && state.pages.is_within_limit(size) {
        // What the limit refuses it may grant when all that is free is unmapped.
        state.shrink();
        state.pages.release(0);
        got = state.big.allocate(size, align);
    }
    let memory = got?;
    state.pages.begin_apart(memory);
    Some(memory)
}

/// A request that slabs do not serve.
#[inline(never)]
fn allocate_pages(
    state: &'static State,
    size: usize,
    align: usize,
    zeroed: bool,
) -> Option<NonNull<u8>> {
    if !align.is_power_of_two() {
        return None;
    }
    let by_system = zeroed && size >= ZEROED_BY_SYSTEM;
    if size <= MOST_RUN && align <= MOST_RUN && !by_system {
        let mut got = state.pages.allocate_run(size, align);
        if got.is_none() {
            state.shrink();
            got = state.pages.allocate_run(size, align);
        }
        if let Some(memory) = got {
            if zeroed {
                // SAFETY: the run is new and that long.
                unsafe { memory.write_bytes(0, size) };
            }
            return Some(memory);
        }
    }
    allocate_apart(state, size, align)
}

/// # Safety
/// As [`Heap::free`], for what is not of a slab.
#[inline(never)]
unsafe fn free_pages(state: &'static State, memory: NonNull<u8>) {
    if state.pages.place(memory) == Place::Elsewhere {
        // SAFETY: as the caller says.
        unsafe { state.big.free(memory, || state.pages.end_apart(memory)) };
    } else if !state.pages.free_run(memory) {
        misuse("free of memory that is not in use", memory);
    }
}

// SAFETY: what is handed out is an object, a run or a mapping that nobody else has, aligned as is asked for.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let got = self.allocate(layout.size(), layout.align(), false);
        got.map_or(null_mut(), NonNull::as_ptr)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let got = self.allocate(layout.size(), layout.align(), true);
        got.map_or(null_mut(), NonNull::as_ptr)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, _layout: Layout) {
        if let Some(memory) = NonNull::new(memory) {
            // SAFETY: as the caller says.
            unsafe { self.free(memory) };
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(memory) = NonNull::new(memory) else {
            return null_mut();
        };
        // SAFETY: as the caller says.
        let got = unsafe { self.resize(memory, layout.align(), new_size) };
        got.map_or(null_mut(), NonNull::as_ptr)
    }
}
