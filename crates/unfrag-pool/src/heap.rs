//! The whole manager as a program's allocator: slab caches over the engine, growing with demand.
//!
//! A request takes one of three ways, by its size:
//! - up to 2 MiB: what the thread keeps free of that class (`front.rs`), without a lock or an atomic operation that writes. Behind
//!   it are batches that all threads share (`depot.rs`), and behind those slab caches for up to 32 KiB, runs of frames beyond
//!   (`store.rs`);
//! - up to 32 MiB, and alignments above a page: a run of frames from the engine, exactly as long as is needed (`pages.rs`);
//! - beyond: a mapping of its own (`big.rs`), which `mremap` makes longer.
//!
//! All state is in `state.rs`, on `ground.rs`. `classes.rs` has the sizes, `mark.rs` what free memory is known by, `fronts.rs` who
//! has which front. `window.rs` has the addresses, `stock.rs` the free frames, `release.rs` when the system gets some back, `released.rs` those that it has,
//! `touched.rs` those that are no zeros; `fork.rs` keeps it whole when the process forks; `tls.rs` is the thread's word.
//!
//! Invariant: nothing here allocates from the heap itself, so that it may be the allocator of everything else.
#![allow(unsafe_code)]

mod big;
mod classes;
mod depot;
mod fork;
mod front;
mod fronts;
mod ground;
mod mark;
mod pages;
mod release;
mod released;
mod state;
mod stats;
mod stock;
mod store;
mod tls;
mod touched;
mod window;

pub use stats::HeapStats;

use crate::space::FRAME_BYTES;
use classes::{MOST, MOST_OBJECT, bytes_of, class_of};
use front::Front;
use ground::{Errno, misuse};
use pages::{MOST_RUN, Place};
use state::State;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};

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

/// The class of a request, if it has one.
#[inline(always)]
fn class_for(size: usize, align: usize) -> Option<usize> {
    if align <= 16 && align.is_power_of_two() {
        // All sizes are multiples of 16.
        return (size <= MOST).then(|| class_of(size));
    }
    class_for_aligned(size, align)
}

fn class_for_aligned(size: usize, align: usize) -> Option<usize> {
    // An alignment that is no power of two is refused where pages are taken.
    if !align.is_power_of_two() || align > FRAME_BYTES || size > MOST {
        return None;
    }
    let size = size.max(align);
    // Objects of powers of two are aligned to themselves up to a page, runs to a page.
    Some(class_of(match size > MOST_OBJECT {
        true => size,
        false => size.next_power_of_two(),
    }))
}

impl Heap {
    /// The heap. It takes nothing from the system until the first request.
    pub const fn new() -> Heap {
        Heap(())
    }

    /// `size` bytes at a multiple of `align`. `None` if the system has no memory, or if `align` is no power of two.
    #[inline]
    pub fn allocate(&self, size: usize, align: usize, zeroed: bool) -> Option<NonNull<u8>> {
        let Some(class) = class_for(size, align) else {
            return allocate_large(size, align, zeroed);
        };
        if let Some(memory) = Front::own().and_then(|front| front.take(class)) {
            if zeroed {
                // SAFETY: it is new, and that long.
                unsafe { memory.write_bytes(0, size) };
            }
            return Some(memory);
        }
        allocate_elsewhere(class, size, zeroed)
    }

