//! Frames of any addresses, with their tables in themselves: what the adaptors without a fixed memory stand on.
//!
//! Memory comes piece by piece. Each piece in a new gigabyte gets an engine, whose tables are taken out of the piece: 0.16
//! bytes a frame. Frames are numbered by their address; a gigabyte is 2^18 frames.
//!
//! Invariant: a frame belongs to the first engine of its gigabyte whose tables reach to it.

use unfrag::maps::{BLOCK_ORDER, Engine, EngineLayout, LARGEST_ORDER};
use unfrag::{MigrateType, Order};

/// Frames of a gigabyte.
const GIGABYTE: u64 = LARGEST_ORDER.frames() as u64;

/// Frames of a block.
const BLOCK: u64 = BLOCK_ORDER.frames() as u64;

/// A piece of so many frames gets tables for its whole gigabyte, as more may come there; a smaller one has only its own.
const LARGE: u64 = 1024;

/// Bytes of the smallest frames in which tables can lie.
const LEAST_FRAME: usize = 8;

/// Why memory was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddError {
    /// Some of it was added before.
    Overlap,
    /// It has no whole frame beside its own tables.
    TooSmall,
    /// There are as many gigabytes as there is room for.
    TooMany,
    /// It ends beyond the last address.
    Address,
}

impl core::fmt::Display for AddError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(match self {
            AddError::Overlap => "some of this memory was added before",
            AddError::TooSmall => "this memory has no whole frame beside its own tables",
            AddError::TooMany => {
                "memory in as many gigabytes as there is room for: make the allocator for more"
            }
            AddError::Address => "this memory ends beyond the last address",
        })
    }
}

impl core::error::Error for AddError {}

/// The whole frames of some bytes: the first one, and how many.
pub(crate) fn whole_frames(
    start: usize,
    bytes: usize,
    frame_bytes: usize,
) -> Result<(u64, u64), AddError> {
    let end = start.checked_add(bytes).ok_or(AddError::Address)? / frame_bytes;
    let first = start.div_ceil(frame_bytes);
    if first >= end {
        return Err(AddError::TooSmall);
    }
    Ok((first as u64, (end - first) as u64))
}

struct Gigabyte {
    first: u64,
    engine: Engine<'static>,
}

/// Up to `N` gigabytes in which there is memory.
pub(crate) struct Gigabytes<const N: usize> {
    of: [Option<Gigabyte>; N],
    /// Frames that can be handed out.
    present: u64,
}

impl<const N: usize> Gigabytes<N> {
    /// No memory as yet.
    pub const fn new() -> Self {
        Gigabytes {
            of: [const { None }; N],
            present: 0,
        }
    }

    /// Adds memory, all of it free but for the tables that it may need. `at` leads to the bytes of a frame, of
    /// `frame_bytes` each.
    ///
    /// # Safety
    /// The frames are memory that nobody uses, now or later; `at` leads to them, in one piece for neighbours.
    pub unsafe fn add(
        &mut self,
        start: u64,
        frames: u64,
        frame_bytes: usize,
        at: impl Fn(u64) -> *mut u8,
    ) -> Result<(), AddError> {
        let end = start.checked_add(frames).ok_or(AddError::Address)?;
        let mut from = start;
        while from < end {
            // SAFETY: As the caller says, for a part of it.
            from = unsafe { self.add_piece(from, end, frame_bytes, &at)? };
        }
        Ok(())
    }

