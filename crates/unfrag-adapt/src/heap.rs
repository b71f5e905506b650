//! A heap on any memory: slab caches for what is small, runs of frames for what is large. A start takes less than 1 MiB.
//!
//! - [`Bytes`] is for one caller at a time. [`Heap`] is the same behind a lock: `GlobalAlloc`, and with the feature
//!   `allocator-api2` that crate's `Allocator`.
//! - A kernel with many CPUs gives each its own token instead: `unfrag_slab::Heap`.
//!
//! Invariant: all records, the tables of frames and the maps lie in the memory that was added. They are not touched any more
//! once a heap is dropped.

mod source;

use crate::gigabytes::{AddError, whole_frames};
use crate::holders::{Holder, Holders};
use core::alloc::{GlobalAlloc, Layout};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{NonNull, null_mut};
use lock_api::{Mutex, RawMutex};
use source::{Exclusive, FRAME, REACH, Source, address};
use unfrag::{Gfp, MigrateType};
use unfrag_slab::{CacheFlags, Cpu, Design, FrameEntry, Kmalloc, SlabConfig, Slabs};

/// Of the first memory, so many times as much can be added later around it, unless the heap was made for more.
const GROWS: usize = 8;

/// What lies at the start of the first memory, before the table of frames.
struct Head<const N: usize> {
    source: Source<N>,
    slabs: MaybeUninit<Slabs<'static, Exclusive>>,
}

struct Ready<const N: usize> {
    source: &'static Source<N>,
    sizes: ManuallyDrop<Kmalloc<'static, Exclusive>>,
    cpu: ManuallyDrop<Cpu<'static, Exclusive>>,
    holders: Holders,
}

/// A heap for one caller at a time, in up to `N` gigabytes of addresses.
pub struct Bytes<const N: usize = 8> {
    ready: Option<Ready<N>>,
    window: usize,
    used: usize,
    refused: u64,
}

impl<const N: usize> Default for Bytes<N> {
    fn default() -> Self {
        Bytes::new()
    }
}

impl<const N: usize> Bytes<N> {
    /// Without memory as yet. What is added later lies behind the first memory, within eight times its size.
    pub const fn new() -> Self {
        Bytes::with_window(0)
    }

    /// The same where all memory lies within so many bytes from the start of the first on. Each GiB of them takes 1.125 MiB for
    /// the tables of frames. What is smaller than a page, or two, is taken from the first 256 GiB of them.
    pub const fn with_window(bytes: usize) -> Self {
        Bytes {
            ready: None,
            window: bytes,
            used: 0,
            refused: 0,
        }
    }

    /// Adds memory.
    ///
    /// # Errors
    /// [`AddError`]; [`AddError::Address`], if it lies outside the window.
    ///
    /// # Safety
    /// It is memory that nobody uses, now or later, and its provenance has been exposed.
    pub unsafe fn add(&mut self, start: usize, bytes: usize) -> Result<(), AddError> {
        let (first, frames) = whole_frames(start, bytes, FRAME)?;
        match &self.ready {
            Some(ready) => {
                let source = ready.source;
                let reach = source.first + source.window as u64;
                if first < source.first || first + frames > reach {
                    return Err(AddError::Address);
                }
                // SAFETY: As the caller says.
                unsafe { source.add(first, frames) }
            }
            None => {
                // SAFETY: As the caller says.
                self.ready = Some(unsafe { start_heap(first, frames, self.window, REACH)? });
                Ok(())
            }
        }
    }

