//! Frames of any addresses, with their tables in themselves: what the adaptors without a fixed memory stand on.
//!
//! Memory comes piece by piece. Each piece in a new gigabyte gets an engine, whose tables are taken out of the piece: 0.28
//! bytes a frame. Frames are numbered by their address; a gigabyte is 2^18 frames.
//!
//! Memory that ends just beyond the boundary of a gigabyte has a piece there with no room for tables. That piece is left out.
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

impl Gigabyte {
    /// The end of the frames that its tables reach to.
    fn reach(&self) -> u64 {
        self.first + u64::from(self.engine.frames())
    }

    /// The engine's number of a frame that the tables reach to.
    fn index(&self, frame: u64) -> u32 {
        (frame - self.first) as u32
    }
}

/// Frames for tables of so many words.
fn table_frames(words: usize, frame_bytes: usize) -> u64 {
    (words * 8).div_ceil(frame_bytes) as u64
}

/// Frames that one engine takes, at the beginning of memory that is to be added.
struct Piece {
    from: u64,
    /// Its end.
    to: u64,
    goes: Goes,
}

/// Where a piece goes.
enum Goes {
    /// To the engine of this index.
    To(usize),
    /// To a new engine for so many frames from the beginning of its gigabyte, with tables of so many words.
    New { all: u32, words: usize },
    /// Nowhere: its tables would leave no frame.
    Out,
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

    /// Adds memory, all of it free but for the tables that it may need, and but for ends in another gigabyte that have no
    /// room for theirs. `at` leads to the bytes of a frame, of `frame_bytes` each. Nothing has changed after an error.
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
        self.can_add(start, end, frame_bytes)?;
        let mut from = start;
        while from < end {
            let piece = self.piece(from, end, frame_bytes);
            from = piece.to;
            // SAFETY: As the caller says, for a part of it.
            unsafe { self.add_piece(piece, frame_bytes, &at)? };
        }
        Ok(())
    }

    /// Whether each piece of this memory finds its place.
    fn can_add(&self, start: u64, end: u64, frame_bytes: usize) -> Result<(), AddError> {
        let mut room = self.of.iter().filter(|g| g.is_none()).count();
        let mut is_any = false;
        let mut from = start;
        while from < end {
            let piece = self.piece(from, end, frame_bytes);
            is_any |= !matches!(piece.goes, Goes::Out);
            match piece.goes {
                Goes::To(i) => {
                    let own = self.of[i].as_ref().ok_or(AddError::TooMany)?;
                    let added = own
                        .engine
                        .can_add(own.index(from), (piece.to - from) as u32);
                    added.map_err(|_| AddError::Overlap)?;
                }
                Goes::New { .. } => room = room.checked_sub(1).ok_or(AddError::TooMany)?,
                Goes::Out => {}
            }
            from = piece.to;
        }
        is_any.then_some(()).ok_or(AddError::TooSmall)
    }

    /// The first piece of this memory: up to the end of what one engine reaches, or `end`.
    fn piece(&self, from: u64, end: u64, frame_bytes: usize) -> Piece {
        if let Some((i, own)) = self.find(from) {
            let to = end.min(own.reach());
            let goes = Goes::To(i);
            return Piece { from, to, goes };
        }
        let first = from / GIGABYTE * GIGABYTE;
        let to = end.min(first + GIGABYTE);
        let all = if to - from >= LARGE {
            GIGABYTE
        } else {
            to - first
        } as u32;
        let words = EngineLayout::of(all).words;
        let has_room = frame_bytes >= LEAST_FRAME && table_frames(words, frame_bytes) < to - from;
        let goes = match has_room {
            true => Goes::New { all, words },
            false => Goes::Out,
        };
        Piece { from, to, goes }
    }

    /// Adds a piece to where it goes.
    ///
    /// # Safety
    /// As for [`add`](Self::add).
    unsafe fn add_piece(
        &mut self,
        piece: Piece,
        frame_bytes: usize,
        at: &impl Fn(u64) -> *mut u8,
    ) -> Result<(), AddError> {
        let Piece {
            mut from,
            mut to,
            goes,
        } = piece;
        let own = match goes {
            Goes::Out => return Ok(()),
            Goes::To(i) => self.of[i].as_mut(),
            Goes::New { all, words } => {
                // The tables are at the end that is no boundary of a block anyway, and not at a gigabyte's own address.
                let tables = table_frames(words, frame_bytes);
                let table = if to.is_multiple_of(BLOCK) && !from.is_multiple_of(BLOCK) {
                    from += tables;
                    at(from - tables)
                } else {
                    to -= tables;
                    at(to)
                };
                // SAFETY: The frames are as many as the words need, and nobody else's.
                let table = unsafe { core::slice::from_raw_parts_mut(table.cast::<u64>(), words) };
                let engine = Engine::new(all, table).ok_or(AddError::TooSmall)?;
                let first = from / GIGABYTE * GIGABYTE;
                let slot = self.of.iter_mut().find(|g| g.is_none());
                slot.map(|slot| slot.insert(Gigabyte { first, engine }))
            }
        };
        let own = own.ok_or(AddError::TooMany)?;
        let index = own.index(from);
        let added = own.engine.add(index, (to - from) as u32);
        added.map_err(|_| AddError::Overlap)?;
        self.present += to - from;
        Ok(())
    }

    /// The gigabyte to which a frame belongs, and its index.
    fn find(&self, frame: u64) -> Option<(usize, &Gigabyte)> {
        let mut all = self.of.iter().enumerate();
        all.find_map(|(i, g)| {
            let own = g.as_ref()?;
            (own.first..own.reach())
                .contains(&frame)
                .then_some((i, own))
        })
    }

    /// The same, to change it.
    fn find_mut(&mut self, frame: u64) -> Option<&mut Gigabyte> {
        let (i, _) = self.find(frame)?;
        self.of[i].as_mut()
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
        let Some(own) = self.find_mut(start) else {
            return false;
        };
        let index = own.index(start);
        u32::try_from(frames).is_ok_and(|n| own.engine.take_range(index, n, mt).is_ok())
    }

    /// Gives frames back that were taken; false, if some of them were not in use. All others are free then.
    pub fn give(&mut self, start: u64, frames: u64, mt: MigrateType) -> bool {
        let (mut from, mut left, mut all) = (start, frames, true);
        while left > 0 {
            let Some(own) = self.find_mut(from) else {
                return false;
            };
            let part = left.min(own.reach() - from);
            let index = own.index(from);
            let given = own.engine.give_range(index, part as u32, mt);
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