    /// Adds the frames up to the end of what one engine reaches, or `end`. Returns the first one that it did not add.
    ///
    /// # Safety
    /// As for [`add`](Self::add).
    unsafe fn add_piece(
        &mut self,
        mut from: u64,
        end: u64,
        frame_bytes: usize,
        at: &impl Fn(u64) -> *mut u8,
    ) -> Result<u64, AddError> {
        if let Some(own) = self.find(from) {
            let end = end.min(own.first + u64::from(own.engine.frames()));
            own.engine
                .add((from - own.first) as u32, (end - from) as u32)
                .map_err(|_| AddError::Overlap)?;
            self.present += end - from;
            return Ok(end);
        }
        let first = from / GIGABYTE * GIGABYTE;
        let end = end.min(first + GIGABYTE);
        let mut to = end;
        if frame_bytes < LEAST_FRAME {
            return Err(AddError::TooSmall);
        }
        let slot = self.of.iter_mut().find(|g| g.is_none());
        let slot = slot.ok_or(AddError::TooMany)?;
        let all = if to - from >= LARGE {
            GIGABYTE
        } else {
            to - first
        };
        let words = EngineLayout::of(all as u32).words;
        let tables = (words * 8).div_ceil(frame_bytes) as u64;
        if tables >= to - from {
            return Err(AddError::TooSmall);
        }
        // The tables are at the end that is no boundary of a block anyway.
        let table = if to.is_multiple_of(512) {
            from += tables;
            at(from - tables)
        } else {
            to -= tables;
            at(to)
        };
        // SAFETY: The frames are as many as the words need, and nobody else's.
        let table = unsafe { core::slice::from_raw_parts_mut(table.cast::<u64>(), words) };
        let mut engine = Engine::new(all as u32, table).ok_or(AddError::TooSmall)?;
        engine
            .add((from - first) as u32, (to - from) as u32)
            .map_err(|_| AddError::Overlap)?;
        *slot = Some(Gigabyte { first, engine });
        self.present += to - from;
        Ok(end)
    }

    /// The gigabyte to which a frame belongs.
    fn find(&mut self, frame: u64) -> Option<&mut Gigabyte> {
        let mut all = self.of.iter_mut().flatten();
        all.find(|g| frame.wrapping_sub(g.first) < u64::from(g.engine.frames()))
    }

    /// Takes `frames` frames in one piece, the first one a multiple of `align`, a power of two. Types mix only where
    /// nothing else is left.
    pub fn take(&mut self, frames: u64, align: u64, mt: MigrateType) -> Option<u64> {
        if frames == 0 || frames.max(align) > GIGABYTE {
            return None;
        }
        let order = Order(align.trailing_zeros() as u8);
        for mixes in [false, true] {
            for own in self.of.iter_mut().flatten() {
                if let Some(at) = own.engine.take_run(frames as u32, order, mt, mixes) {
                    return Some(own.first + u64::from(at));
                }
            }
        }
        if align <= frames.next_power_of_two() && frames <= BLOCK {
            return None;
        }
        // No run of a power of two is free, but a part of one may be, or blocks side by side.
        let step = align.max(BLOCK.min(frames.next_power_of_two()));
        self.of.iter_mut().flatten().find_map(|own| {
            let mut starts = (0..own.engine.frames()).step_by(step as usize);
            let mut take = |&at: &u32| own.engine.take_range(at, frames as u32, mt).is_ok();
            starts.find(&mut take).map(|at| own.first + u64::from(at))
        })
    }

    /// Takes these frames; false, and nothing changes, if they are not all free, or not of one gigabyte.
    pub fn take_at(&mut self, start: u64, frames: u64, mt: MigrateType) -> bool {
        let Some(own) = self.find(start) else {
            return false;
        };
        let first = own.first;
        u32::try_from(frames)
            .is_ok_and(|n| own.engine.take_range((start - first) as u32, n, mt).is_ok())
    }

    /// Gives frames back that were taken; false, if some of them were not in use. All others are free then.
    pub fn give(&mut self, start: u64, frames: u64, mt: MigrateType) -> bool {
        let (mut from, mut left, mut all) = (start, frames, true);
        while left > 0 {
            let Some(own) = self.find(from) else {
                return false;
            };
            let reach = own.first + u64::from(own.engine.frames());
            let part = left.min(reach - from);
            let given = own
                .engine
                .give_range((from - own.first) as u32, part as u32, mt);
            all &= given.is_ok();
            from += part;
            left -= part;
        }
        all
    }

    /// Frames that can be handed out, tables not counted.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Free frames.
    pub fn free(&self) -> u64 {
        self.of
            .iter()
            .flatten()
            .map(|g| g.engine.free_frames())
            .sum()
    }
}
