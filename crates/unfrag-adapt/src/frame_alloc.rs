//! The traits of the crate `frame-alloc`: `PhysicalAllocator`, `RegionInit` and `AllocatorStats`.
//!
//! Its frames may be as small as 64 bytes and its pools as small as 4 frames, so the tables lie beside the pool, in words
//! that the caller hands in.
//!
//! Invariant: the maps begin at a multiple of 2^18 frames, so that a run's number is aligned as its address is.

use ::frame_alloc::{
    AllocError, AllocatorStats, InitError, PageSize, PhysRange, PhysicalAllocator, RegionInit,
};
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lock_api::{Mutex, RawMutex};
use unfrag::maps::{Engine, EngineLayout, LARGEST_ORDER};
use unfrag::{MigrateType, Order};

/// A pool of frames of one size, behind a lock, for one kind of use.
pub struct Pool<R> {
    base: PageSize,
    mt: MigrateType,
    state: Mutex<R, State>,
    /// Counted and read relaxed: nothing else is read because of it.
    refused: AtomicU64,
}

struct State {
    /// The words, until the pool is initialised.
    words: &'static mut [u64],
    engine: Option<Engine<'static>>,
    /// The first frame of the maps, and the frames of the span in them.
    first: usize,
    span: (u32, u32),
}

/// Words that a pool needs whose span ends so many frames after the last multiple of 2^18 frames before its start: 2^18
/// frames more than it has are always enough.
pub const fn words(frames: u32) -> usize {
    EngineLayout::of(frames).words
}

impl<R: RawMutex> Pool<R> {
    /// A pool of frames of this size for unmovable use, with memory for its tables: [`words`].
    pub const fn new(base: PageSize, words: &'static mut [u64]) -> Self {
        Pool::of(base, words, MigrateType::Unmovable)
    }

    /// The same for another kind of use.
    pub const fn of(base: PageSize, words: &'static mut [u64], mt: MigrateType) -> Self {
        Pool {
            base,
            mt,
            state: Mutex::const_new(
                R::INIT,
                State {
                    words,
                    engine: None,
                    first: 0,
                    span: (0, 0),
                },
            ),
            refused: AtomicU64::new(0),
        }
    }

    /// How often something was given back that was not in use, or memory was added that cannot be.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// The number of base frames of a request, and the alignment of the first one.
    fn frames(&self, ps: PageSize, count: NonZeroUsize) -> Result<(u32, Order), AllocError> {
        let each = ps.log2().checked_sub(self.base.log2());
        let each = each.ok_or(AllocError::InvalidPageSize)?;
        let most = LARGEST_ORDER.frames();
        let frames = 1usize
            .checked_shl(each.into())
            .and_then(|n| n.checked_mul(count.get()));
        let frames = frames
            .and_then(|n| u32::try_from(n).ok())
            .filter(|&n| n <= most);
        Ok((frames.ok_or(AllocError::RequestTooLarge)?, Order(each)))
    }

    /// Calls `f` with the engine and the number of the frame at an address.
    fn at<T>(
        &self,
        phys: usize,
        f: impl FnOnce(&mut Engine<'static>, u32) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.state.lock();
        let number = (phys >> self.base.log2()).checked_sub(state.first)?;
        let is_frame = self.base.is_aligned(phys);
        let number = u32::try_from(number).ok().filter(|_| is_frame)?;
        f(state.engine.as_mut()?, number)
    }
}

// SAFETY: The engine hands out frames of the usable ranges alone, each once until it is given back, in runs that are
// aligned to their size.
unsafe impl<R: RawMutex> PhysicalAllocator for Pool<R> {
    fn allocate_physical(&self, ps: PageSize, count: NonZeroUsize) -> Result<usize, AllocError> {
        let (frames, align) = self.frames(ps, count)?;
        let mut state = self.state.lock();
        let first = state.first;
        let engine = state.engine.as_mut().ok_or(AllocError::OutOfMemory)?;
        let taken = engine.take_run(frames, align, self.mt, true);
        let number = taken.ok_or(AllocError::OutOfMemory)?;
        Ok((first + number as usize) << self.base.log2())
    }

