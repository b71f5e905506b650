//! A frame allocator for a `static`, in the shape that kernels ask for: an address for a layout, parts given back in any
//! order, memory added at any time.
//!
//! A kernel whose trait has this shape (`alloc(&self, Layout) -> Option<Paddr>`, `dealloc(&self, Paddr, usize)`,
//! `add_free_memory(&self, Paddr, usize)`) implements it with one line each.
//!
//! Invariant: the tables lie in the memory that was added; nothing is taken from a heap.

use crate::gigabytes::{AddError, Gigabytes, whole_frames};
use core::alloc::Layout;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lock_api::{Mutex, RawMutex};
use unfrag::MigrateType;

/// Bytes of a frame.
const FRAME: usize = 4096;

/// Frames of up to `N` gigabytes of physical addresses in which there is memory, behind a lock.
///
/// ```
/// use core::alloc::Layout;
/// use unfrag_adapt::global_frames::GlobalFrames;
/// # struct Room(core::cell::UnsafeCell<[u8; 4 << 20]>);
/// # unsafe impl Sync for Room {}
/// # static MEMORY: Room = Room(core::cell::UnsafeCell::new([0; 4 << 20]));
///
/// // Where the kernel sees physical memory: here at its own address.
/// static FRAMES: GlobalFrames<spin::mutex::SpinMutex<()>> = GlobalFrames::new(|at| at as *mut u8);
///
/// # let (start, bytes) = ((MEMORY.0.get() as usize).next_multiple_of(4096), (4 << 20) - 4096);
/// // SAFETY: Nobody else uses this memory.
/// unsafe { FRAMES.add_free_memory(start, bytes)? };
/// let huge = FRAMES.alloc(Layout::from_size_align(1 << 20, 1 << 20)?).ok_or("no memory")?;
/// assert_eq!(huge % (1 << 20), 0);
/// // SAFETY: It came from there.
/// unsafe {
///     FRAMES.dealloc(huge + 4096, (1 << 20) - 4096);
///     FRAMES.dealloc(huge, 4096);
/// }
/// assert_eq!(FRAMES.free_bytes(), FRAMES.total_bytes());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct GlobalFrames<R, const N: usize = 64> {
    frames: Mutex<R, Gigabytes<N>>,
    reach: fn(usize) -> *mut u8,
    /// Counted and read relaxed: nothing else is read because of it.
    refused: AtomicU64,
}

impl<R: RawMutex, const N: usize> GlobalFrames<R, N> {
    /// Without memory as yet. `reach` leads from a physical address to where its memory is seen.
    pub const fn new(reach: fn(usize) -> *mut u8) -> Self {
        GlobalFrames {
            frames: Mutex::const_new(R::INIT, Gigabytes::new()),
            reach,
            refused: AtomicU64::new(0),
        }
    }

    /// Adds memory: the whole frames of these bytes. The first memory of each gigabyte gives some frames for tables, 19 of
    /// them for a whole one. Where it ends just beyond the boundary of a gigabyte, the few frames there that have no room
    /// for tables are left out; [`total_bytes`](Self::total_bytes) says what can be handed out.
    ///
    /// # Errors
    /// [`AddError`]; nothing has been added then.
    ///
    /// # Safety
    /// It is memory that nobody uses, now or later, and `reach` leads to it.
    pub unsafe fn add_free_memory(&self, start: usize, bytes: usize) -> Result<(), AddError> {
        let (first, count) = whole_frames(start, bytes, FRAME)?;
        let at = |frame: u64| (self.reach)(frame as usize * FRAME);
        let mut frames = self.frames.lock();
        // SAFETY: As the caller says.
        unsafe { frames.add(first, count, FRAME, at) }
    }

    /// Unmovable frames for a layout: its size rounded up to frames, at a multiple of its alignment. `None`, if there are
    /// no such frames, or above a gigabyte.
    pub fn alloc(&self, layout: Layout) -> Option<usize> {
        self.alloc_for(layout, MigrateType::Unmovable)
    }

    /// The same for another kind of use: what its owner moves is [`MigrateType::Movable`].
    pub fn alloc_for(&self, layout: Layout, mt: MigrateType) -> Option<usize> {
        let frames = layout.size().div_ceil(FRAME) as u64;
        let align = layout.align().div_ceil(FRAME) as u64;
        let first = self.frames.lock().take(frames, align, mt)?;
        Some(first as usize * FRAME)
    }

    /// Gives frames back: all of an allocation, or whole frames of it. What is not in use, or no whole frame, is
    /// [refused](Self::refused).
    ///
    /// # Safety
    /// These frames are not used any more.
    pub unsafe fn dealloc(&self, start: usize, bytes: usize) {
        let frames = bytes.div_ceil(FRAME) as u64;
        let first = (start / FRAME) as u64;
        let is_frame = start.is_multiple_of(FRAME);
        // The maps count by the type that is in use there, whatever this says.
        if !is_frame
            || !self
                .frames
                .lock()
                .give(first, frames, MigrateType::Unmovable)
        {
            self.refused.fetch_add(1, Relaxed);
        }
    }

    /// How often something was given back that was not in use. Those frames stay as they were.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Bytes of free frames.
    pub fn free_bytes(&self) -> usize {
        self.frames.lock().free() as usize * FRAME
    }

    /// Bytes of all frames that can be handed out.
    pub fn total_bytes(&self) -> usize {
        self.frames.lock().present() as usize * FRAME
    }
}
