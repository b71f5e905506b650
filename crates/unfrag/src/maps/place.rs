//! Taking frames by their place: for a device, a firmware, or a caller that asks for an address.

use super::engine::{Engine, GiveError};
use super::sizes::{BLOCK_ORDER, FRAMES, type_index};
use crate::frame::{FrameIx, MigrateType, Order};

impl Engine<'_> {
    /// Takes the `frames` frames from `start` on, which are all free, for a request of a type.
    ///
    /// # Errors
    /// [`GiveError`], if some of them is not free, or beyond the frames of the engine; nothing has changed then.
    pub fn take_range(
        &mut self,
        start: u32,
        frames: u32,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let end = start
            .checked_add(frames)
            .filter(|&end| end <= self.frames());
        let end = end.ok_or(GiveError::NotABlock(start))?;
        let mt = type_index(mt);
        let pieces = || FrameIx(start).blocks_until(FrameIx(end), BLOCK_ORDER);
        for (ix, order) in pieces() {
            let i = (ix.0 / FRAMES) as usize;
            let b = &self.blocks[i];
            let is_free = !b.is_intact() && self.maps[i].is_free_run(ix.0 % FRAMES, order);
            if !is_free || b.is_apart() {
                return Err(GiveError::NotTaken(ix.0));
            }
        }
        for (ix, order) in pieces() {
            let i = ix.0 / FRAMES;
            if self.blocks[i as usize].is_whole() {
                self.take_whole_run(i, Order::ZERO);
                if order == BLOCK_ORDER {
                    self.use_whole(i, Order::ZERO, mt);
                    self.count_free(-i64::from(FRAMES));
                    continue;
                }
                self.blocks[i as usize].set_mt(mt);
            } else if self.blocks[i as usize].in_use() == 0 {
                // A block of which only a part is memory.
                self.retype(i, mt);
            }
            self.maps[i as usize].clear_run(ix.0 % FRAMES, order);
            self.taken(i, order.frames(), mt);
        }
        Ok(())
    }
}