    /// Whether it has memory.
    #[cfg(feature = "ax-allocator")]
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// Memory for a layout; `None`, if there is none, or above 1 GiB.
    pub fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let ready = self.ready.as_ref()?;
        let memory = match slab_size(layout).filter(|&n| ready.sizes.cache(n).is_some()) {
            Some(size) => ready.sizes.alloc(&ready.cpu, size, Gfp::KERNEL).ok()?,
            None => {
                let (frames, align) = frames_of(layout);
                let first = self.take_frames(frames, align, MigrateType::Unmovable, Holder::Run)?;
                NonNull::new(address(first))?
            }
        };
        self.used += layout.size();
        Some(memory)
    }

    /// Gives memory back. What is none of this heap, or a run of frames that is not in use as it was handed out, is
    /// [refused](Self::refused).
    ///
    /// # Safety
    /// It came from [`allocate`](Self::allocate) of this heap with this layout, was not given back since, and is not used
    /// any more.
    pub unsafe fn deallocate(&mut self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: As the caller says.
        unsafe { self.give_back(memory, layout) };
    }

    /// The same, and whether it was taken back.
    ///
    /// # Safety
    /// As for [`deallocate`](Self::deallocate).
    pub(crate) unsafe fn give_back(&mut self, memory: NonNull<u8>, layout: Layout) -> bool {
        let Some(ready) = &self.ready else {
            self.refused += 1;
            return false;
        };
        let given = match slab_size(layout).and_then(|n| ready.sizes.cache(n)) {
            // SAFETY: As the caller says; it came from the same cache.
            Some(cache) => unsafe { cache.free(&ready.cpu, memory) }.is_ok(),
            None => {
                let (at, frames) = (memory.addr().get(), frames_of(layout).0);
                let first = (at / FRAME) as u64;
                at.is_multiple_of(FRAME)
                    && self.give_frames(first, frames, MigrateType::Unmovable, Holder::Run)
            }
        };
        match given {
            true => self.used = self.used.saturating_sub(layout.size()),
            false => self.refused += 1,
        }
        given
    }

    /// How often something was given back that could not be: it was not of this heap, or not in use. It stays as it was.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Frames by their number, for a holder.
    pub(crate) fn take_frames(
        &mut self,
        frames: u64,
        align: u64,
        mt: MigrateType,
        holder: Holder,
    ) -> Option<u64> {
        let ready = self.ready.as_mut()?;
        let first = ready.source.frames.lock().take(frames, align, mt)?;
        let at = (first - ready.source.first) as usize;
        ready.holders.set(at, frames as usize, holder);
        Some(first)
    }

    /// These frames.
    #[cfg(feature = "ax-allocator")]
    pub(crate) fn take_frames_at(
        &mut self,
        first: u64,
        frames: u64,
        mt: MigrateType,
        holder: Holder,
    ) -> bool {
        let Some(ready) = &mut self.ready else {
            return false;
        };
        let taken = ready.source.frames.lock().take_at(first, frames, mt);
        if taken {
            let at = (first - ready.source.first) as usize;
            ready.holders.set(at, frames as usize, holder);
        }
        taken
    }

    /// Gives frames back; false, and nothing changes, if they are not all of this holder.
    pub(crate) fn give_frames(
        &mut self,
        first: u64,
        frames: u64,
        mt: MigrateType,
        holder: Holder,
    ) -> bool {
        let Some(ready) = &mut self.ready else {
            return false;
        };
        let at = first.checked_sub(ready.source.first);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let Some(at) = at.filter(|&at| ready.holders.has(at, frames as usize, holder)) else {
            return false;
        };
        let given = ready.source.frames.lock().give(first, frames, mt);
        if given {
            ready.holders.clear(at, frames as usize);
        }
        given
    }

    /// Frames that can be handed out, and those of them that are free.
    pub(crate) fn frames(&self) -> (u64, u64) {
        let count = |r: &Ready<N>| {
            let frames = r.source.frames.lock();
            (frames.present(), frames.free())
        };
        self.ready.as_ref().map_or((0, 0), count)
    }

    /// Bytes of all frames.
    pub fn total(&self) -> usize {
        self.frames().0 as usize * FRAME
    }

    /// Bytes that were asked for and not given back.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Bytes of free frames. Slabs that are in use in part have more room.
    pub fn free(&self) -> usize {
        self.frames().1 as usize * FRAME
    }
}

/// Bytes to ask slab caches for, so that the answer has the layout's alignment; `None` above a frame's.
fn slab_size(layout: Layout) -> Option<usize> {
    match layout.align() {
        0..=8 => Some(layout.size()),
        align if align <= FRAME => layout.size().max(align).checked_next_power_of_two(),
        _ => None,
    }
}

/// Frames for a layout, and the alignment of the first one.
fn frames_of(layout: Layout) -> (u64, u64) {
    let frames = |bytes: usize| bytes.div_ceil(FRAME).max(1) as u64;
    (frames(layout.size()), frames(layout.align()))
}

