//! Frames of any addresses, with their tables in themselves: what the adaptors without a fixed memory stand on.
//!
//! Memory comes piece by piece. Each piece in a new gigabyte gets an engine, whose tables are taken out of the piece: 45 KiB.
//! Frames are numbered by their address; a gigabyte is 2^18 frames.
//!
//! Memory that ends just beyond the boundary of a gigabyte has a piece there with no room for tables. That piece is left out.
//!
//! Invariant: a frame belongs to the engine of its gigabyte.

use unfrag::maps::{self, BLOCK_ORDER, Engine, EngineLayout, GiveError, LARGEST_ORDER};
use unfrag::{MigrateType, Order, Pfn};

/// Frames of a gigabyte.
const GIGABYTE: u64 = LARGEST_ORDER.frames() as u64;

/// Frames of a block.
const BLOCK: u64 = BLOCK_ORDER.frames() as u64;

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
    /// As many blocks of 512 frames of a gigabyte as there is room for are partly memory already.
    TooManyHoles,
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
            AddError::TooManyHoles => {
                "too many blocks of 512 frames are partly memory: add memory in larger pieces"
            }
        })
    }
}

impl core::error::Error for AddError {}

/// Why an engine does not add a piece.
fn refused(why: GiveError) -> AddError {
    match why {
        GiveError::TooManyHoles(_) => AddError::TooManyHoles,
        _ => AddError::Overlap,
    }
}

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

/// An engine for one gigabyte.
type Gigabyte = Engine<'static, [maps::Gigabyte<'static>; 1]>;

/// Frames for the tables of a gigabyte.
fn table_frames(frame_bytes: usize) -> u64 {
    (EngineLayout::GIGABYTE * 8).div_ceil(frame_bytes) as u64
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
    /// To a new engine for its gigabyte.
    New,
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
                    let added = own.can_add(Pfn(from), piece.to - from);
                    added.map_err(refused)?;
                }
                Goes::New => room = room.checked_sub(1).ok_or(AddError::TooMany)?,
                Goes::Out => {}
            }
            from = piece.to;
        }
        is_any.then_some(()).ok_or(AddError::TooSmall)
    }

    /// The first piece of this memory: up to the end of what one engine reaches, or `end`.
    fn piece(&self, from: u64, end: u64, frame_bytes: usize) -> Piece {
        let to = end.min((from / GIGABYTE + 1) * GIGABYTE);
        let has_room = || frame_bytes >= LEAST_FRAME && table_frames(frame_bytes) < to - from;
        let goes = match self.find(from) {
            Some(i) => Goes::To(i),
            None if has_room() => Goes::New,
            None => Goes::Out,
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
        let mut table: &'static mut [u64] = &mut [];
        let own = match goes {
            Goes::Out => return Ok(()),
            Goes::To(i) => self.of[i].as_mut(),
            Goes::New => {
                // The tables are at the end that is no boundary of a block anyway, and not at a gigabyte's own address.
                let tables = table_frames(frame_bytes);
                let words = if to.is_multiple_of(BLOCK) && !from.is_multiple_of(BLOCK) {
                    from += tables;
                    at(from - tables)
                } else {
                    to -= tables;
                    at(to)
                };
                // SAFETY: The frames are as many as the words need, and nobody else's.
                table = unsafe {
                    core::slice::from_raw_parts_mut(words.cast::<u64>(), EngineLayout::GIGABYTE)
                };
                let first = Pfn(from / GIGABYTE * GIGABYTE);
                let engine = Engine::new(first, [maps::Gigabyte::NONE]).ok_or(AddError::Address)?;
                let slot = self.of.iter_mut().find(|g| g.is_none());
                slot.map(|slot| slot.insert(engine))
            }
        };
        let own = own.ok_or(AddError::TooMany)?;
        own.add(Pfn(from), to - from, &mut table).map_err(refused)?;
        self.present += to - from;
        Ok(())
    }

    /// The gigabyte to which a frame belongs.
    fn find(&self, frame: u64) -> Option<usize> {
        let first = Pfn(frame / GIGABYTE * GIGABYTE);
        let is_own = |g: &Option<Gigabyte>| g.as_ref().is_some_and(|g| g.start() == first);
        self.of.iter().position(is_own)
    }

    /// The same, to change it.
    fn find_mut(&mut self, frame: u64) -> Option<&mut Gigabyte> {
        let i = self.find(frame)?;
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
                if let Some(at) = own.take_run(frames as u32, order, mt, mixes) {
                    return Some(at.0);
                }
            }
        }
        if align <= frames.next_power_of_two() && frames <= BLOCK {
            return None;
        }
        // No run of a power of two is free, but a part of one may be, or blocks side by side.
        let step = align.max(BLOCK.min(frames.next_power_of_two()));
        self.of.iter_mut().flatten().find_map(|own| {
            let first = own.start().0;
            let mut starts = (first..first + GIGABYTE).step_by(step as usize);
            starts.find(|&at| own.take_range(Pfn(at), frames, mt).is_ok())
        })
    }

    /// Takes a block that ends before the frame `limit`. Types mix where nothing else is left, and in the gigabyte that the limit
    /// is in.
    #[cfg(feature = "heap")]
    pub fn take_before(&mut self, limit: u64, order: Order, mt: MigrateType) -> Option<u64> {
        if order > LARGEST_ORDER {
            return None;
        }
        for mixes in [false, true] {
            let before = |own: &&mut Gigabyte| own.start().0 + GIGABYTE <= limit;
            for own in self.of.iter_mut().flatten().filter(before) {
                if let Some(at) = own.take_run(order.frames(), order, mt, mixes) {
                    return Some(at.0);
                }
            }
        }
        let mut all = self.of.iter_mut().flatten();
        let block = all.find_map(|own| own.take_below(Pfn(limit), order, mt));
        block.map(|first| first.0)
    }

    /// Takes these frames; false, and nothing changes, if they are not all free, or not of one gigabyte.
    #[cfg(feature = "ax-allocator")]
    pub fn take_at(&mut self, start: u64, frames: u64, mt: MigrateType) -> bool {
        let Some(own) = self.find_mut(start) else {
            return false;
        };
        own.take_range(Pfn(start), frames, mt).is_ok()
    }

    /// Gives frames back that were taken; false, and nothing changes, if some of them are not in use.
    pub fn give(&mut self, start: u64, frames: u64, mt: MigrateType) -> bool {
        let Some(end) = start.checked_add(frames).filter(|_| frames > 0) else {
            return frames == 0;
        };
        let parts = || {
            let next = |&from: &u64| Some((from / GIGABYTE + 1) * GIGABYTE).filter(|&to| to < end);
            let starts = core::iter::successors(Some(start), next);
            starts.map(|from| (from, end.min((from / GIGABYTE + 1) * GIGABYTE) - from))
        };
        let is_used = |(at, n)| {
            let own = self.find(at).and_then(|i| self.of[i].as_ref());
            own.is_some_and(|own| own.can_give(Pfn(at), n).is_ok())
        };
        if !parts().all(is_used) {
            return false;
        }
        for (at, n) in parts() {
            let given = self.find_mut(at).map(|own| own.give_range(Pfn(at), n, mt));
            debug_assert_eq!(given, Some(Ok(())), "they were seen to be in use");
        }
        true
    }

    /// Frames that can be handed out, tables not counted.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Free frames.
    pub fn free(&self) -> u64 {
        self.of.iter().flatten().map(Engine::free_frames).sum()
    }
}
