//! What each block of 512 frames holds, for those who look on.

use super::engine::Engine;
use super::sizes::{FRAMES, TYPES};

/// A block of 512 frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockView {
    /// Free frames.
    pub free: u32,
    /// Frames in use for requests of each type: unmovable, movable, reclaimable.
    pub used: [u32; TYPES],
}

impl Engine<'_> {
    /// What each block holds, in the order of their addresses: up to the last one that has memory.
    pub fn blocks(&self) -> impl Iterator<Item = BlockView> {
        let has_memory = |b: &super::block::Block| b.absent() < FRAMES;
        let count = self
            .blocks
            .iter()
            .rposition(has_memory)
            .map_or(0, |i| i + 1);
        self.blocks[..count].iter().map(|b| BlockView {
            free: b.free(),
            used: core::array::from_fn(|mt| b.used(mt)),
        })
    }
}
