//! The record of a block of 512 frames.

use super::sizes::{FRAMES, NIL, TYPES};
use crate::frame::MigrateType;
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Bins of a type: so many frames share one.
pub(super) const BIN_FRAMES: u32 = FRAMES / BINS as u32;
pub(super) const BINS: usize = 64;
/// A block that has grown emptier is found in its old bin until it belongs so many bins further on.
pub(super) const DRIFT: usize = 2;
const NO_BIN: u8 = u8::MAX;

/// A block of 512 frames.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct Block {
    /// The others of its bin.
    pub next: u32,
    pub prev: u32,
    pub free: u16,
    /// Frames in use, by the type of their requests.
    pub used: [u16; TYPES],
    /// Its type, while some of it is in use.
    mt: u8,
    /// The bin in which it is, or [`NO_BIN`].
    bin: u8,
    /// It is in use as a whole, and its map, which nobody has touched, still says that it is free.
    intact: u8,
    /// It is set apart to be emptied: in no bin, and none of its free frames is handed out.
    apart: u8,
    /// It was set apart in vain.
    stuck: u8,
    pad: [u8; 11],
}

const _: () = assert!(size_of::<Block>() == 32, "two to a cache line");

impl Block {
    /// No memory.
    pub const ABSENT: Block = Block {
        next: NIL,
        prev: NIL,
        free: 0,
        used: [0; TYPES],
        mt: MigrateType::Movable as u8,
        bin: NO_BIN,
        intact: 0,
        apart: 0,
        stuck: 0,
        pad: [0; 11],
    };

    #[inline]
    pub fn mt(&self) -> usize {
        usize::from(self.mt)
    }

    #[inline]
    pub fn set_mt(&mut self, mt: usize) {
        self.mt = mt as u8;
    }

    /// The bin in which it is.
    #[inline]
    pub fn bin(&self) -> Option<usize> {
        self.is_binned().then(|| usize::from(self.bin) % BINS)
    }

    #[inline]
    pub fn is_binned(&self) -> bool {
        self.bin != NO_BIN
    }

    #[inline]
    pub fn set_bin(&mut self, bin: Option<usize>) {
        self.bin = bin.map_or(NO_BIN, |b| b as u8);
    }

    /// Whether it may stay in its bin with so many free frames: it belongs there, or has become emptier by less than
    /// [`DRIFT`] bins.
    #[inline]
    pub fn may_stay(&self, free: u16) -> bool {
        let bin = usize::from(self.bin);
        let wanted = Block::bin_of(free);
        free > 0 && wanted < BINS && wanted.wrapping_sub(bin) < DRIFT
    }

    #[inline]
    pub fn is_intact(&self) -> bool {
        self.intact != 0
    }

    /// Whether it is, for a request of a type.
    #[inline]
    pub fn is_intact_of(&self, mt: usize) -> bool {
        self.is_intact() && u32::from(self.used[mt]) == FRAMES
    }

    #[inline]
    pub fn set_intact(&mut self, intact: bool) {
        self.intact = intact.into();
    }

    #[inline]
    pub fn is_apart(&self) -> bool {
        self.apart != 0
    }

    pub fn set_apart(&mut self, apart: bool) {
        self.apart = apart.into();
    }

    pub fn is_stuck(&self) -> bool {
        self.stuck != 0
    }

    pub fn set_stuck(&mut self, stuck: bool) {
        self.stuck = stuck.into();
    }

    /// The bin for so many free frames.
    #[inline]
    pub fn bin_of(free: u16) -> usize {
        (u32::from(free) / BIN_FRAMES) as usize
    }

    /// Whether all of it is free, and may be handed out.
    #[inline]
    pub fn is_whole(&self) -> bool {
        u32::from(self.free) == FRAMES && !self.is_apart()
    }

    /// Frames in use.
    pub fn in_use(&self) -> u32 {
        self.used.iter().map(|&n| u32::from(n)).sum()
    }

    /// Whether something in it cannot be moved.
    #[inline]
    pub fn is_tainted(&self) -> bool {
        self.used[MigrateType::Unmovable as usize] > 0
            || self.used[MigrateType::Reclaimable as usize] > 0
    }

    /// Whether a frame that is given back changes nothing but counts: the block stays in its bin, and holds others that
    /// were asked for as `mt`.
    #[inline]
    pub fn only_counts(&self, mt: usize) -> bool {
        self.may_stay(self.free + 1) && self.used[mt] > 1
    }

    /// Counts `n` frames as given back, that were asked for as `mt`, or as whatever else is in use: false, if not so
    /// many are.
    #[inline]
    pub fn give_back(&mut self, mt: usize, n: u16) -> bool {
        if self.used[mt] >= n {
            self.used[mt] -= n;
            return true;
        }
        self.give_back_of_any(mt, n)
    }

    #[cold]
    fn give_back_of_any(&mut self, mt: usize, mut n: u16) -> bool {
        if self.in_use() < n.into() {
            return false;
        }
        for i in [mt, 0, 1, 2] {
            let of_it = self.used[i].min(n);
            self.used[i] -= of_it;
            n -= of_it;
        }
        true
    }
}
