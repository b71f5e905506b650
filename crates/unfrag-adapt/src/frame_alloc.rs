//! The traits of the crate `frame-alloc`: `PhysicalAllocator`, `RegionInit` and `AllocatorStats`.
//!
//! Its frames may be as small as 64 bytes and its pools as small as 4 frames, so the tables lie beside the pool, in words
//! that the caller hands in.
//!
//! Invariant: frames are numbered by their addresses, so that a run's number is aligned as its address is.

use ::frame_alloc::{
    AllocError, AllocatorStats, InitError, PageSize, PhysRange, PhysicalAllocator, RegionInit,
};
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lock_api::{Mutex, RawMutex};
use unfrag::maps::{Engine, EngineLayout, Gigabyte, LARGEST_ORDER};
use unfrag::{MigrateType, Order, Pfn};

/// Frames of a gigabyte.
const GIGABYTE: u64 = LARGEST_ORDER.frames() as u64;

type Frames<const G: usize> = Engine<'static, [Gigabyte<'static>; G]>;

/// A pool of frames of one size, behind a lock, for one kind of use. Its span lies in at most `G` runs of 2^18 frames, each
/// of which begins at a multiple of as many.
pub struct Pool<R, const G: usize = 2> {
    base: PageSize,
    mt: MigrateType,
    state: Mutex<R, State<G>>,
    /// Counted and read relaxed: nothing else is read because of it.
    refused: AtomicU64,
}

struct State<const G: usize> {
    /// The words that are not used yet.
    words: &'static mut [u64],
    engine: Option<Frames<G>>,
    /// The first frame of the span, and the one behind its last.
    span: (u64, u64),
}

/// Words that a pool needs whose span ends so many frames after the last multiple of 2^18 frames before its start: 2^18
/// frames more than it has are always enough.
pub const fn words(frames: u32) -> usize {
    EngineLayout::of(Pfn(0), frames as u64).words
}

impl<R: RawMutex, const G: usize> Pool<R, G> {
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

    /// Calls `f` with the state and the frame at an address.
    fn at<T>(&self, phys: usize, f: impl FnOnce(&mut State<G>, Pfn) -> Option<T>) -> Option<T> {
        let mut state = self.state.lock();
        let frame = Pfn((phys >> self.base.log2()) as u64);
        let is_frame = self.base.is_aligned(phys);
        is_frame.then(|| f(&mut state, frame)).flatten()
    }
}

// SAFETY: The engine hands out frames of the usable ranges alone, each once until it is given back, in runs that are
// aligned to their size.
unsafe impl<R: RawMutex, const G: usize> PhysicalAllocator for Pool<R, G> {
    fn allocate_physical(&self, ps: PageSize, count: NonZeroUsize) -> Result<usize, AllocError> {
        let (frames, align) = self.frames(ps, count)?;
        let mut state = self.state.lock();
        let engine = state.engine.as_mut().ok_or(AllocError::OutOfMemory)?;
        let taken = engine.take_run(frames, align, self.mt, true);
        let frame = taken.ok_or(AllocError::OutOfMemory)?;
        Ok((frame.0 as usize) << self.base.log2())
    }

    unsafe fn deallocate_physical(&self, ps: PageSize, count: NonZeroUsize, phys: usize) {
        let frames = self.frames(ps, count).ok();
        let given = frames.and_then(|(frames, _)| {
            self.at(phys, |state, frame| {
                let engine = state.engine.as_mut()?;
                engine.can_give(frame, frames.into()).ok()?;
                engine.give_range(frame, frames.into(), self.mt).ok()
            })
        });
        if given.is_none() {
            self.refused.fetch_add(1, Relaxed);
        }
    }
}

/// An engine with these ranges, and with its tables in some words.
fn engine_of<'m, const G: usize>(
    first: u64,
    usable: &[PhysRange],
    frame: impl Fn(usize) -> u64,
    words: &mut &'m mut [u64],
) -> Result<Engine<'m, [Gigabyte<'m>; G]>, InitError> {
    let engine = Engine::new(Pfn(first), [const { Gigabyte::NONE }; G]);
    let mut engine = engine.ok_or(InitError::InvalidSpan)?;
    for (index, r) in usable.iter().enumerate() {
        let added = engine.add(Pfn(frame(r.base)), frame(r.len), words);
        added.map_err(|_| InitError::InvalidUsable { index })?;
    }
    Ok(engine)
}

// SAFETY: On an error nothing is kept; it succeeds once.
unsafe impl<R: RawMutex, const G: usize> RegionInit for Pool<R, G> {
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
        let frame = |at: usize| (at >> self.base.log2()) as u64;
        let span = (frame(phys_base), frame(end));
        let first = span.0 & !(GIGABYTE - 1);
        if (span.1 - first).div_ceil(GIGABYTE) > G as u64 {
            return Err(InitError::InvalidSpan);
        }
        let needed = EngineLayout::of(Pfn(first), span.1 - first).words;
        if state.words.len() < needed {
            return Err(InitError::MetadataWontFit {
                required_bytes: needed * 8,
            });
        }
        // Tables that were made do not come back; so it is seen first, with words that do, that all can be added.
        engine_of::<G>(first, usable, frame, &mut &mut *state.words)?;
        let mut words = core::mem::take(&mut state.words);
        let engine = engine_of(first, usable, frame, &mut words)?;
        (state.words, state.span) = (words, span);
        state.engine = Some(engine);
        Ok(())
    }

    unsafe fn add_usable(&self, base: usize, len: usize) {
        let frames = (len >> self.base.log2()) as u64;
        let added = self.at(base, |state, frame| {
            let end = frame.0.checked_add(frames)?;
            let is_in_span = frame.0 >= state.span.0 && end <= state.span.1;
            let engine = state.engine.as_mut().filter(|_| is_in_span)?;
            let is_whole = self.base.is_aligned(len);
            is_whole.then(|| engine.add(frame, frames, &mut state.words).ok())?
        });
        if added.is_none() {
            self.refused.fetch_add(1, Relaxed);
        }
    }
}

impl<R: RawMutex, const G: usize> AllocatorStats for Pool<R, G> {
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
