//! The record of a block of 512 frames: 16 bytes, so that those of 8 GiB stay in a CPU's cache.

use super::sizes::{FRAMES, MOVABLE, NIL, RECLAIMABLE, TYPES, UNMOVABLE};
use crate::frame::MigrateType;
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Bins of a type: so many frames share one.
pub(super) const BIN_FRAMES: u32 = FRAMES / BINS as u32;
pub(super) const BINS: usize = 64;
/// A block that has grown emptier is found in its old bin until it belongs so many bins further on.
pub(super) const DRIFT: usize = 8;
/// Frames that may be given back to a block, at most, before it belongs so many bins further on.
pub(super) const MOST_COUNTED: u32 = BIN_FRAMES * DRIFT as u32 - 1;
/// Blocks of these classes have bins of their own: a class for each type, and one for those of movable frames that cannot
/// be emptied for now.
pub(super) const CLASSES: usize = TYPES + 1;
pub(super) const WAITS: usize = TYPES;

/// A block of 512 frames.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct Block {
    /// The others of its bin.
    pub next: u32,
    pub prev: u32,
    /// Four counts of frames, 10 bits each: free, and used for requests of each type. What is left of 512 is absent. Then
    /// the bin, the type, and flags.
    word: u64,
}

const _: () = assert!(size_of::<Block>() == 16, "four to a cache line");
const _: () = assert!(MOVABLE & WAITS == 1 && (UNMOVABLE | RECLAIMABLE) & 1 == 0);

/// Bits of a count, up to 512.
const COUNT: u64 = (1 << 10) - 1;
/// Where the count of a type is; that of free frames is at bit 0.
#[inline(always)]
const fn at(mt: usize) -> u32 {
    10 + 10 * mt as u32
}
/// Counts of what cannot be moved.
const TAINT: u64 = COUNT << at(UNMOVABLE) | COUNT << at(RECLAIMABLE);
/// The bin in which it is, or [`NO_BIN`].
const BIN: u32 = 40;
const NO_BIN: u64 = 127;
/// Its class, while some of it is in use: its type, or [`WAITS`].
const CLASS: u32 = 47;
/// It is in use as a whole, and its map, which nobody has touched, still says that it is free.
const INTACT: u64 = 1 << 49;
/// It is set apart to be emptied: in no bin, and none of its free frames is handed out.
const APART: u64 = 1 << 50;
/// A frame of it stayed when it was to be emptied, and is in use still. Then all of it is memory, and its last bits say which
/// frame, and how often.
const TRIED: u64 = 1 << 51;
const STAYS: u32 = 52;
const TRIES: u32 = 61;
/// If not tried: one more than the number of its map of absent frames, where only a part of it is memory; else 0.
const PARTIAL: u32 = 52;
const PARTIAL_BITS: u64 = !0 << PARTIAL;

impl Block {
    /// No memory.
    pub const NO_MEMORY: Block = Block {
        next: NIL,
        prev: NIL,
        word: NO_BIN << BIN | (MigrateType::Movable as u64) << CLASS,
    };

    /// All of it is free memory.
    pub const FREE: Block = Block {
        word: Self::NO_MEMORY.word | FRAMES as u64,
        ..Self::NO_MEMORY
    };

    /// Most tries that are counted.
    pub const MOST_TRIES: u32 = 7;

    #[inline]
    fn count(&self, at: u32) -> u32 {
        (self.word >> at & COUNT) as u32
    }

    #[inline]
    fn flag(&mut self, flag: u64, on: bool) {
        self.word = if on {
            self.word | flag
        } else {
            self.word & !flag
        };
    }

    /// Free frames.
    #[inline]
    pub fn free(&self) -> u32 {
        self.count(0)
    }

    /// Frames in use.
    #[inline]
    pub fn in_use(&self) -> u32 {
        (0..TYPES).map(|mt| self.used(mt)).sum()
    }

    /// All of it, free so far, is in use as a whole for a request of a type, and its map is as it was. Nothing else is known
    /// of a block that is free as a whole, so its record is not read.
    #[inline]
    pub fn use_whole(&mut self, mt: usize) {
        debug_assert!(self.is_whole() && !self.is_binned() && !self.is_tried());
        self.word = Block::intact(mt);
    }

    /// All of it, which was [in use as a whole](Self::is_intact_of), is free.
    #[inline]
    pub fn give_whole(&mut self, mt: usize) {
        self.word = NO_BIN << BIN | (mt as u64) << CLASS | u64::from(FRAMES);
    }

    /// The word of a block that is in use as a whole, of which nothing else is to be known.
    #[inline(always)]
    const fn intact(mt: usize) -> u64 {
        INTACT | NO_BIN << BIN | (mt as u64) << CLASS | (FRAMES as u64) << at(mt)
    }

    /// Frames in use for requests of a type.
    #[inline]
    pub fn used(&self, mt: usize) -> u32 {
        self.count(at(mt))
    }