/// Starts a heap in its first memory. Slab caches reach so many frames of its window.
///
/// # Safety
/// These frames are memory that nobody uses, now or later.
unsafe fn start_heap<const N: usize>(
    first: u64,
    count: u64,
    window: usize,
    reach: usize,
) -> Result<Ready<N>, AddError> {
    let window = match window / FRAME {
        0 => count as usize * GROWS,
        frames => frames.max(count as usize),
    };
    let reach = reach.min(window);
    let head = size_of::<Head<N>>().next_multiple_of(align_of::<FrameEntry>());
    let table_bytes = reach
        .checked_mul(size_of::<FrameEntry>())
        .ok_or(AddError::TooSmall)?;
    let tables = table_bytes.checked_add(Holders::bytes(window));
    let all = tables.and_then(|bytes| bytes.checked_add(head));
    let own = all.ok_or(AddError::TooSmall)?.div_ceil(FRAME) as u64;
    if own >= count {
        return Err(AddError::TooSmall);
    }
    let base = NonNull::new(address(first)).ok_or(AddError::Address)?;
    // SAFETY: As the caller says; the head and the tables fit these frames, which lie at a multiple of a frame, and zeros
    // are entries without a slab, and frames without a holder.
    let (head, table, holders) = unsafe {
        let at = base.cast::<Head<N>>();
        at.write(Head {
            source: Source::new(first, base, window, reach),
            slabs: MaybeUninit::uninit(),
        });
        let table = base.add(head);
        table.write_bytes(0, table_bytes + Holders::bytes(window));
        let holders = table.add(table_bytes).as_ptr();
        let holders = core::slice::from_raw_parts_mut(holders, Holders::bytes(window));
        let table: &'static [FrameEntry] =
            core::slice::from_raw_parts(table.cast().as_ptr(), reach);
        (&mut *at.as_ptr(), table, Holders::new(holders))
    };
    let source: &'static Source<N> = &head.source;
    // SAFETY: As the caller says.
    unsafe { source.add(first + own, count - own)? };
    let config = SlabConfig::new(1);
    // SAFETY: The table is new, and the caches' alone.
    let slabs = unsafe { Slabs::with_new_table(source, table, &config) };
    let slabs: &'static Slabs<'static, Exclusive> =
        head.slabs.write(slabs.map_err(|_| AddError::TooSmall)?);
    let sizes = Kmalloc::new(slabs, Design::Slub, CacheFlags::empty());
    let cpu = slabs.cpu(0);
    Ok(Ready {
        source,
        sizes: ManuallyDrop::new(sizes.map_err(|_| AddError::TooSmall)?),
        cpu: ManuallyDrop::new(cpu.map_err(|_| AddError::TooSmall)?),
        holders,
    })
}

// SAFETY: It is used by one caller at a time; what it points to is its own.
unsafe impl<const N: usize> Send for Bytes<N> {}

/// A heap behind a lock.
///
/// ```
/// use core::alloc::{GlobalAlloc, Layout};
/// use unfrag_adapt::heap::Heap;
///
/// // In a program without `std` it would be the `#[global_allocator]`.
/// static HEAP: Heap<spin::mutex::SpinMutex<()>> = Heap::new();
///
/// let memory = vec![0u8; 1 << 20].leak();
/// // SAFETY: Nobody else uses it.
/// unsafe { HEAP.add(memory.as_mut_ptr().expose_provenance(), memory.len())? };
/// let layout = Layout::new::<[u64; 10]>();
/// // SAFETY: The layout has a size, and is the same for both.
/// unsafe {
///     let object = HEAP.alloc(layout);
///     assert!(!object.is_null());
///     HEAP.dealloc(object, layout);
/// }
/// assert_eq!(HEAP.used(), 0);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Heap<R, const N: usize = 8>(Mutex<R, Bytes<N>>);

impl<R: RawMutex, const N: usize> Heap<R, N> {
    /// Without memory as yet; see [`Bytes::new`].
    pub const fn new() -> Self {
        Heap::with_window(0)
    }