    /// What [`allocate`](Heap::allocate) tries first: memory that the thread keeps free, if it has some for this size.
    #[inline]
    pub fn allocate_kept(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let class = class_for(size, align)?;
        Front::own()?.take(class)
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
        // SAFETY: as the caller says.
        let kept = Front::own().is_some_and(|front| unsafe { front.put(memory) });
        if !kept {
            // SAFETY: as the caller says.
            unsafe { free_elsewhere(memory) };
        }
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
        if size > MOST && state.store.pages.place(memory) == Place::Elsewhere {
            state.store.pages.end_apart(memory);
            // SAFETY: as the caller says.
            let resized = unsafe { state.big.resize(memory, align, size) };
            state.store.pages.begin_apart(resized.unwrap_or(memory));
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
        match state.store.pages.place(memory) {
            // SAFETY: a piece of a class is mapped.
            Place::Class(class)
                if !is_pending(memory) && !unsafe { state.store.secret.is_set(memory) } =>
            {
                bytes_of(class)
            }
            Place::Class(_) | Place::Nothing => misuse("size of memory that is not in use", memory),
            Place::Run(frames) => frames as usize * FRAME_BYTES,
            Place::Elsewhere => state.big.usable_size(memory),
        }
    }

    /// Gives free memory back to the system: the pages of empty slabs, and whole free blocks of 2 MiB. Returns the bytes.
    pub fn trim(&self) -> u64 {
        let Some(state) = State::get() else { return 0 };
        state.shrink();
        state.store.pages.release(0)
    }

    /// Where the memory is.
    pub fn stats(&self) -> HeapStats {
        let Some(state) = State::get() else {
            return HeapStats::default();
        };
        HeapStats {
            slab_bytes: state.store.slabs.slab_pages() * FRAME_BYTES as u64,
            mapped_bytes: state.big.mapped_bytes(),
            mappings: state.big.count(),
            kept_bytes: state.store.kept_bytes(),
            ..state.store.pages.stats()
        }
    }
}

/// Memory of a class that the thread has not.
#[cold]
#[inline(never)]
fn allocate_elsewhere(class: usize, size: usize, zeroed: bool) -> Option<NonNull<u8>> {
    let state = State::get()?;
    let got = match state.fronts.own(&state.store) {
        Some(front) => front.take_elsewhere(class),
        None => state.store.fetch_one(class),
    };
    let in_need = || {
        // What is free goes back to the frames first.
        state.shrink();
        state.store.fetch_one(class)
    };
    let Some((memory, is_zero)) = got.or_else(in_need) else {
        // Where the heap has no room for a step more, a page of its own may still be had.
        return allocate_apart(state, size, FRAME_BYTES);
    };
    if !is_zero {
        // SAFETY: it is new, two words long at least, and as long as is asked for.
        unsafe {
            mark::clear(memory);
            if zeroed {
                memory.write_bytes(0, size);
            }
        }
    }
    Some(memory)
}

/// A request with a mapping of its own.
fn allocate_apart(state: &'static State, size: usize, align: usize) -> Option<NonNull<u8>> {
    let mut got = state.big.allocate(size, align);
    if got.is_none() && state.store.pages.is_within_limit(size) {
        // What the limit refuses it may grant when all that is free is unmapped.
        state.shrink();
        state.store.pages.release(0);
        got = state.big.allocate(size, align);
    }
    let memory = got?;
    state.store.pages.begin_apart(memory);
    Some(memory)
}

/// A request that has no class.
#[inline(never)]
fn allocate_large(size: usize, align: usize, zeroed: bool) -> Option<NonNull<u8>> {
    if !align.is_power_of_two() {
        return None;
    }
    let state = State::get()?;
    if size <= MOST_RUN && align <= MOST_RUN {
        let mut got = state.store.pages.allocate_run(size, align);
        if got.is_none() {
            state.shrink();
            got = state.store.pages.allocate_run(size, align);
        }
        if let Some((memory, is_zero)) = got {
            if zeroed && !is_zero {
                // SAFETY: the run is new and that long.
                unsafe { memory.write_bytes(0, size) };
            }
            return Some(memory);
        }
    }
    allocate_apart(state, size, align)
}

/// Whether this thread freed the memory a moment ago.
fn is_pending(memory: NonNull<u8>) -> bool {
    Front::own().is_some_and(|front| front.is_pending(memory))
}

/// When the program ends, what its thread has freed last is looked at as well.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn check() {
        if let Some(front) = Front::own() {
            front.check_pending();
        }
    }
    check
};

/// # Safety
/// As [`Heap::free`], for what the thread does not keep.
#[cold]
#[inline(never)]
unsafe fn free_elsewhere(memory: NonNull<u8>) {
    let _errno = Errno::keep();
    let Some(state) = State::get() else {
        misuse("free of memory of no heap", memory);
    };
    let store = &state.store;
    match store.pages.place(memory) {
        // SAFETY: a piece of a class is mapped.
        Place::Class(class) if !is_pending(memory) && !unsafe { store.secret.is_set(memory) } => {
            // SAFETY: the caller gives it up, and it is two words long at least.
            unsafe { free_of_class(state, class, memory) };
        }
        Place::Elsewhere => {
            let before = || store.pages.end_apart(memory);
            // SAFETY: as the caller says.
            unsafe { state.big.free(memory, before) };
        }
        Place::Run(_) if store.pages.free_run(memory) => {}
        _ => misuse("free of memory that is not in use", memory),
    }
}

/// # Safety
/// The caller gives up memory of that class.
unsafe fn free_of_class(state: &'static State, class: usize, memory: NonNull<u8>) {
    if let Some(front) = state.fronts.own(&state.store) {
        front.make_room(class);
        // SAFETY: as the caller says.
        if unsafe { front.put(memory) } {
            return;
        }
    }
    // SAFETY: as the caller says.
    unsafe { state.store.secret.set(memory) };
    state.store.give_up(class, &[memory]);
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