    /// Frames that are no memory.
    pub fn absent(&self) -> u32 {
        FRAMES - self.free() - self.in_use()
    }

    /// Frames that were no memory are free memory.
    pub fn add(&mut self, frames: u32) {
        self.word += u64::from(frames);
    }

    /// Frames that were in use, of whatever type, are no memory any more.
    pub fn remove(&mut self, frames: u32) {
        self.give_back(self.mt(), frames);
        self.word -= u64::from(frames);
    }

    /// Free frames are in use for a request of a type.
    #[inline]
    pub fn take(&mut self, mt: usize, frames: u32) {
        self.word -= u64::from(frames);
        self.word += u64::from(frames) << at(mt);
    }

    /// Counts frames as given back, that were asked for as `mt`, or as whatever else is in use: so many are.
    #[inline]
    pub fn give_back(&mut self, mt: usize, frames: u32) {
        if self.used(mt) >= frames {
            self.give(mt, frames);
        } else {
            self.give_back_of_any(mt, frames);
        }
    }

    /// Counts frames as given back, of which so many are in use.
    #[inline]
    pub fn give(&mut self, mt: usize, frames: u32) {
        self.word -= u64::from(frames) << at(mt);
        self.word += u64::from(frames);
    }

    #[cold]
    fn give_back_of_any(&mut self, mt: usize, mut frames: u32) {
        for i in [mt, UNMOVABLE, MOVABLE, RECLAIMABLE] {
            let of_it = self.used(i).min(frames);
            self.give(i, of_it);
            frames -= of_it;
        }
    }

    /// Whether a frame that is given back changes nothing but counts: the block stays in its bin, and holds others that
    /// were asked for as `mt`. Then it is not intact, either; all of it is memory, and no frame is remembered that stayed.
    #[inline]
    pub fn only_counts(&self, mt: usize) -> bool {
        self.drifted() < MOST_COUNTED.into() && self.used(mt) > 1
    }

    /// How many more frames are free than its bin says; with any flag, or without a bin, or fewer, a huge number.
    #[inline]
    fn drifted(&self) -> u64 {
        let bin_and_flags = self.word >> BIN & !(3 << (CLASS - BIN));
        u64::from(self.free()).wrapping_sub(bin_and_flags * u64::from(BIN_FRAMES))
    }

    /// How many frames that were asked for as `mt`, the block's own type, [only count](Self::only_counts) one after the
    /// other.
    #[inline]
    pub fn only_counted(&self, mt: usize) -> u32 {
        let room = u64::from(MOST_COUNTED).saturating_sub(self.drifted()) as u32;
        let is_own = self.class() == mt;
        if is_own {
            room.min(self.used(mt).saturating_sub(1))
        } else {
            0
        }
    }

    /// The number of its map of absent frames, if only a part of it is memory.
    #[inline]
    pub fn partial(&self) -> Option<usize> {
        if self.is_tried() {
            return None;
        }
        ((self.word >> PARTIAL) as usize).checked_sub(1)
    }

    /// It is in no bin as one that waits: a frame that stayed is forgotten.
    pub fn set_partial(&mut self, map: Option<usize>) {
        self.forget();
        let bits = map.map_or(0, |map| map as u64 + 1);
        self.word = self.word & !PARTIAL_BITS | bits << PARTIAL;
    }

    /// Its type.
    #[inline]
    pub fn mt(&self) -> usize {
        match self.class() {
            WAITS => MOVABLE,
            mt => mt,
        }
    }

    /// Whether its type is another one than movable.
    #[inline]
    pub fn is_kept(&self) -> bool {
        // Those of WAITS are of movable frames.
        self.word >> CLASS & MOVABLE as u64 == 0
    }

    #[inline]
    pub fn set_mt(&mut self, mt: usize) {
        self.set_class(mt);
    }

    /// The class of the bins where it is, or was the last time.
    #[inline]
    pub fn class(&self) -> usize {
        (self.word >> CLASS & 3) as usize
    }

    #[inline]
    pub fn set_class(&mut self, class: usize) {
        self.word = self.word & !(3 << CLASS) | (class as u64) << CLASS;
    }

    #[inline]
    fn bin_bits(&self) -> u64 {
        self.word >> BIN & NO_BIN
    }

    /// How many bins after its own it belongs with so many free frames; a huge number, if before, or if it is in none.
    #[inline]
    fn drift(&self, free: u32) -> usize {
        Block::bin_of(free).wrapping_sub(self.bin_bits() as usize)
    }

    /// The bin in which it is.
    #[inline]
    pub fn bin(&self) -> Option<usize> {
        let bin = self.bin_bits();
        (bin != NO_BIN).then_some(bin as usize % BINS)
    }

    #[inline]
    pub fn is_binned(&self) -> bool {
        self.bin_bits() != NO_BIN
    }

