//! The addresses of the heap: one range, chosen once, mapped step by step.
//!
//! Nothing is reserved: what is not mapped counts for no limit of the process (`ulimit -v`), so that a program has left what
//! the heap does not use. The range lies below where the system maps by itself, at a distance that it reaches only when
//! hundreds of gigabytes are mapped; what it, or the program, has mapped there all the same is left alone.
//!
//! Invariant: frame `n` of the heap is at `start + n * 4096`; a frame is the heap's from when [`Window::open`] mapped it,
//! until [`Window::close`] unmapped it.

use crate::space::FRAME_BYTES;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::NonNull;
use unfrag::maps::{BLOCK_ORDER, LARGEST_ORDER};

/// Frames of a block of 2 MiB.
pub(super) const BLOCK: u32 = BLOCK_ORDER.frames();

/// What is opened beyond so many frames is backed by huge pages.
pub(super) const HUGE_FROM: u32 = 16 * BLOCK;

/// The range begins at a multiple of this, so that every block is aligned as its order asks for.
const ALIGN: usize = FRAME_BYTES << LARGEST_ORDER.0;

/// Where the range may end below the place that the system chose for a mapping, the best first: 1 TiB, and less where the
/// addresses of a process are fewer.
const DISTANCES: [usize; 4] = [1 << 40, 1 << 37, 1 << 34, 1 << 31];

/// Why addresses were not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Something is mapped there already.
    InUse,
    /// The system has no memory, or the limit of the process is reached.
    NoMemory,
}

/// Bytes of addresses that the process may have, if there is a limit.
pub(super) fn address_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

/// The range.
#[derive(Clone, Copy)]
pub(super) struct Window {
    start: NonNull<u8>,
    frames: u32,
}

impl Window {
    /// A range for so many frames, below a mapping whose place the system chose. `None`, if there is none.
    pub fn below(mapping: NonNull<u8>, frames: u32) -> Option<Window> {
        let bytes = frames as usize * FRAME_BYTES;
        DISTANCES.iter().find_map(|distance| {
            let end = mapping.addr().get().checked_sub(*distance)?;
            // Addresses below the first gigabyte are the program's.
            let start = end.checked_sub(bytes)? & !(ALIGN - 1);
            let start = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(start))?;
            let window = Window { start, frames };
            let free = |frame| window.can_map(frame);
            (start.addr().get() >= ALIGN && free(0) && free(frames - 1)).then_some(window)
        })
    }

    /// Frames of the range.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Where a frame is.
    #[inline]
    pub fn at(&self, frame: u32) -> NonNull<u8> {
        // SAFETY: frames are numbered within the range, which does not wrap around.
        unsafe { self.start.add(frame as usize * FRAME_BYTES) }
    }

    /// The frame of an address, if it is in the range.
    #[inline]
    pub fn frame_of(&self, memory: NonNull<u8>) -> Option<u32> {
        let bytes = memory.addr().get().wrapping_sub(self.start.addr().get());
        let frame = bytes / FRAME_BYTES;
        (frame < self.frames as usize).then_some(frame as u32)
    }

    /// Whether the system would map a frame here.
    fn can_map(&self, frame: u32) -> bool {
        let mapped = self.map(frame, 1, ProtFlags::empty());
        if mapped.is_ok() {
            // SAFETY: mapped by the line above, and used by nobody.
            let _ = unsafe { munmap(self.at(frame).as_ptr().cast(), FRAME_BYTES) };
        }
        mapped.is_ok()
    }

    fn map(&self, first: u32, frames: u32, access: ProtFlags) -> Result<(), Refused> {
        let at = self.at(first).as_ptr().cast();
        let len = frames as usize * FRAME_BYTES;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: a new mapping, which replaces none.
        match unsafe { mmap_anonymous(at, len, access, flags) } {
            Ok(mapped) if mapped == at => {
                // `at` is made from an address, and reaches what is mapped there from now on.
                mapped.expose_provenance();
                Ok(())
            }
            Ok(elsewhere) => {
                // Kernels before 4.17 take the address for a wish.
                // SAFETY: mapped by the call above, and used by nobody.
                let _ = unsafe { munmap(elsewhere, len) };
                Err(Refused::InUse)
            }
            Err(Errno::EXIST) => Err(Refused::InUse),
            Err(_) => Err(Refused::NoMemory),
        }
    }

    /// Makes frames usable that were not. They read as zeros.
    pub fn open(&self, first: u32, frames: u32, huge_pages: bool) -> Result<(), Refused> {
        self.map(first, frames, ProtFlags::READ | ProtFlags::WRITE)?;
        let how = if huge_pages {
            Advice::LinuxHugepage
        } else {
            Advice::LinuxNoHugepage
        };
        let (at, len) = (self.at(first).as_ptr(), frames as usize * FRAME_BYTES);
        // A kernel without huge pages says so; the memory is as good.
        // SAFETY: mapped above; the advice changes no content.
        let _ = unsafe { madvise(at.cast(), len, how) };
        Ok(())
    }

    /// Gives the memory of some free frames back to the system. They read as zeros when they are used again, unless it refuses: then
    /// it is false.
    pub fn release(&self, first: u32, frames: u32) -> bool {
        let (at, len) = (self.at(first).as_ptr(), frames as usize * FRAME_BYTES);
        // SAFETY: the caller has the frames, and nobody refers to what is in them.
        unsafe { madvise(at.cast(), len, Advice::LinuxDontNeed) }.is_ok()
    }

    /// Gives the memory and the addresses of some free frames back to the system; false if it refuses, as where the process
    /// has too many mappings.
    pub fn close(&self, first: u32, frames: u32) -> bool {
        let (at, len) = (self.at(first).as_ptr(), frames as usize * FRAME_BYTES);
        // SAFETY: the caller has the frames, which `open` mapped, and nobody refers to what is in them.
        unsafe { munmap(at.cast(), len) }.is_ok()
    }
}

/// For tests, which have several windows in one process: at the addresses that each would choose if it were the only one.
#[cfg(test)]
pub(super) mod only {
    use super::Window;
    use std::ops::Deref;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    static ONLY: Mutex<()> = Mutex::new(());

    /// What has a window, while nothing else in the process has one. Nothing is mapped there any more when it is dropped.
    pub struct Only<T> {
        pub of: T,
        window: Window,
        _alone: MutexGuard<'static, ()>,
    }

    impl<T> Only<T> {
        pub fn new(make: impl FnOnce() -> Option<T>, window: impl FnOnce(&T) -> Window) -> Only<T> {
            let _alone = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
            let of = make().expect("memory, and addresses");
            let window = window(&of);
            Only { of, window, _alone }
        }
    }

    impl<T> Deref for Only<T> {
        type Target = T;
        fn deref(&self) -> &T {
            &self.of
        }
    }

    impl<T> Drop for Only<T> {
        fn drop(&mut self) {
            self.window.close(0, self.window.frames());
        }
    }
}
