//! Blocks by type and by how many of their frames are free.

use super::block::{BINS, Block};
use super::sizes::{NIL, TYPES};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// The bins of all types: the first block of each, the one that got there last.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct Bins {
    heads: [[u32; BINS]; TYPES],
    /// Bins that are not empty, a bit each.
    filled: [u64; TYPES],
}

impl Bins {
    pub fn clear(&mut self) {
        self.heads = [[NIL; BINS]; TYPES];
        self.filled = [0; TYPES];
    }

    /// Bins of a type that are not empty, a bit each, the fullest blocks first.
    #[inline]
    pub fn filled(&self, mt: usize) -> u64 {
        self.filled[mt]
    }

    /// The first block of a bin.
    #[inline]
    pub fn head(&self, mt: usize, bin: usize) -> u32 {
        self.heads[mt][bin]
    }

    /// Puts a block into the bin where it belongs.
    #[inline]
    pub fn link(&mut self, blocks: &mut [Block], i: u32) {
        let b = &mut blocks[i as usize];
        let (mt, bin) = (b.mt(), Block::bin_of(b.free));
        let head = core::mem::replace(&mut self.heads[mt][bin], i);
        (b.next, b.prev) = (head, NIL);
        b.set_binned(true);
        if head != NIL {
            blocks[head as usize].prev = i;
        }
        self.filled[mt] |= 1 << bin;
    }

    /// Takes a block out of its bin. It has the type and the free frames still with which it got there.
    #[inline]
    pub fn unlink(&mut self, blocks: &mut [Block], i: u32) {
        let b = &mut blocks[i as usize];
        let (mt, bin) = (b.mt(), Block::bin_of(b.free));
        let (next, prev) = (b.next, b.prev);
        b.set_binned(false);
        if next != NIL {
            blocks[next as usize].prev = prev;
        }
        if prev != NIL {
            blocks[prev as usize].next = next;
        } else {
            self.heads[mt][bin] = next;
            if next == NIL {
                self.filled[mt] &= !(1 << bin);
            }
        }
    }

    /// The blocks of a bin.
    pub fn of<'a>(
        &self,
        blocks: &'a [Block],
        mt: usize,
        bin: usize,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let next = |i: u32| (i != NIL).then_some(i);
        let first = next(self.heads[mt][bin]);
        core::iter::successors(first, move |&i| next(blocks[i as usize].next))
    }
}