    /// The same for memory in a larger range of addresses; see [`Bytes::with_window`].
    pub const fn with_window(bytes: usize) -> Self {
        Heap(Mutex::const_new(R::INIT, Bytes::with_window(bytes)))
    }

    /// Adds memory; see [`Bytes::add`].
    ///
    /// # Errors
    /// [`AddError`].
    ///
    /// # Safety
    /// As for [`Bytes::add`].
    pub unsafe fn add(&self, start: usize, bytes: usize) -> Result<(), AddError> {
        // SAFETY: As the caller says.
        unsafe { self.0.lock().add(start, bytes) }
    }

    /// Bytes that were asked for and not given back.
    pub fn used(&self) -> usize {
        self.0.lock().used()
    }

    /// Bytes of free frames.
    pub fn free(&self) -> usize {
        self.0.lock().free()
    }

    /// How often something was given back that could not be; see [`Bytes::refused`].
    pub fn refused(&self) -> u64 {
        self.0.lock().refused()
    }
}

impl<R: RawMutex, const N: usize> Default for Heap<R, N> {
    fn default() -> Self {
        Heap::new()
    }
}

// SAFETY: What it hands out is memory of the layout, for one caller until it is given back.
unsafe impl<R: RawMutex, const N: usize> GlobalAlloc for Heap<R, N> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = self.0.lock().allocate(layout);
        memory.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if let Some(memory) = NonNull::new(memory) {
            // SAFETY: As the caller says.
            unsafe { self.0.lock().deallocate(memory, layout) };
        }
    }
}

#[cfg(feature = "allocator-api2")]
// SAFETY: As for `GlobalAlloc`. A reference can be copied, and leads to the same heap.
unsafe impl<R: RawMutex, const N: usize> allocator_api2::alloc::Allocator for &Heap<R, N> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
        let memory = match layout.size() {
            0 => NonNull::new(core::ptr::without_provenance_mut(layout.align())),
            _ => self.0.lock().allocate(layout),
        };
        let memory = memory.ok_or(allocator_api2::alloc::AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 {
            // SAFETY: As the caller says.
            unsafe { self.0.lock().deallocate(memory, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    /// What slab caches reach is less than the heap has.
    #[test]
    fn slabs_stay_within_reach_and_runs_are_anywhere() {
        const FRAMES: usize = 1024;
        for reach in [300, 512, 700, FRAMES, usize::MAX] {
            let layout = Layout::from_size_align(FRAMES * FRAME, FRAME).expect("a layout");
            // SAFETY: it has a size.
            let memory = unsafe { std::alloc::alloc(layout) };
            let start = memory.expose_provenance();
            let first = (start / FRAME) as u64;
            // SAFETY: the memory is new.
            let ready = unsafe { start_heap::<2>(first, FRAMES as u64, FRAMES * FRAME, reach) };
            let mut heap = Bytes {
                ready: Some(ready.expect("a heap")),
                ..Bytes::with_window(FRAMES * FRAME)
            };
            let free = heap.free();
            let objects = Layout::new::<[u64; 16]>();
            let all = |heap: &mut Bytes<2>, layout| -> Vec<NonNull<u8>> {
                std::iter::from_fn(|| heap.allocate(layout)).collect()
            };
            let small = all(&mut heap, objects);
            let frame = |p: &NonNull<u8>| (p.addr().get() - start) / FRAME;
            assert!(small.iter().all(|p| frame(p) < reach), "{reach}");
            let large = all(&mut heap, Layout::new::<[u8; 9 * FRAME]>());
            assert_eq!(large.iter().any(|p| frame(p) >= reach), reach < FRAMES);
            let few = reach.min(FRAMES) * FRAME / 128 / 2;
            assert!(small.len() > few, "{reach}: {} objects", small.len());
            for (all, layout) in [(small, objects), (large, Layout::new::<[u8; 9 * FRAME]>())] {
                for object in all {
                    // SAFETY: taken above, and used by nobody.
                    unsafe { heap.deallocate(object, layout) };
                }
            }
            assert_eq!((heap.refused(), heap.used()), (0, 0));
            assert!(heap.free() + (64 << 12) >= free, "some slabs stay");
            // SAFETY: allocated above, and the heap is used no more.
            unsafe { std::alloc::dealloc(memory, layout) };
        }
    }
}
