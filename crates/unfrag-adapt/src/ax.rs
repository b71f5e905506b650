//! The traits of the crate `ax-allocator`, and the operations of `ax-alloc` with its kinds of use.
//!
//! - [`Pages`] is a `PageAllocator`: pages of one kind of use.
//! - [`Bytes`] is a `ByteAllocator`: slab caches. The methods of both traits are safe and take bare addresses, so it is making
//!   one that is `unsafe`.
//! - [`Allocator`] has the operations of `ax-alloc`: bytes and pages by kind of use, over one memory, with a callback that
//!   reclaims. Memory that devices reach below 4 GiB is an allocator of its own. Its own trait `AllocatorOps` cannot be
//!   implemented outside, as it returns a type that only it can make; each of its methods is here with the same name and
//!   meaning, `unsafe` where it takes an address back.
//!
//! Addresses are those at which memory is seen. An allocation of pages ends at a gigabyte.

mod traits;

pub use traits::{Bytes, Pages};

use crate::heap;
use crate::holders::Holder;
use ::ax_allocator::{AllocError, AllocResult};
use core::alloc::Layout;
use core::ptr::NonNull;
use lock_api::{Mutex, RawMutex};
use traits::failed;
use unfrag::MigrateType;

/// Bytes of a page of [`Allocator`].
const PAGE: usize = 4096;

/// What memory is for, by the names of `ax-alloc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum UsageKind {
    /// The heap of the kernel.
    RustHeap,
    /// Virtual memory of programs.
    VirtMem,
    /// Page cache of file systems.
    PageCache,
    /// Page tables.
    PageTable,
    /// Stacks of tasks.
    TaskStack,
    /// Memory of devices.
    Dma,
    /// Pages that are held as a value.
    Global,
}

/// Kinds of use.
const KINDS: usize = 7;

impl UsageKind {
    /// How what is used so can be moved: virtual memory by its owner, page cache by dropping it, the rest not at all.
    pub const fn mobility(self) -> MigrateType {
        match self {
            UsageKind::VirtMem => MigrateType::Movable,
            UsageKind::PageCache => MigrateType::Reclaimable,
            _ => MigrateType::Unmovable,
        }
    }

    /// Who holds its pages.
    const fn holder(self) -> Holder {
        Holder::Pages(self as u8)
    }
}

/// Bytes in use by kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usages([usize; KINDS]);

impl Usages {
    /// Bytes of a kind.
    pub fn get(&self, kind: UsageKind) -> usize {
        self.0[kind as usize]
    }
}

/// Has somebody give pages back: it is called with no lock held, and returns how many it freed.
pub type PageReclaimFn = fn(num_pages: usize) -> usize;

/// Pages that reclaim is asked for at least.
const LEAST_RECLAIM: usize = 16;
/// Attempts after a reclaim with progress.
const ATTEMPTS: u32 = 4;

/// The operations of `ax-alloc`, over one memory in up to `N` gigabytes: pages by kind of use, and bytes in slab caches on
/// unmovable pages.
pub struct Allocator<R, const N: usize = 8> {
    state: Mutex<R, State<N>>,
    reclaim: Mutex<R, Reclaim>,
}

struct State<const N: usize> {
    bytes: heap::Bytes<N>,
    usages: Usages,
    refused: u64,
}

struct Reclaim {
    callback: Option<PageReclaimFn>,
    /// It is being called: a request that it makes itself does not call it again.
    is_active: bool,
}

impl<R: RawMutex, const N: usize> Default for Allocator<R, N> {
    fn default() -> Self {
        Allocator::new()
    }
}

impl<R: RawMutex, const N: usize> Allocator<R, N> {
    /// Without memory as yet. What is added later lies within eight times the first memory.
    pub const fn new() -> Self {
        Allocator::with_window(0)
    }

