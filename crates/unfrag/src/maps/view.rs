//! What each block of 512 frames holds, for those who look on.

use super::engine::Engine;
use super::sizes::{FRAMES, TYPES};
use super::tables::Entries;
use crate::frame::Pfn;

/// A block of 512 frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockView {
    /// Free frames.
    pub free: u32,
    /// Frames in use for requests of each type: unmovable, movable, reclaimable.
    pub used: [u32; TYPES],
    /// Somebody empties it: its free frames are not handed out meanwhile, and count as free for nobody.
    pub is_apart: bool,
}

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// The first frame of each block that has memory, in the order of their addresses, and what it holds.
    pub fn blocks(&self) -> impl Iterator<Item = (Pfn, BlockView)> {
        let present = self.of.blocks().filter(|(_, b, _)| b.absent() < FRAMES);
        present.map(|(i, b, _)| {
            let view = BlockView {
                free: b.free(),
                used: core::array::from_fn(|mt| b.used(mt)),
                is_apart: b.is_apart(),
            };
            (self.frame(i * FRAMES), view)
        })
    }
}
