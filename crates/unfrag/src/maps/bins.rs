//! Blocks by type and by how many of their frames are free.

use super::block::{BINS, Block};
use super::sizes::{NIL, TYPES};
use super::tables::{Directory, Entries};

/// Blocks that one search for the fullest puts where they belong.
const SETTLED: usize = 64;

/// The bins of all types: the first block of each, the one that got there last.
#[derive(Debug)]
pub(super) struct Bins {
    heads: [[u32; BINS]; TYPES],
    /// Bins that are not empty, a bit each.
    filled: [u64; TYPES],
}

impl Bins {
    pub const EMPTY: Bins = Bins {
        heads: [[NIL; BINS]; TYPES],
        filled: [0; TYPES],
    };

    /// Bins of a type that are not empty, a bit each, the fullest blocks first.
    #[inline]
    pub fn filled(&self, mt: usize) -> u64 {
        self.filled[mt]
    }

    /// Puts a block into the bin where it belongs.
    #[inline]
    pub fn link<'m, D: Entries<'m>>(&mut self, of: &mut Directory<'m, D>, i: u32) {
        let b = of.block_mut(i);
        let (mt, bin) = (b.mt(), Block::bin_of(b.free()));
        let head = core::mem::replace(&mut self.heads[mt][bin], i);
        (b.next, b.prev) = (head, NIL);
        b.set_bin(Some(bin));
        if head != NIL {
            of.block_mut(head).prev = i;
        }
        self.filled[mt] |= 1 << bin;
    }

    /// Takes a block out of its bin. It has the type still with which it got there.
    #[inline]
    pub fn unlink<'m, D: Entries<'m>>(&mut self, of: &mut Directory<'m, D>, i: u32) {
        let b = of.block_mut(i);
        let (mt, Some(bin)) = (b.mt(), b.bin()) else {
            return;
        };
        let (next, prev) = (b.next, b.prev);
        b.set_bin(None);
        if next != NIL {
            of.block_mut(next).prev = prev;
        }
        if prev != NIL {
            of.block_mut(prev).next = next;
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
    pub fn fullest<'m, D: Entries<'m>>(
        &mut self,
        of: &mut Directory<'m, D>,
        mt: usize,
    ) -> Option<u32> {
        for _ in 0..SETTLED {
            let i = self.first(mt)?;
            let b = of.block(i);
            if b.bin() == Some(Block::bin_of(b.free())) {
                return Some(i);
            }
            self.unlink(of, i);
            self.link(of, i);
        }
        self.first(mt)
    }

    #[inline]
    fn first(&self, mt: usize) -> Option<u32> {
        let filled = self.filled[mt];
        (filled != 0).then(|| self.heads[mt][filled.trailing_zeros() as usize])
    }

    /// The blocks of a bin.
    pub fn of<'a, 'm: 'a, D: Entries<'m>>(
        &self,
        of: &'a Directory<'m, D>,
        mt: usize,
        bin: usize,
    ) -> impl Iterator<Item = u32> + use<'a, 'm, D> {
        let next = |i: u32| (i != NIL).then_some(i);
        let first = next(self.heads[mt][bin]);
        core::iter::successors(first, move |&i| next(of.block(i).next))
    }
}
