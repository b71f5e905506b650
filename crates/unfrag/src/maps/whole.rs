//! [`Whole`]: the record of a gigabyte.

use super::map::Map;
use super::sizes::{FRAMES, NIL};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Bins of each kind.
pub(super) const BINS: usize = 16;

/// Whole free blocks of a gigabyte.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct Whole {
    /// Its blocks that are free as a whole.
    pub whole: Map,
    /// Those of them that have been reported to a host since they came free.
    pub reported: Map,
    /// The others of its bin.
    pub next: u32,
    pub prev: u32,
    /// How many blocks are.
    pub free: u16,
    /// Blocks that hold something that cannot be moved.
    pub tainted: u16,
    pad: [u32; 13],
}

const _: () = assert!(size_of::<Whole>() == 192, "three cache lines");

impl Whole {
    pub const EMPTY: Whole = Whole {
        whole: Map::EMPTY,
        reported: Map::EMPTY,
        next: NIL,
        prev: NIL,
        free: 0,
        tainted: 0,
        pad: [0; 13],
    };

    /// The bin of one with so many free and tainted blocks.
    #[inline]
    pub const fn bin_of(free: u16, tainted: u16) -> usize {
        let of = free.saturating_sub(1) as usize * BINS / FRAMES as usize;
        if tainted > 0 { BINS + of } else { of }
    }

    /// The bin where it belongs.
    #[inline]
    pub fn bin(&self) -> usize {
        Whole::bin_of(self.free, self.tainted)
    }

    /// Free and tainted blocks, with so many more.
    #[inline]
    fn with(&self, free: i32, tainted: i32) -> (u16, u16) {
        let free = i32::from(self.free) + free;
        let tainted = i32::from(self.tainted) + tainted;
        (free as u16, tainted as u16)
    }

    #[inline]
    pub fn add(&mut self, free: i32, tainted: i32) {
        (self.free, self.tainted) = self.with(free, tainted);
    }

    /// Counts one more free block, if the gigabyte stays in its bin with it; else nothing has changed.
    #[inline(always)]
    pub fn count_one(&mut self) -> bool {
        let stays = !u32::from(self.free).is_multiple_of(FRAMES / BINS as u32);
        self.free += u16::from(stays);
        stays
    }

    /// Counts free and tainted blocks, if the gigabyte stays in its bin with them; else nothing has changed.
    #[inline]
    pub fn count(&mut self, free: i32, tainted: i32) -> bool {
        let (new_free, new_tainted) = self.with(free, tainted);
        let is_binned = self.free > 0 && new_free > 0;
        let stays = is_binned && Whole::bin_of(new_free, new_tainted) == self.bin();
        if stays {
            (self.free, self.tainted) = (new_free, new_tainted);
        }
        stays
    }
}
