//! The free frames of the heap: an engine for all of its addresses, and the blocks that the system has back.
//!
//! Addresses are opened step by step, each an eighth of what is open; where the system refuses a step, smaller ones. Blocks
//! where something else is mapped are left out.
//!
//! Slab caches reach the first part of the window alone ([`REACH`]). Where the window is longer, runs open the first half of
//! that part, then what lies behind it, so that addresses are left for slabs however much memory runs take.
//!
//! Invariant: each frame of a part, before its `next`, is free in the engine, handed out, or belongs to a block that the system
//! has back or that was left out.

use super::ground::leak_all;
use super::released::Released;
use super::touched::Touched;
use super::window::{BLOCK, HUGE_FROM, Refused, Window, address_limit};
use crate::memory::GIGABYTE;
use crate::space::FRAME_BYTES;
use unfrag::maps::{BLOCK_ORDER, Engine, EngineLayout, Gigabyte};
use unfrag::{MigrateType, Order, Pfn};

/// Gigabytes of addresses: frames have numbers of 32 bits.
pub(super) const MOST_GIGABYTES: u64 = (1 << 14) - 1;

/// Gigabytes that slab caches reach: they number records by their place, in units of 64 bytes, with 32 bits.
pub(super) const REACH: u32 = 256;

/// Runs are of this type, slabs and records are unmovable.
pub(super) const RUN: MigrateType = MigrateType::Movable;

/// The steps in which addresses are opened: at least and at most so many frames.
const STEP: (u32, u32) = (2 * BLOCK, 32 * BLOCK);

/// Under a limit of addresses, a part of so many of what the limit leaves is kept free at the most.
const KEPT_PART: u32 = 8;

/// Frames of the unit in which pieces of blocks are given back.
const UNIT: u32 = 4;

/// Units of a block that must be idle, for any of them to be given back: a huge page that is in use is not split for less.
const FEWEST_UNITS: u32 = BLOCK / UNIT / 8;

/// Pieces that are taken at a time, and blocks that are looked at for them.
pub(super) const PIECES: usize = 256;
const LOOKED_AT: u32 = 64;

/// Milliseconds from one look at all blocks to the next, at least.
const IDLE: u64 = 250;

/// Some free frames.
#[derive(Clone, Copy, Default)]
pub(super) struct Piece {
    pub first: u32,
    pub frames: u32,
}

/// Addresses that are opened from the first one on.
struct Part {
    /// The first frame that is not opened as yet.
    next: u32,
    end: u32,
}

/// Free frames.
pub(super) struct Stock {
    engine: Engine<'static>,
    /// What slabs reach, and what lies behind it.
    parts: [Part; 2],
    /// Frames that are usable of those that were opened.
    usable: u32,
    /// Blocks that the process may have mapped, as was last seen: it may set the limit at any time.
    limit: Option<u32>,
    /// The fewest whole free blocks since `since`, in milliseconds of the system's clock.
    pub fewest: u32,
    pub since: u64,
    pub released: Released,
    pub touched: Touched,
    /// The first frame of the block that is looked at next for pieces.
    next_look: u32,
    /// When the look at all blocks began, and when the last step was made.
    looked: u64,
    pub stepped: u64,
}

/// Blocks within so many bytes.
fn blocks_of(bytes: u64) -> u32 {
    u32::try_from(bytes / (u64::from(BLOCK) * FRAME_BYTES as u64)).unwrap_or(u32::MAX)
}

impl Stock {
    /// Frames for a window, none of them opened as yet.
    ///
    /// `reach`: the frames of it that slabs reach, a number of gigabytes. `limit`: the bytes that the process may have mapped.
    pub fn new(window: &Window, reach: u32, limit: Option<u64>) -> Option<Stock> {
        let gigabytes = window.frames().div_ceil(GIGABYTE) as usize;
        let directory = leak_all(gigabytes, || Gigabyte::NONE)?;
        Some(Stock {
            engine: Engine::new(Pfn(0), directory)?,
            parts: [
                Part {
                    next: 0,
                    end: reach,
                },
                Part {
                    next: reach,
                    end: window.frames(),
                },
            ],
            usable: 0,
            limit: limit.map(blocks_of),
            fewest: 0,
            since: 0,
            released: Released::new((window.frames() / BLOCK) as usize)?,
            touched: Touched::new(window.frames())?,
            next_look: 0,
            looked: 0,
            stepped: 0,
        })
    }

    /// Blocks of 2 MiB that are free as a whole.
    pub fn whole_blocks(&self) -> u32 {
        self.engine.whole_blocks()
    }

    /// Free frames that the system does not have back.
    pub fn free_frames(&self) -> u64 {
        self.engine.free_frames()
    }

    /// Frames that are usable.
    pub fn usable_frames(&self) -> u32 {
        self.usable - self.released.left_out() * BLOCK
    }

    /// As many blocks as the frames fill that are in use.
    pub fn used_blocks(&self) -> u32 {
        let free = self.free_frames() + self.released.count() as u64 * u64::from(BLOCK);
        let used = u64::from(self.usable_frames()).saturating_sub(free);
        (used / u64::from(BLOCK)) as u32
    }

