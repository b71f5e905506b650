//! Memory that comes and goes.

use super::shards::Memory;
use crate::frame::Pfn;
use crate::maps::{EngineLayout, GiveError};
use lock_api::RawMutex;

impl<'m, R: RawMutex> Memory<'m, R> {
    /// Adds memory, all of it free: the `frames` frames from `start` on, which were not added before. Tables are made in words
    /// off the front of `supply`, for each gigabyte that has none: [`EngineLayout::of`] says how many are enough.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, if some of them are in no area, or were added before, if too many blocks would be
    /// partly memory, or if there are too few words. Nothing has changed then, unless somebody else has added some of them
    /// meanwhile.
    pub fn add(
        &self,
        start: Pfn,
        frames: u64,
        supply: &mut &'m mut [u64],
    ) -> Result<(), GiveError> {
        let mut missing = 0;
        self.parts(start, frames, |shard, start, frames| {
            missing += self.engine(shard).lock().can_add(start, frames)?;
            Ok(())
        })?;
        if !EngineLayout::fits(supply, missing) {
            return Err(GiveError::NoTables(start));
        }
        self.parts(start, frames, |shard, start, frames| {
            self.engine(shard).lock().add(start, frames, supply)?;
            self.node(shard).add_frames(frames);
            Ok(())
        })
    }

    /// Removes memory that the caller has, all of it: the `frames` frames from `start` on. They cannot be given back any more.
    /// When nothing of a gigabyte is left, [`take_tables`](Self::take_tables) gives back the words of its tables.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, if some of them are no memory, or not in use, or if too many blocks would be partly
    /// memory. What is of the first shard whose part is refused, and of those behind it, has not changed then.
    ///
    /// # Safety
    /// As for [`free`](Self::free), for all of them: what was somebody else's, or what a `Local` keeps, would be handed
    /// out once more when it is added again.
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub unsafe fn remove(&self, start: Pfn, frames: u64) -> Result<(), GiveError> {
        self.parts(start, frames, |shard, start, frames| {
            self.engine(shard).lock().can_give(start, frames)
        })?;
        self.parts(start, frames, |shard, start, frames| {
            self.engine(shard).lock().remove(start, frames)
        })
    }

    /// The words of the tables of the gigabyte of a frame, of which nothing is memory any more. `None`, if some is, or if it
    /// has no tables.
    pub fn take_tables(&self, frame: Pfn) -> Option<&'m mut [u64]> {
        let shard = self.shard_of(frame.0)?;
        self.engine(shard).lock().take_tables(frame)
    }

    /// Calls `f` with each shard that has some of a range, and with the first frame and the number of frames of that part.
    ///
    /// # Errors
    /// [`GiveError`], if some of the range is in no shard, and as `f` says: then no more parts are named.
    pub(crate) fn parts(
        &self,
        start: Pfn,
        frames: u64,
        mut f: impl FnMut(usize, Pfn, u64) -> Result<(), GiveError>,
    ) -> Result<(), GiveError> {
        if frames == 0 {
            return Err(GiveError::NoFrames(start));
        }
        // What is out of range is refused before anything changes.
        self.parts_of(start, frames)
            .try_for_each(|part| part.map(|_| ()))?;
        self.parts_of(start, frames)
            .try_for_each(|part| part.and_then(|(shard, at, n)| f(shard, at, n)))
    }

    /// The parts of a range by shards, up to the first frame that is in none.
    fn parts_of(
        &self,
        start: Pfn,
        frames: u64,
    ) -> impl Iterator<Item = Result<(usize, Pfn, u64), GiveError>> {
        let (mut next, mut left) = (Some(start.0), frames);
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let at = next.unwrap_or(u64::MAX);
            let Some(shard) = next.and_then(|at| self.shard_of(at)) else {
                left = 0;
                return Some(Err(GiveError::NoMemory(Pfn(at))));
            };
            let span = &self.spans()[shard];
            let part = left.min(span.start + span.frames - at);
            (next, left) = (at.checked_add(part), left - part);
            Some(Ok((shard, Pfn(at), part)))
        })
    }
}
