//! [`Credit`]: how many frames of a block may be given back before its record has to be looked at.
//!
//! Most frames that are given back change nothing but two counts of their block's record. The record is a line of its own
//! beside the map's, and where the tables are larger than a CPU's cache, a second miss. So such frames are counted down in a
//! byte: those of a gigabyte are eight lines, which stay in the cache.
//!
//! Invariant: while a block has a credit, its record is as it was when that was granted. Whoever changes the record takes
//! the credit away first, and counts in the record what was given back on it. A block that is free as a whole, or taken as
//! one, has at most a credit with nothing left, on which nothing was given back: that one may stay.

use super::block::{Block, MOST_COUNTED};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Where the type is: below it are the frames that are left of what was granted.
const TYPE: u8 = 6;
const LEFT: u8 = (1 << TYPE) - 1;
const _: () = assert!(MOST_COUNTED <= LEFT as u32);

/// So many frames that were asked for as its type may be given back to a block by its map alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout)]
#[repr(transparent)]
pub(super) struct Credit(u8);

impl Credit {
    /// Of no type.
    pub const NONE: Credit = Credit(!LEFT);

    /// All that a block may be granted.
    #[inline]
    pub fn of(block: &Block, mt: usize) -> Credit {
        Credit((mt as u8) << TYPE | block.only_counted(mt) as u8)
    }

    /// With one less left; `None`, if it has none left for a type.
    #[inline(always)]
    pub fn less_one(self, mt: usize) -> Option<Credit> {
        let less = self.0.wrapping_sub(1);
        (less.wrapping_sub((mt as u8) << TYPE) < LEFT).then_some(Credit(less))
    }

    /// The block with all that was given back on this credit.
    #[inline]
    pub fn settled(self, mut block: Block) -> Block {
        if self != Credit::NONE {
            let mt = usize::from(self.0 >> TYPE);
            let spent = block.only_counted(mt).saturating_sub(self.left());
            block.give(mt, spent);
        }
        block
    }

    /// Whether no more is left than the block may be granted.
    pub fn is_right(self, block: &Block) -> bool {
        let mt = usize::from(self.0 >> TYPE);
        self == Credit::NONE || self.left() <= block.only_counted(mt)
    }

    fn left(self) -> u32 {
        u32::from(self.0 & LEFT)
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::BINS;
    use super::super::sizes::{FRAMES, TYPES};
    use super::*;

    /// A block that takes what is given back on credit ends as one in which each frame is counted; and it is granted as many
    /// as only count, of its own type.
    #[test]
    fn what_is_given_back_on_credit_only_counts() {
        for used in (1..FRAMES).step_by(if cfg!(miri) { 97 } else { 1 }) {
            for (class, bin) in (0..TYPES).flat_map(|c| (0..BINS).map(move |bin| (c, bin))) {
                let mut block = Block::FREE;
                block.take(class, used);
                block.set_bin(Some(bin));
                block.set_class(class);
                for mt in 0..TYPES {
                    let (mut credit, mut counted, mut n) = (Credit::of(&block, mt), block, 0);
                    while let Some(less) = credit.less_one(mt) {
                        assert!(counted.only_counts(mt) && credit.is_right(&block));
                        assert_eq!((credit.settled(block)).free(), counted.free());
                        counted.give(mt, 1);
                        credit = less;
                        n += 1;
                    }
                    assert!((0..TYPES).all(|other| credit.less_one(other).is_none()));
                    assert_eq!(credit.settled(block).used(mt), counted.used(mt));
                    assert_eq!(credit.settled(block).free(), block.free() + n);
                    assert!(mt != class || !counted.only_counts(mt));
                }
            }
        }
    }

    /// More than a block may be granted is seen.
    #[test]
    fn a_credit_that_is_too_large_is_wrong() {
        let mut block = Block::FREE;
        block.take(1, 3);
        block.set_bin(Some(Block::bin_of(block.free())));
        block.set_class(1);
        let right = Credit::of(&block, 1);
        assert!(right.less_one(1).is_some() && right.is_right(&block));
        assert!(!Credit(right.0 + 1).is_right(&block));
        let has = |mt| Credit::NONE.less_one(mt).is_some();
        assert!(Credit::NONE.is_right(&block) && !(0..TYPES).any(has));
    }
}
