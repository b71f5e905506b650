//! The addresses of a pool: reserved at once, usable arena by arena.
//!
//! Invariant: frame `n` of the pool is at `start + n * 4096`, whether it is usable or not; no more addresses are kept.
#![allow(unsafe_code)]

use crate::error::PoolError;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};
use std::ptr::{NonNull, null_mut};
use unfrag::maps::LARGEST_ORDER;

/// Bytes of a frame.
pub const FRAME_BYTES: usize = 4096;

/// The largest block of so many bytes: where addresses begin at a multiple of it, every block is aligned as its order asks
/// for.
fn largest_block(bytes: usize) -> usize {
    let fits = FRAME_BYTES << bytes.div_ceil(FRAME_BYTES).max(1).ilog2();
    fits.min(FRAME_BYTES << LARGEST_ORDER.0)
}

/// Reserved addresses.
pub(crate) struct Space {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it is a range of addresses; who may touch which of them is a question of the frames there.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl Space {
    /// Reserves addresses for so many frames. No memory is used as yet.
    pub fn new(frames: u64) -> Result<Space, PoolError> {
        let too_large = PoolError::TooLarge { frames };
        let bytes = usize::try_from(frames.max(1))
            .ok()
            .and_then(|n| n.checked_mul(FRAME_BYTES));
        let Some(len) = bytes else {
            return Err(too_large);
        };
        let align = largest_block(len);
        let Some(longer) = len.checked_add(align - FRAME_BYTES) else {
            return Err(too_large);
        };
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let mapped = unsafe { mmap_anonymous(null_mut(), longer, ProtFlags::empty(), flags) };
        let mapped = mapped.map_err(|e| PoolError::system("addresses cannot be reserved", e))?;
        let Some(mapped) = NonNull::new(mapped.cast::<u8>()) else {
            return Err(too_large);
        };
        let skip = mapped.addr().get().next_multiple_of(align) - mapped.addr().get();
        // SAFETY: less than an alignment, by which the mapping is longer than `len`; nobody uses what lies before and
        // behind. If it cannot be given back, it is lost, which takes addresses only.
        let start = unsafe {
            let start = mapped.add(skip);
            for (at, bytes) in [(mapped, skip), (start.add(len), longer - len - skip)] {
                if bytes > 0 {
                    let _ = munmap(at.as_ptr().cast(), bytes);
                }
            }
            start
        };
        Ok(Space { start, len })
    }

    /// Frames that there are addresses for.
    pub fn frames(&self) -> u32 {
        (self.len / FRAME_BYTES) as u32
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
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_many_as_were_asked_for_and_aligned_for_their_largest_block() {
        for frames in [0_u64, 1, 3, 512, 1000, 1 << 14, (1 << 18) + 1] {
            let space = Space::new(frames).expect("addresses");
            assert_eq!(u64::from(space.frames()), frames.max(1));
            let block = largest_block(space.len);
            assert!(block <= space.len.max(FRAME_BYTES) && space.len < 2 * block.max(1 << 29));
            assert!(space.at(0).addr().get().is_multiple_of(block), "{frames}");
        }
        let error = Space::new(u64::MAX).err();
        assert!(matches!(error, Some(PoolError::TooLarge { .. })));
        assert_eq!(largest_block(usize::MAX / 2), 1 << 30);
    }
}