    #[inline]
    pub fn set_bin(&mut self, bin: Option<usize>) {
        let bin = bin.map_or(NO_BIN, |b| b as u64);
        self.word = self.word & !(NO_BIN << BIN) | bin << BIN;
    }

    /// Whether it may stay in its bin with so many free frames: it belongs there, or has become emptier by less than
    /// [`DRIFT`] bins, or waits for something else.
    #[inline]
    pub fn may_stay(&self, free: u32) -> bool {
        let is_there = self.drift(free) < DRIFT;
        free > 0 && free < FRAMES && (is_there || self.class() == WAITS && self.is_binned())
    }

    /// The bin for so many free frames.
    #[inline]
    pub fn bin_of(free: u32) -> usize {
        (free / BIN_FRAMES) as usize
    }

    /// Free frames that a block of a bin has at most.
    pub fn most_free(bin: usize) -> u32 {
        (bin + DRIFT) as u32 * BIN_FRAMES - 1
    }

    #[inline]
    pub fn is_intact(&self) -> bool {
        self.word & INTACT != 0
    }

    /// Whether it is, for a request of a type, and nothing else is to be known of it.
    #[inline]
    pub fn is_intact_of(&self, mt: usize) -> bool {
        self.word == Block::intact(mt)
    }

    #[inline]
    pub fn set_intact(&mut self, intact: bool) {
        self.flag(INTACT, intact);
    }

    #[inline]
    pub fn is_apart(&self) -> bool {
        self.word & APART != 0
    }

    pub fn set_apart(&mut self, apart: bool) {
        self.flag(APART, apart);
    }

    /// Whether a frame of it stayed when it was to be emptied.
    #[inline]
    pub fn is_tried(&self) -> bool {
        self.word & TRIED != 0
    }

    /// The frame that stayed the last time, and how often some did in a row.
    pub fn stays(&self) -> Option<(u32, u32)> {
        let at = (self.word >> STAYS) as u32 % FRAMES;
        self.is_tried().then_some((at, (self.word >> TRIES) as u32))
    }

    /// A frame of it stayed: it is left alone for some rounds. All of it is memory, and it is in no bin.
    pub fn set_waiting(&mut self, at: u32) {
        let tries = self.stays().map_or(0, |(_, n)| n);
        let tries = (tries + 1).min(Block::MOST_TRIES);
        self.word &= !PARTIAL_BITS;
        self.word |= TRIED | u64::from(at % FRAMES) << STAYS | u64::from(tries) << TRIES;
        if self.mt() == MOVABLE {
            self.set_class(WAITS);
        }
    }

    /// No frame of it is known to stay any more. It is in no bin as one that waits.
    pub fn forget(&mut self) {
        if self.is_tried() {
            self.word &= !(PARTIAL_BITS | TRIED);
            self.set_class(self.mt());
        }
    }

    /// Whether it is of one type, all of it is memory, and nothing in it is known that cannot be moved.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.word & (TAINT | PARTIAL_BITS | TRIED) == 0 && self.class() != WAITS
    }

    /// Whether all of it is memory, and nothing in it is known that cannot be moved.
    #[inline]
    pub fn can_be_emptied(&self) -> bool {
        !self.is_tainted() && self.partial().is_none()
    }

    /// Whether it is to be left alone for now, since a frame of it stayed.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.is_tried() && self.class() == WAITS
    }

    /// Whether all of it is free, and may be handed out.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.free() == FRAMES && !self.is_apart()
    }

    /// Whether something in it cannot be moved.
    #[inline]
    pub fn is_tainted(&self) -> bool {
        self.word & TAINT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A freed frame only counts, if the block may stay where it is and holds another one of the type, and if nothing else
    /// is known of it.
    #[test]
    fn a_freed_frame_only_counts_where_nothing_else_changes() {
        let flags = [0, INTACT, APART, TRIED, 1 << PARTIAL, 1 << STAYS | TRIED];
        for free in (0..FRAMES).step_by(if cfg!(miri) { 97 } else { 1 }) {
            for used in [1, 2, (FRAMES - free) / 2].map(|n| n.min(FRAMES - free)) {
                for bin in (0..BINS).map(Some).chain([None]) {
                    for class in 0..CLASSES {
                        let mut b = Block::NO_MEMORY;
                        b.word |= u64::from(free) | u64::from(used) << at(RECLAIMABLE);
                        b.set_bin(bin);
                        b.set_class(class);
                        // With as many as it has, it may be there as well.
                        let stays = b.drift(free + 1) < DRIFT && b.drift(free) < DRIFT;
                        for flag in flags {
                            b.word &= !(INTACT | APART | PARTIAL_BITS | TRIED);
                            b.word |= flag;
                            let counts = stays && used > 1 && flag == 0;
                            assert_eq!(b.only_counts(RECLAIMABLE), counts, "{b:?}");
                        }
                    }
                }
            }
        }
    }
}
