//! Which frames of a block are no memory, where only a part of it is.
//!
//! Nearly all blocks are memory as a whole, or not at all, and need no map of it; the others, at the ends of regions, share a
//! table.
//!
//! Invariant: a block that is partly memory has a map of its own here, in which its absent frames are set; a map without a
//! set bit is nobody's.

use super::engine::Engine;
use super::error::GiveError;
use super::map::Map;
use super::sizes::{BLOCK_ORDER, FRAMES};
use crate::frame::{FrameIx, Order, Pfn};

impl Engine<'_> {
    /// Adds memory, all of it free: the `frames` frames from `start` on, which were not added before.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, or if some of it is beyond the frames of the engine, has been added, or is in a block
    /// that is being emptied; and if a block would be partly memory, as 512 and an eighth of all blocks, or 4095, are already. Nothing has changed then.
    pub fn add(&mut self, start: u32, frames: u32) -> Result<(), GiveError> {
        self.can_add(start, frames)?;
        for (ix, order) in self.pieces(start, frames)? {
            let i = ix.0 / FRAMES;
            self.is_memory(i, ix.0 % FRAMES, order);
            self.maps[i as usize].set_run(ix.0 % FRAMES, order);
            self.blocks[i as usize].add(order.frames());
            self.settle(i);
            self.count_added(order.frames());
        }
        Ok(())
    }

    /// Whether [`add`](Self::add) would add these frames.
    ///
    /// # Errors
    /// As there.
    pub fn can_add(&self, start: u32, frames: u32) -> Result<(), GiveError> {
        let mut new_maps = 0;
        let mut last = None;
        for (ix, order) in self.pieces(start, frames)? {
            let i = ix.0 / FRAMES;
            if !self.is_absent(i, ix.0 % FRAMES, order) {
                return Err(GiveError::Present(Pfn(ix.0.into())));
            }
            if self.blocks[i as usize].is_apart() {
                return Err(GiveError::InUse(Pfn(ix.0.into())));
            }
            let is_new = self.blocks[i as usize].absent() == FRAMES && last != Some(i);
            new_maps += usize::from(is_new && order < BLOCK_ORDER);
            last = Some(i);
        }
        // Only the first and the last block of a range may need one.
        let mut free = self.absent.iter().filter(|map| **map == Map::EMPTY);
        if new_maps > 0 && free.nth(new_maps - 1).is_none() {
            return Err(GiveError::TooManyHoles(Pfn(start.into())));
        }
        Ok(())
    }

    /// The aligned pieces of a range of the engine's frames, a block at most.
    pub(super) fn pieces(
        &self,
        start: u32,
        frames: u32,
    ) -> Result<impl Iterator<Item = (FrameIx, Order)> + Clone + use<>, GiveError> {
        let end = self.end_of(start, frames)?;
        Ok(FrameIx(start).blocks_until(FrameIx(end), BLOCK_ORDER))
    }

    /// The end of a range of the engine's frames.
    pub(super) fn end_of(&self, start: u32, frames: u32) -> Result<u32, GiveError> {
        let end = start
            .checked_add(frames)
            .filter(|&end| end <= self.frames());
        let end = end.ok_or(GiveError::NoMemory(Pfn(start.max(self.frames()).into())))?;
        if frames == 0 {
            return Err(GiveError::NoFrames(Pfn(start.into())));
        }
        Ok(end)
    }

    /// Whether none of an aligned run of a block is memory.
    fn is_absent(&self, i: u32, at: u32, order: Order) -> bool {
        let b = &self.blocks[i as usize];
        match b.partial() {
            Some(map) => self.absent[map].is_free_run(at, order),
            None => b.absent() == FRAMES,
        }
    }

    /// Whether some of an aligned run of a block is no memory.
    pub(super) fn has_absent(&self, i: u32, at: u32, order: Order) -> bool {
        let b = &self.blocks[i as usize];
        match b.partial() {
            Some(map) => !self.absent[map].is_clear_run(at, order),
            None => b.absent() > 0,
        }
    }

    /// An aligned run of a block, which was no memory, is about to be.
    fn is_memory(&mut self, i: u32, at: u32, order: Order) {
        let b = &mut self.blocks[i as usize];
        if order == BLOCK_ORDER {
            return;
        }
        let slot = b.partial().or_else(|| {
            let free = self.absent.iter().position(|map| *map == Map::EMPTY)?;
            self.absent[free] = Map::FULL;
            Some(free)
        });
        let Some(slot) = slot else {
            unreachable!("it was seen that there is a map");
        };
        self.absent[slot].clear_run(at, order);
        let is_left = self.absent[slot] != Map::EMPTY;
        b.set_partial(is_left.then_some(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::EngineLayout;
    use super::super::validate::Broken;
    use super::*;
    use crate::frame::MigrateType::Movable;
    use std::vec;

    /// Each state that absence makes wrong is seen, by the block or as a total.
    #[test]
    fn a_wrong_absence_is_found() {
        type Break = fn(&mut Engine);
        let breaks: [(Break, Broken); 6] = [
            // A frame that is no memory is free.
            (|e| _ = e.maps[0].set(5), Broken::Absent(0)),
            // One more is no memory than the counts say, or one less.
            (|e| _ = e.absent[0].set(100), Broken::Absent(0)),
            (|e| e.absent[0].clear_run(5, Order(0)), Broken::Absent(0)),
            // A block that is partly memory has no map, or one that is not there; or a whole one has a map.
            (|e| e.blocks[0].set_partial(None), Broken::Absent(0)),
            (|e| e.blocks[0].set_partial(Some(77)), Broken::Absent(0)),
            // A map is nobody's.
            (|e| _ = e.absent[1].set(9), Broken::Total),
        ];
        for (wrong, why) in breaks {
            let mut memory = vec![0; EngineLayout::of(4096).words];
            let Some(mut e) = Engine::new(4096, &mut memory) else {
                unreachable!("as many words as the layout says");
            };
            assert_eq!(e.add(10, 2000), Ok(()));
            // One map of a block at each end; the second one is filled up again.
            assert_eq!(e.add(2010, 38), Ok(()));
            assert_eq!(e.take(&mut [0; 7], Order(0), Movable, true), 7);
            assert_eq!(e.validate(), Ok(()));
            wrong(&mut e);
            assert_eq!(e.validate(), Err(why));
        }
    }
}
