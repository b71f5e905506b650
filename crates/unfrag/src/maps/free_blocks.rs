//! What is free, as a buddy allocator would show it: the largest aligned blocks that are free, by type and order.

use super::engine::Engine;
use super::sizes::{BLOCK_ORDER, LARGEST_ORDER, MOVABLE, TYPES};
use super::tables::Entries;

/// Free blocks, each as large as it can be and aligned to its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FreeBlocks {
    /// By type (unmovable, movable, reclaimable) and order. What is free as a whole counts as movable.
    pub of: [[u64; LARGEST_ORDER.0 as usize + 1]; TYPES],
    /// Blocks of 512 frames of each type.
    pub blocks: [u64; TYPES],
}

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Free blocks by type and order. It looks at each map.
    pub fn free_blocks(&self) -> FreeBlocks {
        let mut free = FreeBlocks::default();
        for (_, b, map) in self.of.blocks() {
            // What is being emptied is not to be had.
            if b.in_use() == 0 && b.free() == 0 || b.is_apart() {
                continue;
            }
            let mt = if b.is_whole() { MOVABLE } else { b.mt() };
            free.blocks[mt] += 1;
            if !b.is_whole() && !b.is_intact() {
                map.add_blocks(&mut free.of[mt][..]);
            }
        }
        for (_, tables) in self.of.all() {
            tables
                .whole
                .whole
                .add_blocks(&mut free.of[MOVABLE][usize::from(BLOCK_ORDER.0)..]);
        }
        free
    }
}