    /// The same where memory lies within so many bytes; see [`heap::Bytes::with_window`].
    pub const fn with_window(bytes: usize) -> Self {
        Allocator {
            state: Mutex::const_new(
                R::INIT,
                State {
                    bytes: heap::Bytes::with_window(bytes),
                    usages: Usages([0; KINDS]),
                    refused: 0,
                },
            ),
            reclaim: Mutex::const_new(
                R::INIT,
                Reclaim {
                    callback: None,
                    is_active: false,
                },
            ),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        "unfrag"
    }

    /// Has this callback give pages back when a request finds none. It must not wait for whoever asks.
    pub fn register_page_reclaim_fn(&self, f: PageReclaimFn) {
        self.reclaim.lock().callback = Some(f);
    }

    /// Begins with this memory.
    ///
    /// # Errors
    /// [`AllocError::InvalidParam`], if it has begun, or if this is too small.
    ///
    /// # Safety
    /// It is memory that nobody uses, now or later, and its provenance has been exposed.
    pub unsafe fn init(&self, start: usize, size: usize) -> AllocResult {
        let mut state = self.state.lock();
        if state.bytes.is_ready() {
            return Err(AllocError::InvalidParam);
        }
        // SAFETY: As the caller says.
        unsafe { state.bytes.add(start, size) }.map_err(failed)
    }

    /// Adds memory.
    ///
    /// # Errors
    /// [`AllocError::MemoryOverlap`]; [`AllocError::InvalidParam`], if it is outside the window, or not initialised.
    ///
    /// # Safety
    /// As for [`init`](Self::init).
    pub unsafe fn add_memory(&self, start: usize, size: usize) -> AllocResult {
        let mut state = self.state.lock();
        if !state.bytes.is_ready() {
            return Err(AllocError::InvalidParam);
        }
        // SAFETY: As the caller says.
        unsafe { state.bytes.add(start, size) }.map_err(failed)
    }

    /// Bytes of the kernel's heap.
    ///
    /// # Errors
    /// [`AllocError::NoMemory`], after reclaim.
    pub fn alloc(&self, layout: Layout) -> AllocResult<NonNull<u8>> {
        let pages = layout.size().div_ceil(PAGE);
        self.retried(pages, |state| {
            let memory = state.bytes.allocate(layout).ok_or(AllocError::NoMemory)?;
            state.count(UsageKind::RustHeap, layout.size() as isize);
            Ok(memory)
        })
    }

    /// Gives bytes back.
    ///
    /// # Safety
    /// They came from [`alloc`](Self::alloc) with this layout, and are not used any more.
    pub unsafe fn dealloc(&self, pos: NonNull<u8>, layout: Layout) {
        let mut state = self.state.lock();
        // SAFETY: As the caller says.
        if unsafe { state.bytes.give_back(pos, layout) } {
            state.count(UsageKind::RustHeap, -(layout.size() as isize));
        } else {
            state.refused += 1;
        }
    }

    /// Pages for a kind of use; `align` is in bytes.
    ///
    /// # Errors
    /// [`AllocError::InvalidParam`] for no page, or an alignment that is no power of two of at least a page;
    /// [`AllocError::NoMemory`], after reclaim.
    pub fn alloc_pages(
        &self,
        num_pages: usize,
        align: usize,
        kind: UsageKind,
    ) -> AllocResult<usize> {
        let (pages, align) = Pages::<PAGE>::request(num_pages, align)?;
        self.retried(num_pages, |state| {
            let first = state
                .bytes
                .take_frames(pages, align, kind.mobility(), kind.holder());
            let first = first.ok_or(AllocError::NoMemory)?;
            state.count(kind, (num_pages * PAGE) as isize);
            Ok(first as usize * PAGE)
        })
    }

    /// These pages for a kind of use.
    ///
    /// # Errors
    /// As [`alloc_pages`](Self::alloc_pages); [`AllocError::NoMemory`] also if some of them are in use.
    pub fn alloc_pages_at(
        &self,
        start: usize,
        num_pages: usize,
        align: usize,
        kind: UsageKind,
    ) -> AllocResult<usize> {
        let pages = Pages::<PAGE>::request_at(start, num_pages, align)?;
        let mut state = self.state.lock();
        let first = (start / PAGE) as u64;
        let bytes = &mut state.bytes;
        if !bytes.take_frames_at(first, pages, kind.mobility(), kind.holder()) {
            return Err(AllocError::NoMemory);
        }
        state.count(kind, (num_pages * PAGE) as isize);
        Ok(start)
    }

    /// Gives pages back: all of an allocation, or some of it. Pages that were not handed out here for this kind of use, a
    /// slab's among them, are [refused](Self::refused).
    ///
    /// # Safety
    /// They came from [`alloc_pages`](Self::alloc_pages) or [`alloc_pages_at`](Self::alloc_pages_at), were not given back
    /// since, and are not used any more: of another holder's pages of the same kind nothing tells that they are his.
    pub unsafe fn dealloc_pages(&self, pos: usize, num_pages: usize, kind: UsageKind) {
        let mut state = self.state.lock();
        let (first, pages) = ((pos / PAGE) as u64, num_pages as u64);
        let are_pages = num_pages > 0 && pos.is_multiple_of(PAGE);
        let bytes = &mut state.bytes;
        if are_pages && bytes.give_frames(first, pages, kind.mobility(), kind.holder()) {
            state.count(kind, -((num_pages * PAGE) as isize));
        } else {
            state.refused += 1;
        }
    }

    /// How often something was given back that was not in use as it was said. It stays as it was.
    pub fn refused(&self) -> u64 {
        self.state.lock().refused
    }

    /// Bytes in use, of all kinds.
    pub fn used_bytes(&self) -> usize {
        self.usages().0.iter().sum()
    }

    /// Bytes of free pages.
    pub fn available_bytes(&self) -> usize {
        self.available_pages() * PAGE
    }

    /// Pages in use, those that slab caches hold among them.
    pub fn used_pages(&self) -> usize {
        let (all, free) = self.state.lock().bytes.frames();
        (all - free) as usize
    }

    /// Free pages.
    pub fn available_pages(&self) -> usize {
        self.state.lock().bytes.frames().1 as usize
    }

    /// Bytes in use by kind.
    pub fn usages(&self) -> Usages {
        self.state.lock().usages
    }

    /// Tries, reclaims so many pages without a lock if there is no memory, and tries again.
    fn retried<T>(
        &self,
        pages: usize,
        attempt: impl Fn(&mut State<N>) -> AllocResult<T>,
    ) -> AllocResult<T> {
        let mut attempts = 0;
        loop {
            match attempt(&mut self.state.lock()) {
                Err(AllocError::NoMemory) => {}
                done => return done,
            }
            attempts += 1;
            if attempts > ATTEMPTS || self.reclaim(pages.max(LEAST_RECLAIM)) == 0 {
                return Err(AllocError::NoMemory);
            }
        }
    }

    /// Calls the callback, unless it is being called.
    fn reclaim(&self, pages: usize) -> usize {
        let callback = {
            let mut reclaim = self.reclaim.lock();
            if core::mem::replace(&mut reclaim.is_active, true) {
                return 0;
            }
            reclaim.callback
        };
        let _active = Active(&self.reclaim);
        callback.map_or(0, |f| f(pages))
    }
}

/// The callback is being called, until this is dropped.
struct Active<'a, R: RawMutex>(&'a Mutex<R, Reclaim>);

impl<R: RawMutex> Drop for Active<'_, R> {
    fn drop(&mut self) {
        self.0.lock().is_active = false;
    }
}

impl<const N: usize> State<N> {
    fn count(&mut self, kind: UsageKind, bytes: isize) {
        let of = &mut self.usages.0[kind as usize];
        *of = of.saturating_add_signed(bytes);
    }
}
