//! [`Pages`] and [`Bytes`], behind the traits of the crate `ax-allocator`.
//!
//! The traits' methods are safe, and take bare addresses: of memory that is added, and of what is given back. So making one
//! of these is `unsafe`. What is given back wrongly is refused and counted all the same, as far as it can be judged.
//!
//! Invariant: each frame in use was handed out here, and only what was handed out is taken back.

use crate::gigabytes::{AddError, Gigabytes, whole_frames};
use crate::heap;
use ::ax_allocator::{AllocError, AllocResult, BaseAllocator, ByteAllocator, PageAllocator};
use core::alloc::Layout;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use unfrag::MigrateType;

/// The largest alignment: 1 GiB, whatever the size of a page.
const LARGEST_ALIGN: usize = 1 << 30;

/// Why memory was not added, as `ax-allocator` says it.
pub(super) fn failed(why: AddError) -> AllocError {
    match why {
        AddError::Overlap => AllocError::MemoryOverlap,
        AddError::TooMany => AllocError::NoMemory,
        _ => AllocError::InvalidParam,
    }
}

/// Pages of `PAGE_SIZE` bytes in up to `N` gigabytes, for one kind of use.
pub struct Pages<const PAGE_SIZE: usize = 4096, const N: usize = 64> {
    frames: Gigabytes<N>,
    mt: MigrateType,
    refused: u64,
}

impl<const PAGE_SIZE: usize, const N: usize> Pages<PAGE_SIZE, N> {
    /// Without memory as yet, for unmovable use.
    ///
    /// # Safety
    /// Whoever calls the safe methods of [`BaseAllocator`] gives it memory that nobody uses, now or later, whose provenance
    /// has been exposed. Whoever calls those of [`PageAllocator`] gives back pages of his own alone.
    pub const unsafe fn new() -> Self {
        // SAFETY: As the caller says.
        unsafe { Pages::of(MigrateType::Unmovable) }
    }

    /// The same for another kind of use.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub const unsafe fn of(mt: MigrateType) -> Self {
        const { assert!(PAGE_SIZE.is_power_of_two() && PAGE_SIZE >= 64) };
        Pages {
            frames: Gigabytes::new(),
            mt,
            refused: 0,
        }
    }

    /// How often pages were given back that were not all in use, or no pages. They stay as they were.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn add(&mut self, start: usize, size: usize) -> Result<(), AddError> {
        let (first, count) = whole_frames(start, size, PAGE_SIZE)?;
        let at = |page: u64| with_exposed_provenance_mut(page as usize * PAGE_SIZE);
        // SAFETY: Who made this said so for whoever adds memory.
        unsafe { self.frames.add(first, count, PAGE_SIZE, at) }
    }

    /// The pages of a request, and the alignment of the first one.
    pub(super) fn request(num_pages: usize, align: usize) -> AllocResult<(u64, u64)> {
        let is_right = align.is_power_of_two() && (PAGE_SIZE..=LARGEST_ALIGN).contains(&align);
        if num_pages == 0 || !is_right {
            return Err(AllocError::InvalidParam);
        }
        Ok((num_pages as u64, (align / PAGE_SIZE) as u64))
    }

    /// The pages of a request for those at an address.
    pub(super) fn request_at(base: usize, num_pages: usize, align: usize) -> AllocResult<u64> {
        let (pages, _) = Self::request(num_pages, align)?;
        let is_aligned = base.is_multiple_of(align);
        is_aligned.then_some(pages).ok_or(AllocError::InvalidParam)
    }
}

impl<const PAGE_SIZE: usize, const N: usize> BaseAllocator for Pages<PAGE_SIZE, N> {
    fn init(&mut self, start: usize, size: usize) {
        let added = self.add(start, size);
        assert!(added.is_ok(), "{size:#x} bytes at {start:#x}: {added:?}");
    }

