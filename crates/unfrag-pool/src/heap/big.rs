//! Requests with a mapping of their own. Before the memory lies a [`Head`].

use super::ground::misuse;
use crate::space::FRAME_BYTES;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What lies before the memory.
#[repr(C)]
struct Head {
    /// The start and the length of the mapping.
    base: usize,
    len: usize,
    /// Says that this is a head.
    mark: usize,
    _pad: usize,
}

impl Head {
    fn mark(base: usize, len: usize) -> usize {
        // Not zero for zeros, which are what memory mostly holds.
        (base ^ len.rotate_left(32) ^ 0x756E_6672_6167).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// All mappings.
#[derive(Debug, Default)]
pub(super) struct Big {
    /// Bytes of them: a number to look at, which orders nothing.
    mapped: AtomicU64,
    /// How many there are.
    count: AtomicU64,
}

impl Big {
    /// A mapping of its own. Its memory is all zeros.
    pub fn allocate(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let before = align.max(FRAME_BYTES);
        let len = size
            .checked_add(before)?
            .checked_next_multiple_of(FRAME_BYTES)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // An alignment above that of a page is found within a longer mapping.
        let longer = len.checked_add(before - FRAME_BYTES)?;
        if isize::try_from(longer).is_err() {
            return None;
        }
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base = unsafe { mmap_anonymous(null_mut(), longer, access, MapFlags::PRIVATE) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        let at = (base.addr().get() + FRAME_BYTES).next_multiple_of(before);
        let memory = base.with_addr(at.try_into().ok()?);
        write_head(memory, base.addr().get(), longer);
        self.mapped.fetch_add(longer as u64, Relaxed);
        self.count.fetch_add(1, Relaxed);
        Some(memory)
    }

    /// Bytes that may be used.
    ///
    /// # Safety
    /// As [`head_of`].
    pub unsafe fn usable_size(&self, memory: NonNull<u8>) -> usize {
        // SAFETY: as the caller says.
        let (base, len) = unsafe { head_of(memory) };
        base + len - memory.addr().get()
    }

    /// Ends a mapping, after a call of `before` if it is one.
    ///
    /// # Safety
    /// The caller gives up memory that came from [`allocate`](Big::allocate) or [`resize`](Big::resize).
    pub unsafe fn free(&self, memory: NonNull<u8>, before: impl FnOnce()) {
        // SAFETY: as the caller says.
        let (base, len) = unsafe { head_of(memory) };
        before();
        self.mapped.fetch_sub(len as u64, Relaxed);
        self.count.fetch_sub(1, Relaxed);
        // SAFETY: a mapping of ours, which the caller gives up.
        let _ = unsafe { munmap(memory.as_ptr().with_addr(base).cast(), len) };
    }

    /// Makes the mapping longer or shorter; it may move. `None`, and the mapping is as it was, if the system cannot.
    ///
    /// # Safety
    /// As [`free`](Big::free).
    pub unsafe fn resize(
        &self,
        memory: NonNull<u8>,
        align: usize,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller says.
        let (base, len) = unsafe { head_of(memory) };
        let before = memory.addr().get() - base;
        let new_len = size
            .checked_add(before)?
            .checked_next_multiple_of(FRAME_BYTES)?;
        let flags = if align <= FRAME_BYTES {
            MremapFlags::MAYMOVE
        } else {
            MremapFlags::empty()
        };
        let old = memory.as_ptr().with_addr(base).cast();
        // SAFETY: a mapping of ours, which nobody else uses.
        let moved = unsafe { mremap(old, len, new_len, flags) };
        let moved = NonNull::new(moved.ok()?.cast::<u8>())?;
        // SAFETY: the memory is as far into the mapping as before.
        let memory = unsafe { moved.add(before) };
        write_head(memory, moved.addr().get(), new_len);
        self.mapped.fetch_add(new_len as u64, Relaxed);
        self.mapped.fetch_sub(len as u64, Relaxed);
        Some(memory)
    }

    /// How many mappings there are.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Bytes of all mappings.
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped.load(Relaxed)
    }
}

fn write_head(memory: NonNull<u8>, base: usize, len: usize) {
    let head = Head {
        base,
        len,
        mark: Head::mark(base, len),
        _pad: 0,
    };
    // SAFETY: at least a page of the mapping lies before the memory.
    unsafe { memory.cast::<Head>().sub(1).write(head) };
}

/// The start and the length of the mapping of memory. Another address is a misuse, found as far as can be.
///
/// # Safety
/// What lies before the memory can be read, as it can where it has a head.
unsafe fn head_of(memory: NonNull<u8>) -> (usize, usize) {
    let aligned = memory.addr().get().is_multiple_of(FRAME_BYTES);
    if aligned {
        // SAFETY: as the caller says.
        let head = unsafe { memory.cast::<Head>().sub(1).read() };
        if head.mark == Head::mark(head.base, head.len) {
            return (head.base, head.len);
        }
    }
    misuse("memory that is not of the heap", memory)
}
