//! The addresses of a pool: reserved at once, usable arena by arena.
//!
//! Invariant: frame `n` of the pool is at `start + n * 4096`, whether it is usable or not.
#![allow(unsafe_code)]

use crate::error::PoolError;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};
use std::ptr::{NonNull, null_mut};
use unfrag::maps::LARGEST_ORDER;

/// Bytes of a frame.
pub const FRAME_BYTES: usize = 4096;

/// Addresses begin at a multiple of this, so that every block is aligned as its order asks for.
const ALIGN: usize = FRAME_BYTES << LARGEST_ORDER.0;

/// Reserved addresses.
pub(crate) struct Space {
    mapped: NonNull<u8>,
    len: usize,
    start: NonNull<u8>,
}

// SAFETY: it is a range of addresses; who may touch which of them is a question of the frames there.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl Space {
    /// Reserves addresses for so many frames. No memory is used as yet.
    pub fn new(frames: u64) -> Result<Space, PoolError> {
        let bytes = frames as usize * FRAME_BYTES;
        let len = bytes
            .checked_add(ALIGN)
            .ok_or(PoolError::TooLarge { frames })?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let mapped = unsafe { mmap_anonymous(null_mut(), len, ProtFlags::empty(), flags) };
        let mapped = mapped.map_err(|e| PoolError::system("addresses cannot be reserved", e))?;
        let mapped: NonNull<u8> =
            NonNull::new(mapped.cast()).ok_or(PoolError::TooLarge { frames })?;
        let skip = mapped.addr().get().next_multiple_of(ALIGN) - mapped.addr().get();
        // SAFETY: less than ALIGN, by which the mapping is longer than what was asked for.
        let start = unsafe { mapped.add(skip) };
        Ok(Space { mapped, len, start })
    }

    /// Where a frame is.
    #[inline]
    pub fn at(&self, frame: u32) -> NonNull<u8> {
        // SAFETY: frames are numbered within the reserved addresses.
        unsafe { self.start.add(frame as usize * FRAME_BYTES) }
    }

    /// Makes some frames usable.
    pub fn open(&self, first: u32, frames: u32, how: &Backing) -> Result<(), PoolError> {
        let (at, len) = (
            self.at(first).as_ptr().cast(),
            frames as usize * FRAME_BYTES,
        );
        // SAFETY: reserved addresses of ours, which nobody has used.
        unsafe {
            mprotect(at, len, MprotectFlags::READ | MprotectFlags::WRITE)
                .map_err(|e| PoolError::system("memory cannot be made usable", e))?;
            let huge = if how.huge_pages {
                Advice::LinuxHugepage
            } else {
                Advice::LinuxNoHugepage
            };
            // A kernel without huge pages says so; the memory is as good.
            let _ = madvise(at, len, huge);
            if let Some(node) = how.node {
                prefer_node(at.cast(), len, node)?;
            }
            if how.populate {
                madvise(at, len, Advice::LinuxPopulateWrite)
                    .map_err(|e| PoolError::system("memory cannot be had from the system", e))?;
            }
        }
        Ok(())
    }

    /// Gives the memory of some free frames back to the system. They read as zeros when they are used again.
    pub fn release(&self, first: u32, frames: u32) -> Result<(), PoolError> {
        let (at, len) = (
            self.at(first).as_ptr().cast(),
            frames as usize * FRAME_BYTES,
        );
        // SAFETY: the caller has the frames, and nobody refers to what is in them.
        unsafe { madvise(at, len, Advice::LinuxDontNeed) }
            .map_err(|e| PoolError::system("memory cannot be released", e))
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: a mapping of ours; frames that are in use keep the pool.
        let _ = unsafe { munmap(self.mapped.as_ptr().cast(), self.len) };
    }
}

/// How an arena is backed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backing {
    pub huge_pages: bool,
    /// All memory is had from the system at once.
    pub populate: bool,
    /// The NUMA node that it should be on.
    pub node: Option<usize>,
}

/// `MPOL_PREFERRED` of `mbind`.
const PREFERRED: usize = 1;

/// Has memory come from a node, as long as there is some.
///
/// # Safety
/// The addresses are a mapping of the caller.
unsafe fn prefer_node(at: *mut u8, len: usize, node: usize) -> Result<(), PoolError> {
    const BITS: usize = usize::BITS as usize;
    let mut mask = [0_usize; 16];
    if let Some(word) = mask.get_mut(node / BITS) {
        *word = 1 << (node % BITS);
    }
    // SAFETY: the mask has as many bits as is said.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            at,
            len,
            PREFERRED,
            mask.as_ptr(),
            mask.len() * BITS,
            0,
        )
    };
    if failed == 0 {
        return Ok(());
    }
    let e = std::io::Error::last_os_error();
    Err(PoolError::System {
        what: "memory cannot be had from its NUMA node",
        source: e,
    })
}