    fn add_memory(&mut self, start: usize, size: usize) -> AllocResult {
        self.add(start, size).map_err(failed)
    }
}

impl<const PAGE_SIZE: usize, const N: usize> PageAllocator for Pages<PAGE_SIZE, N> {
    const PAGE_SIZE: usize = PAGE_SIZE;

    fn alloc_pages(&mut self, num_pages: usize, align: usize) -> AllocResult<usize> {
        let (pages, align) = Self::request(num_pages, align)?;
        let first = self.frames.take(pages, align, self.mt);
        Ok(first.ok_or(AllocError::NoMemory)? as usize * PAGE_SIZE)
    }

    fn dealloc_pages(&mut self, pos: usize, num_pages: usize) {
        let first = (pos / PAGE_SIZE) as u64;
        let are_pages = num_pages > 0 && pos.is_multiple_of(PAGE_SIZE);
        let given = are_pages && self.frames.give(first, num_pages as u64, self.mt);
        self.refused += u64::from(!given);
    }

    fn alloc_pages_at(
        &mut self,
        base: usize,
        num_pages: usize,
        align: usize,
    ) -> AllocResult<usize> {
        let pages = Self::request_at(base, num_pages, align)?;
        let first = (base / PAGE_SIZE) as u64;
        let taken = self.frames.take_at(first, pages, self.mt);
        taken.then_some(base).ok_or(AllocError::NoMemory)
    }

    fn total_pages(&self) -> usize {
        self.frames.present() as usize
    }

    fn used_pages(&self) -> usize {
        self.total_pages() - self.available_pages()
    }

    fn available_pages(&self) -> usize {
        self.frames.free() as usize
    }
}

/// Slab caches on any memory, for one caller at a time: [`heap::Bytes`] behind the traits.
pub struct Bytes<const N: usize = 8>(heap::Bytes<N>);

impl<const N: usize> Bytes<N> {
    /// Without memory as yet; see [`heap::Bytes::new`].
    ///
    /// # Safety
    /// Whoever calls the safe methods of [`BaseAllocator`] gives it memory that nobody uses, now or later, whose provenance
    /// has been exposed. Whoever calls [`ByteAllocator::dealloc`] has what he gives back from there, with that layout, and
    /// uses it no more.
    pub const unsafe fn new() -> Self {
        Bytes(heap::Bytes::new())
    }

    /// The same for memory in a larger range of addresses; see [`heap::Bytes::with_window`].
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub const unsafe fn with_window(bytes: usize) -> Self {
        Bytes(heap::Bytes::with_window(bytes))
    }

    /// How often something was given back that could not be; see [`heap::Bytes::refused`].
    pub fn refused(&self) -> u64 {
        self.0.refused()
    }
}

impl<const N: usize> BaseAllocator for Bytes<N> {
    fn init(&mut self, start: usize, size: usize) {
        // SAFETY: Who made this said so for whoever adds memory.
        let added = unsafe { self.0.add(start, size) };
        assert!(added.is_ok(), "{size:#x} bytes at {start:#x}: {added:?}");
    }

    fn add_memory(&mut self, start: usize, size: usize) -> AllocResult {
        // SAFETY: As above.
        unsafe { self.0.add(start, size) }.map_err(failed)
    }
}

impl<const N: usize> ByteAllocator for Bytes<N> {
    fn alloc(&mut self, layout: Layout) -> AllocResult<NonNull<u8>> {
        self.0.allocate(layout).ok_or(AllocError::NoMemory)
    }

    fn dealloc(&mut self, pos: NonNull<u8>, layout: Layout) {
        // SAFETY: Who made this said so for whoever gives something back.
        unsafe { self.0.deallocate(pos, layout) };
    }

    fn total_bytes(&self) -> usize {
        self.0.total()
    }

    fn used_bytes(&self) -> usize {
        self.0.used()
    }

    fn available_bytes(&self) -> usize {
        self.0.total().saturating_sub(self.0.used())
    }
}
