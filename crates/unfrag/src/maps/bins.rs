//! Blocks by type and by how many of their frames are free.

use super::block::{BINS, Block};
use super::sizes::{NIL, TYPES};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Blocks that one search for the fullest puts where they belong.
const SETTLED: usize = 64;

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

    /// Puts a block into the bin where it belongs.
    #[inline]
    pub fn link(&mut self, blocks: &mut [Block], i: u32) {
        let b = &mut blocks[i as usize];
        let (mt, bin) = (b.mt(), Block::bin_of(b.free()));
        let head = core::mem::replace(&mut self.heads[mt][bin], i);
        (b.next, b.prev) = (head, NIL);
        b.set_bin(Some(bin));
        if head != NIL {
            blocks[head as usize].prev = i;
        }
        self.filled[mt] |= 1 << bin;
    }

    /// Takes a block out of its bin. It has the type still with which it got there.
    #[inline]
    pub fn unlink(&mut self, blocks: &mut [Block], i: u32) {
        let b = &mut blocks[i as usize];
        let (mt, Some(bin)) = (b.mt(), b.bin()) else {
            return;
        };
        let (next, prev) = (b.next, b.prev);
        b.set_bin(None);
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

    /// The fullest block of a type: the first one of the first bin that belongs there. Those on the way that do not
    /// go where they belong; after so many the next one will do.
    #[inline]
    pub fn fullest(&mut self, blocks: &mut [Block], mt: usize) -> Option<u32> {
        for _ in 0..SETTLED {
            let i = self.first(mt)?;
            let b = &blocks[i as usize];
            if b.bin() == Some(Block::bin_of(b.free())) {
                return Some(i);
            }
            self.unlink(blocks, i);
            self.link(blocks, i);
        }
        self.first(mt)
    }

    #[inline]
    fn first(&self, mt: usize) -> Option<u32> {
        let filled = self.filled[mt];
        (filled != 0).then(|| self.heads[mt][filled.trailing_zeros() as usize])
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
