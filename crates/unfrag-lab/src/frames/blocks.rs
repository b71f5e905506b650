//! Frames in the blocks of physical memory that they lie in.
//!
//! Invariant: a frame counts once, however often it is mapped.

use std::collections::{BTreeMap, BTreeSet};

/// Which frames of which blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    /// Frames in a block, as a power of two.
    order: u32,
    /// A bit a frame, by the number of the block.
    frames: BTreeMap<u64, Vec<u64>>,
}

impl Blocks {
    /// No frames, in blocks of this order.
    pub fn new(order: u32) -> Blocks {
        Blocks {
            order,
            frames: BTreeMap::new(),
        }
    }

    /// Adds a frame.
    pub fn add(&mut self, frame: u64) {
        let words = (1usize << self.order).div_ceil(64);
        let bits = self.frames.entry(frame >> self.order);
        let bits = bits.or_insert_with(|| vec![0; words]);
        let at = (frame & ((1 << self.order) - 1)) as usize;
        bits[at / 64] |= 1 << (at % 64);
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Blocks) {
        for (block, bits) in &other.frames {
            let mine = self.frames.entry(*block);
            let mine = mine.or_insert_with(|| vec![0; bits.len()]);
            mine.iter_mut().zip(bits).for_each(|(a, b)| *a |= b);
        }
    }

    /// Number of frames.
    pub fn frames(&self) -> u64 {
        self.sizes().sum()
    }

    /// Blocks that one of them is in.
    pub fn number(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Blocks of a larger order that one of them is in.
    pub fn number_of(&self, order: u32) -> u64 {
        let larger = order.saturating_sub(self.order);
        let all: BTreeSet<u64> = self.frames.keys().map(|b| b >> larger).collect();
        all.len() as u64
    }

    /// The fewest blocks of an order that they fit into.
    pub fn fewest(&self, order: u32) -> u64 {
        self.frames().div_ceil(1 << order)
    }

    /// Frames that have to move, at least, before all lie in the fewest blocks: those outside of the fullest.
    pub fn moves(&self) -> u64 {
        let mut sizes: Vec<u64> = self.sizes().collect();
        sizes.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
        let fewest = usize::try_from(self.fewest(self.order)).unwrap_or(usize::MAX);
        sizes.iter().skip(fewest).sum()
    }

    fn sizes(&self) -> impl Iterator<Item = u64> + '_ {
        let count = |bits: &Vec<u64>| bits.iter().map(|w| u64::from(w.count_ones())).sum();
        self.frames.values().map(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_once_and_the_fullest_blocks_stay() {
        let mut all = Blocks::new(9);
        // 300 in block 0, 200 in block 1, 24 in block 700 (another gigabyte).
        (0..300).for_each(|f| all.add(f));
        (512..712).for_each(|f| all.add(f));
        (512..712).for_each(|f| all.add(f));
        let mut other = Blocks::new(9);
        (700 * 512..700 * 512 + 24).for_each(|f| other.add(f));
        (0..10).for_each(|f| other.add(f));
        all.merge(&other);
        assert_eq!((all.frames(), all.number(), all.number_of(18)), (524, 3, 2));
        assert_eq!((all.fewest(9), all.fewest(18)), (2, 1));
        assert_eq!(all.moves(), 24);
        assert_eq!(Blocks::new(9).moves(), 0);
    }
}
