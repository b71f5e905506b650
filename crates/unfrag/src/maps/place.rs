//! Taking frames by their place, for a device, a firmware, or a caller that asks for an address; and any number of them.

use super::engine::Engine;
use super::error::GiveError;
use super::sizes::{BLOCK_ORDER, FRAMES, LARGEST_ORDER, type_index};
use crate::frame::{MigrateType, Order, Pfn};

impl Engine<'_> {
    /// Takes `frames` frames in one piece, the first one a multiple of `2^align`, out of the smallest free block that has
    /// them; what is left of that block is free again. `mixes` as for [`take`](Engine::take). `None`, if there is no such
    /// block.
    pub fn take_run(
        &mut self,
        frames: u32,
        align: Order,
        mt: MigrateType,
        mixes: bool,
    ) -> Option<u32> {
        let order = Order(frames.checked_next_power_of_two()?.ilog2() as u8).max(align);
        let mut one = [0];
        if frames == 0 || order > LARGEST_ORDER || self.take(&mut one, order, mt, mixes) == 0 {
            return None;
        }
        let [first] = one;
        let rest = order.frames() - frames;
        if rest > 0 {
            let tail = self.give_range(first + frames, rest, mt);
            debug_assert!(tail.is_ok(), "what has just been taken");
        }
        Some(first)
    }

    /// Whether all of the `frames` frames from `start` on are in use, so that [`give_range`](Engine::give_range) refuses none.
    ///
    /// # Errors
    /// [`GiveError`], for the first aligned part, of a block at most, that is not in use as a whole.
    pub fn can_give(&self, start: u32, frames: u32) -> Result<(), GiveError> {
        for (ix, order) in self.pieces(start, frames)? {
            let (i, at) = (ix.0 / FRAMES, ix.0 % FRAMES);
            if self.has_absent(i, at, order) {
                return Err(GiveError::NoMemory(Pfn(ix.0.into())));
            }
            let b = &self.blocks[i as usize];
            let is_used = match order {
                BLOCK_ORDER => b.in_use() == FRAMES,
                _ => b.is_intact() || self.maps[i as usize].is_clear_run(at, order),
            };
            if !is_used {
                return Err(GiveError::NotTaken(Pfn(ix.0.into())));
            }
        }
        Ok(())
    }

    /// Takes the `frames` frames from `start` on, which are all free, for a request of a type.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, or if some of them is not free, or no memory; nothing has changed then.
    pub fn take_range(
        &mut self,
        start: u32,
        frames: u32,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let mt = type_index(mt);
        let pieces = self.pieces(start, frames)?;
        for (ix, order) in pieces.clone() {
            let i = (ix.0 / FRAMES) as usize;
            let b = &self.blocks[i];
            let is_free = !b.is_intact() && self.maps[i].is_free_run(ix.0 % FRAMES, order);
            if !is_free || b.is_apart() {
                let at = Pfn(ix.0.into());
                return Err(match self.has_absent(ix.0 / FRAMES, ix.0 % FRAMES, order) {
                    true => GiveError::NoMemory(at),
                    false => GiveError::InUse(at),
                });
            }
        }
        for (ix, order) in pieces {
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
