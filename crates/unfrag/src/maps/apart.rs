//! Blocks that are set apart to be emptied.
//!
//! The block with the fewest frames in use costs the fewest copies. While it is set apart nobody gets a frame of it, and
//! what is freed in it stays there. When its last frame has gone it is a whole free block.

use super::bins::Bins;
use super::block::{BINS, Block, DRIFT};
use super::engine::Engine;
use super::sizes::{FRAMES, MOVABLE};
use super::tables::Entries;

/// Blocks of a bin that are looked at for the one with the fewest frames in use.
const LOOKED_AT: usize = 64;

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Sets the block apart that is cheapest to empty: it has free frames, none in use that cannot be moved, and at most
    /// `most` in use. `None`, if there is no such block, but those that were set apart in vain: they are tried again
    /// next time.
    pub fn set_apart(&mut self, most: u32) -> Option<u32> {
        let Some((_, i)) = self.cheapest(most) else {
            self.of.each_block_mut(|b| b.set_stuck(false));
            return None;
        };
        self.unbin(i);
        self.of.block_mut(i).set_apart(true);
        Some(i)
    }

    /// The block that would be set apart, after how many of its frames are in use.
    pub fn cheapest(&self, most: u32) -> Option<(u32, u32)> {
        let bins: &Bins = &self.bins;
        let filled = bins.filled(MOVABLE);
        let mut best: Option<(u32, u32)> = None;
        for bin in (0..BINS).rev().filter(|bin| filled >> bin & 1 == 1) {
            // A block in a later bin has more free frames, but for the drift.
            if best.is_some_and(|(used, _)| bin + DRIFT <= Block::bin_of(FRAMES - used)) {
                break;
            }
            for i in bins.of(&self.of, MOVABLE, bin).take(LOOKED_AT) {
                let b = self.of.block(i);
                let is_better = best.is_none_or(|(used, _)| b.in_use() < used);
                // A block that is partly no memory never becomes a whole one.
                let is_memory = b.absent() == 0;
                if is_better && is_memory && !b.is_tainted() && !b.is_stuck() && b.in_use() <= most
                {
                    best = Some((b.in_use(), i));
                }
            }
        }
        best
    }

    /// The first place from `from` on that is in use, of a block that is set apart.
    pub fn next_in_use(&self, block: u32, from: u32) -> Option<u32> {
        self.of.find(block).filter(|b| b.is_apart())?;
        self.of.map(block).next_in_use(from)
    }

    /// Ends the setting apart of a block. True, if it is a whole free block now; else it is not set apart again until
    /// others have been tried.
    pub fn end_apart(&mut self, block: u32) -> bool {
        let found = self.of.block_and_map(block);
        let Some((b, _)) = found.filter(|(b, _)| b.is_apart()) else {
            return false;
        };
        b.set_apart(false);
        let whole = b.is_whole();
        b.set_stuck(!whole);
        self.settle(block);
        self.runs_came(block);
        whole
    }
}