    /// Asks what limit of addresses the process has. Returns the bytes.
    pub fn look_at_limit(&mut self) -> Option<u64> {
        let limit = address_limit();
        self.limit = limit.map(blocks_of);
        limit
    }

    /// Under a limit: how many of the whole free blocks may stay mapped.
    pub fn most_kept(&self, whole: u32) -> Option<u32> {
        let mapped = self.usable_frames() / BLOCK - self.released.closed();
        let left = self.limit?.saturating_sub(mapped - whole);
        Some((left / KEPT_PART).max(1))
    }

    /// Takes a block of which all but `spare` frames are for use. Types mix where no more memory can be had.
    pub fn take_with_spare(&mut self, window: &Window, order: Order, spare: u32) -> Option<u32> {
        // Where addresses are few, none are opened of which an eighth would be for smaller requests only.
        if self.limit.is_some() && order > BLOCK_ORDER && spare > order.frames() / 8 {
            return self.take_open(order, RUN, false);
        }
        self.take(window, order, RUN, window.frames())
    }

    /// Takes a block for slabs.
    pub fn take_in_reach(&mut self, window: &Window, order: Order, mt: MigrateType) -> Option<u32> {
        self.take(window, order, mt, self.parts[0].end)
    }

    /// Takes a block that ends before the frame `limit`. Types mix where no more memory can be had.
    fn take(&mut self, window: &Window, order: Order, mt: MigrateType, limit: u32) -> Option<u32> {
        loop {
            if let Some(first) = self.take_before(order, mt, limit) {
                self.fewest = self.fewest.min(self.whole_blocks());
                return Some(first);
            }
            if self.take_released(window, order, limit) {
                continue;
            }
            if !self.open(window, order, limit) {
                return match self.reaches(limit) {
                    true => self.take_open(order, mt, true),
                    false => self.take_low(order, mt, limit),
                };
            }
        }
    }

    /// Whether all that is open lies before a frame.
    fn reaches(&self, limit: u32) -> bool {
        let [first, behind] = &self.parts;
        limit >= behind.end || behind.next == first.end && limit >= first.end
    }

    /// Takes a block of what is usable and ends before the frame `limit`, where no other type is.
    fn take_before(&mut self, order: Order, mt: MigrateType, limit: u32) -> Option<u32> {
        let first = self.take_open(order, mt, false)?;
        if first < limit {
            return Some(first);
        }
        self.give(first, order.frames(), mt);
        // It is of a whole block, as blocks behind the limit have no other frames of this type. So a whole one before the limit
        // becomes one of this type, whose rest serves the next requests without a search.
        let block = order.max(BLOCK_ORDER);
        let first = self.take_low(block, mt, limit)?;
        self.give(first + order.frames(), block.frames() - order.frames(), mt);
        Some(first)
    }

    /// Takes the lowest block that ends before the frame `limit`. It looks at one block after the other.
    fn take_low(&mut self, order: Order, mt: MigrateType, limit: u32) -> Option<u32> {
        let first = self.engine.take_below(Pfn(limit.into()), order, mt)?;
        Some(first.0 as u32)
    }

    /// Has the engine a block before the frame `limit` that the system has back, or as many as a larger order needs.
    fn take_released(&mut self, window: &Window, order: Order, limit: u32) -> bool {
        let (first, frames) = if order <= BLOCK_ORDER {
            (self.released.take(window, limit), BLOCK)
        } else if limit >= window.frames() {
            let blocks = order.frames() / BLOCK;
            let first = self.released.take_neighbours(window, blocks);
            (first, order.frames())
        } else {
            return false;
        };
        let Some(first) = first else { return false };
        // As the type that they were taken as to be released.
        self.give(first, frames, RUN);
        true
    }

    /// Whether there are blocks to look at for pieces: those that are left of this look, or, some time after it began, all again.
    pub fn may_look(&self, now: u64) -> bool {
        self.next_look > 0 || now.wrapping_sub(self.looked) >= IDLE
    }

    /// Takes pieces of blocks that are in use otherwise, which stayed free and were not given back since the last look at them.
    /// It looks at some blocks, and goes on with the next ones in the next call. Returns how many pieces there are.
    pub fn take_idle_pieces(&mut self, into: &mut [Piece; PIECES], now: u64) -> usize {
        let mut count = 0;
        if self.next_look == 0 {
            self.looked = now;
        }
        for _ in 0..LOOKED_AT {
            if self.next_look >= self.parts[0].next && self.next_look < self.parts[0].end {
                self.next_look = self.parts[0].end;
            }
            if self.next_look >= self.parts[1].next {
                self.next_look = 0;
                break;
            }
            // A block that has no room among the pieces is looked at again.
            if into.len() - count < (BLOCK / UNIT / 2) as usize && count > 0 {
                break;
            }
            count += self.take_idle_of(self.next_look, &mut into[count..]);
            self.next_look += BLOCK;
        }
        count
    }