    unsafe fn deallocate_physical(&self, ps: PageSize, count: NonZeroUsize, phys: usize) {
        let frames = self.frames(ps, count).ok();
        let given = frames.and_then(|(frames, _)| {
            self.at(phys, |e, n| {
                e.can_give(n, frames).ok()?;
                e.give_range(n, frames, self.mt).ok()
            })
        });
        if given.is_none() {
            self.refused.fetch_add(1, Relaxed);
        }
    }
}

// SAFETY: On an error nothing is kept; it succeeds once.
unsafe impl<R: RawMutex> RegionInit for Pool<R> {
    unsafe fn try_init(
        &self,
        phys_base: usize,
        span_len: usize,
        usable: &[PhysRange],
    ) -> Result<(), InitError> {
        let mut state = self.state.lock();
        if state.engine.is_some() {
            return Err(InitError::AlreadyInitialized);
        }
        let bytes = self.base.bytes();
        if !self.base.is_aligned(phys_base) {
            return Err(InitError::Misaligned { required: bytes });
        }
        let end = phys_base
            .checked_add(span_len)
            .ok_or(InitError::InvalidSpan)?;
        if span_len == 0 || !self.base.is_aligned(span_len) {
            return Err(InitError::InvalidSpan);
        }
        let mut from = phys_base;
        for (index, r) in usable.iter().enumerate() {
            let stop = r.base.checked_add(r.len).filter(|&stop| stop <= end);
            let is_right = r.len > 0
                && r.base >= from
                && self.base.is_aligned(r.base)
                && self.base.is_aligned(r.len);
            from = stop
                .filter(|_| is_right)
                .ok_or(InitError::InvalidUsable { index })?;
        }
        let start = phys_base >> self.base.log2();
        let first = start & !(LARGEST_ORDER.frames() as usize - 1);
        let all = (end >> self.base.log2()) - first;
        let all = u32::try_from(all).map_err(|_| InitError::InvalidSpan)?;
        let needed = EngineLayout::of(all).words;
        if state.words.len() < needed {
            return Err(InitError::MetadataWontFit {
                required_bytes: needed * 8,
            });
        }
        let number = |at: usize| ((at >> self.base.log2()) - first) as u32;
        let engine = Engine::new(all, core::mem::take(&mut state.words));
        let mut engine = engine.ok_or(InitError::InvalidSpan)?;
        for (index, r) in usable.iter().enumerate() {
            let added = engine.add(number(r.base), (r.len >> self.base.log2()) as u32);
            added.map_err(|_| InitError::InvalidUsable { index })?;
        }
        state.first = first;
        state.span = (number(phys_base), all);
        state.engine = Some(engine);
        Ok(())
    }

    unsafe fn add_usable(&self, base: usize, len: usize) {
        let span = self.state.lock().span;
        let frames = u32::try_from(len >> self.base.log2());
        let frames = frames.ok().filter(|_| self.base.is_aligned(len));
        let added = self.at(base, |e, n| {
            let frames = frames?;
            let is_in_span = n >= span.0 && n.checked_add(frames)? <= span.1;
            (is_in_span && e.add(n, frames).is_ok()).then_some(())
        });
        if added.is_none() {
            self.refused.fetch_add(1, Relaxed);
        }
    }
}

impl<R: RawMutex> AllocatorStats for Pool<R> {
    fn total_bytes(&self) -> usize {
        let state = self.state.lock();
        let present = state.engine.as_ref().map_or(0, |e| e.counts().present);
        (present as usize) << self.base.log2()
    }

    fn free_bytes(&self) -> usize {
        let state = self.state.lock();
        let free = state.engine.as_ref().map_or(0, Engine::free_frames);
        (free as usize) << self.base.log2()
    }

    fn largest_free_bytes(&self) -> usize {
        let state = self.state.lock();
        let Some(engine) = &state.engine else {
            return 0;
        };
        let blocks = engine.free_blocks();
        let has = |order: &usize| {
            blocks
                .of
                .iter()
                .any(|mt| mt.get(*order).is_some_and(|&n| n > 0))
        };
        let largest = (0..=usize::from(LARGEST_ORDER.0)).rev().find(has);
        largest.map_or(0, |order| 1 << order << self.base.log2())
    }
}