    /// Takes idle pieces of a block.
    fn take_idle_of(&mut self, block: u32, into: &mut [Piece]) -> usize {
        // Whole free ones are given back as such.
        if self
            .engine
            .can_take(Pfn(block.into()), BLOCK.into())
            .is_ok()
        {
            return 0;
        }
        let (mut count, mut units) = (0, 0);
        for first in (block..block + BLOCK).step_by(UNIT as usize) {
            let is_free = self.engine.can_take(Pfn(first.into()), UNIT.into()).is_ok();
            if !is_free || !self.touched.is_idle(first, UNIT) {
                continue;
            }
            if count > 0 && into[count - 1].first + into[count - 1].frames == first {
                into[count - 1].frames += UNIT;
            } else if count < into.len() {
                let frames = UNIT;
                into[count] = Piece { first, frames };
                count += 1;
            } else {
                break;
            }
            units += 1;
        }
        if units < FEWEST_UNITS {
            return 0;
        }
        for piece in &into[..count] {
            let first = Pfn(piece.first.into());
            let taken = self.engine.take_range(first, piece.frames.into(), RUN);
            debug_assert!(taken.is_ok(), "frames that are free: {taken:?}");
        }
        count
    }

    /// Takes a block of what is usable.
    pub fn take_open(&mut self, order: Order, mt: MigrateType, mixes: bool) -> Option<u32> {
        let mut one = [0];
        let got = self.engine.take(&mut one, order, mt, mixes);
        (got == 1).then_some(one[0] as u32)
    }

    /// Gives frames back that were taken.
    pub fn give(&mut self, first: u32, frames: u32, mt: MigrateType) {
        if frames == 0 {
            return;
        }
        let given = self.engine.give_range(Pfn(first.into()), frames.into(), mt);
        debug_assert!(given.is_ok(), "frames that were taken: {given:?}");
    }

    /// Makes more addresses before the frame `limit` usable, enough for a block of an order unless something is in the way;
    /// false if there are no more.
    fn open(&mut self, window: &Window, order: Order, limit: u32) -> bool {
        let mut skip = BLOCK;
        while let Some(part) = self.part_to_open(limit) {
            let Part { next, end } = self.parts[part];
            // Within one gigabyte, as a block is.
            let room = (GIGABYTE - next % GIGABYTE).min(end - next);
            // A block begins at a multiple of its size: what lies before it is opened as well.
            let needed = next.next_multiple_of(order.frames()) + order.frames() - next;
            let needed = needed.next_multiple_of(BLOCK).min(room);
            let step = self.usable_frames() / 8;
            let wanted = step.clamp(STEP.0, STEP.1).next_multiple_of(BLOCK);
            match self.open_some(window, next, wanted.clamp(needed, room), needed) {
                Ok(frames) => {
                    self.parts[part].next += frames;
                    return true;
                }
                Err(Refused::NoMemory) => {
                    // There may be a limit that was not there before.
                    self.look_at_limit();
                    return false;
                }
                // Something else is there: it is passed by, in steps that grow with it.
                Err(Refused::InUse) => {
                    self.parts[part].next += skip.min(room);
                    skip = skip.saturating_mul(2);
                }
            }
        }
        false
    }

    /// The part of which addresses before the frame `limit` are opened next.
    fn part_to_open(&self, limit: u32) -> Option<usize> {
        let [first, behind] = &self.parts;
        let has_room = |part: &Part| part.next < part.end;
        let may_go_behind = limit > first.end && has_room(behind);
        if has_room(first) && !(may_go_behind && first.next >= first.end / 2) {
            return Some(0);
        }
        may_go_behind.then_some(1)
    }

    /// Opens up to so many frames from one on, and `least` at least; fewer where something is in the way. Returns how many.
    fn open_some(
        &mut self,
        window: &Window,
        start: u32,
        wanted: u32,
        least: u32,
    ) -> Result<u32, Refused> {
        let first = Pfn(start.into());
        // Within one gigabyte.
        let missing = self.engine.can_add(first, wanted.into()) != Ok(0);
        let mut words = match missing {
            true => words().ok_or(Refused::NoMemory)?,
            false => &mut [],
        };
        let huge_pages = start >= HUGE_FROM;
        let mut frames = wanted;
        loop {
            let why = match window.open(start, frames, huge_pages) {
                Ok(()) => break,
                Err(why) => why,
            };
            let least = if why == Refused::InUse { BLOCK } else { least };
            if frames <= least {
                return Err(why);
            }
            frames = (frames / 2).next_multiple_of(BLOCK).max(least);
        }
        let added = self.engine.add(first, frames.into(), &mut words);
        debug_assert_eq!(added, Ok(()), "frames that were not usable before");
        self.usable += frames;
        Ok(frames)
    }
}

/// Words for the tables of a gigabyte.
fn words() -> Option<&'static mut [u64]> {
    leak_all(EngineLayout::GIGABYTE, || 0)
}
