//! Blocks that are set apart to be emptied: one, a run of them, or those of a range.
//!
//! A block costs a copy for each of its frames in use. While it is set apart nobody gets a frame of it, and what is free
//! in it counts for no mark: it is not to be had. What is freed there stays there. So when its last frame has gone it is
//! whole, or its frames are taken for who asked for them.
//!
//! Invariant: a block that is set apart is in no bin and no whole free one, and none of its frames counts as free.

use super::block::{Block, WAITS};
use super::engine::Engine;
use super::error::GiveError;
use super::sizes::{BLOCK_ORDER, FRAMES, type_index};
use crate::frame::{MigrateType, Order, Pfn};

impl Engine<'_> {
    /// Begins a round: blocks with a frame that stayed may be tried again, if they have waited for so many of them.
    pub(crate) fn begin_round(&mut self) {
        let (bins, blocks) = self.bins_of();
        bins.begin_round(blocks);
    }

    /// The block that is the cheapest to empty, after how many of its frames are in use: at most `most`. It has free frames,
    /// and none in use that cannot be moved, or that stayed a short while ago.
    pub(crate) fn cheapest(&mut self, most: u32) -> Option<(u32, u32)> {
        let (bins, blocks) = self.bins_of();
        bins.cheapest(blocks, most)
    }

    /// Frames that setting so many blocks apart would take from those that count as free.
    ///
    /// # Errors
    /// [`GiveError`], for the first block that is set apart already, or is beyond the frames of the engine.
    pub(crate) fn free_of(&self, first: u32, blocks: u32) -> Result<u32, GiveError> {
        let frame = |i: u64| Pfn(i * u64::from(FRAMES));
        let end = (first as usize).saturating_add(blocks as usize);
        let Some(own) = self.blocks.get(first as usize..end) else {
            let beyond = (self.blocks.len() as u64).max(first.into());
            return Err(GiveError::NoMemory(frame(beyond)));
        };
        match own.iter().position(Block::is_apart) {
            Some(i) => Err(GiveError::InUse(frame(u64::from(first) + i as u64))),
            None => Ok(own.iter().map(Block::free).sum()),
        }
    }

    /// Sets blocks apart. Returns how many of their frames are free, and count as that no more.
    ///
    /// # Errors
    /// As [`free_of`](Self::free_of); nothing has changed then.
    pub(crate) fn set_apart(&mut self, first: u32, blocks: u32) -> Result<u32, GiveError> {
        let free = self.free_of(first, blocks)?;
        for i in first..first + blocks {
            if self.blocks[i as usize].is_whole() {
                self.take_whole_run(i, Order::ZERO);
            } else {
                self.unbin(i);
            }
            self.blocks[i as usize].set_apart(true);
        }
        self.count_free(-i64::from(free));
        Ok(free)
    }

    /// Whether `frames` frames from `start` on are memory, and none of the blocks that are wholly among them holds what
    /// cannot be moved.
    ///
    /// # Errors
    /// [`GiveError::NoMemory`], for the first frame that is none; [`GiveError::InUse`], for the first frame in use of a block
    /// that holds what cannot be moved.
    pub(crate) fn can_be_emptied(&self, start: u32, frames: u32) -> Result<(), GiveError> {
        for (ix, order) in self.pieces(start, frames)? {
            let (i, at) = (ix.0 / FRAMES, ix.0 % FRAMES);
            if self.has_absent(i, at, order) {
                return Err(GiveError::NoMemory(Pfn(ix.0.into())));
            }
            if order == BLOCK_ORDER && self.blocks[i as usize].is_tainted() {
                let used = self.in_use_from(i, 0).unwrap_or(0);
                return Err(GiveError::InUse(Pfn((ix.0 + used).into())));
            }
        }
        Ok(())
    }

    /// Frames in use of the `frames` frames from `start` on.
    pub(crate) fn in_use(&self, start: u32, frames: u32) -> u32 {
        let Ok(pieces) = self.pieces(start, frames) else {
            return 0;
        };
        let of = |(ix, order): (crate::frame::FrameIx, Order)| {
            let (b, map) = (
                &self.blocks[(ix.0 / FRAMES) as usize],
                &self.maps[(ix.0 / FRAMES) as usize],
            );
            match order {
                BLOCK_ORDER => b.in_use(),
                _ if b.is_intact() => order.frames(),
                _ => order.frames() - map.count_run(ix.0 % FRAMES, order),
            }
        };
        pieces.map(of).sum()
    }

    /// The first frame in use of blocks that are set apart, from `start` up to `end`.
    pub(crate) fn next_in_use(&self, start: u32, end: u32) -> Option<u32> {
        let mut at = start;
        while at < end {
            let i = at / FRAMES;
            self.blocks.get(i as usize).filter(|b| b.is_apart())?;
            match self.in_use_from(i, at % FRAMES) {
                Some(found) => return Some(i * FRAMES + found).filter(|&n| n < end),
                None => at = (i + 1).checked_mul(FRAMES)?,
            }
        }
        None
    }

    /// The first place from `at` on of a block that is in use.
    fn in_use_from(&self, i: u32, at: u32) -> Option<u32> {
        let b = &self.blocks[i as usize];
        if b.is_intact() {
            return Some(at);
        }
        let mut found = self.maps[i as usize].next_in_use(at)?;
        // What is no memory is not free either.
        if let Some(absent) = b.partial() {
            while self.absent[absent].is_free(found) {
                found = self.maps[i as usize].next_in_use(found + 1)?;
            }
        }
        Some(found)
    }

    /// Ends the setting apart of blocks: what is free of them counts as that again. `stays`: a frame that nobody moved; if it
    /// is in use still, its block is left alone for some rounds. Returns how many of them are whole free blocks.
    pub(crate) fn end_apart(&mut self, first: u32, blocks: u32, stays: Option<u32>) -> u32 {
        let mut whole = 0;
        for i in first..first.saturating_add(blocks) {
            let Some(b) = self.blocks.get_mut(i as usize).filter(|b| b.is_apart()) else {
                continue;
            };
            b.set_apart(false);
            let (free, is_whole) = (b.free(), b.is_whole());
            let stays = stays.filter(|&n| n / FRAMES == i).map(|n| n % FRAMES);
            let stays = stays.filter(|_| b.absent() == 0);
            if let Some(at) = stays.filter(|&at| self.in_use_from(i, at) == Some(at)) {
                self.blocks[i as usize].set_waiting(at);
            }
            whole += u32::from(is_whole);
            self.count_free(free.into());
            self.settle(i);
        }
        whole
    }

    /// Takes `frames` frames from `start` on, which are free and set apart with all of their blocks, for requests of a type.
    /// What else their blocks have is not apart any more.
    ///
    /// # Errors
    /// [`GiveError`], if some of them is not free, or not set apart. Nothing has changed then.
    pub(crate) fn take_apart(
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
            if !b.is_apart() || !is_free {
                return Err(GiveError::InUse(Pfn(ix.0.into())));
            }
        }
        for (ix, order) in pieces {
            let i = ix.0 / FRAMES;
            let b = &mut self.blocks[i as usize];
            if order == BLOCK_ORDER {
                b.set_apart(false);
                self.use_whole(i, Order::ZERO, mt);
                continue;
            }
            if b.is_apart() {
                b.set_apart(false);
                if b.in_use() == 0 {
                    b.set_mt(mt);
                }
                let free = b.free();
                self.count_free(free.into());
            }
            self.maps[i as usize].clear_run(ix.0 % FRAMES, order);
            self.taken(i, order.frames(), mt);
        }
        Ok(())
    }

    /// Nothing in a block is left that cannot be moved: if it waited for that, it goes where it belongs.
    pub(super) fn unbin_if_waits(&mut self, i: u32) {
        if self.blocks[i as usize].class() == WAITS {
            self.unbin(i);
        }
    }

    /// Something was freed in a block of which a frame stayed: if it was that one, nothing of it is known to stay.
    #[cold]
    pub(super) fn forget_if_freed(&mut self, i: u32) {
        let b = &self.blocks[i as usize];
        let at = b.stays().map(|(at, _)| at);
        if at.is_some_and(|at| self.in_use_from(i, at) != Some(at)) {
            self.unbin(i);
            self.blocks[i as usize].forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::EngineLayout;
    use super::super::runs::Seek;
    use super::*;
    use crate::frame::MigrateType::{Movable, Unmovable};
    use std::vec;
    use std::vec::Vec;

    /// Eight blocks, the last one in use as a whole, the one before as single frames.
    fn with_engine(test: impl FnOnce(&mut Engine)) {
        let mut memory = vec![0; EngineLayout::of(4096).words];
        let Some(mut e) = Engine::new(4096, &mut memory) else {
            unreachable!("as many words as the layout says");
        };
        assert_eq!(e.add(0, 4096), Ok(()));
        assert_eq!(e.take_range(7 * 512, 512, Movable), Ok(()));
        assert_eq!(e.take_range(6 * 512, 512, Movable), Ok(()));
        for at in 6 * 512..6 * 512 + 256 {
            assert_eq!(e.give(&[at], Order(0), Movable), Ok(()));
        }
        test(&mut e);
        assert_eq!(e.validate(), Ok(()));
    }

    /// What is not set apart is not walked, ended or taken; nor is what is beyond the engine; and twice is an error.
    #[test]
    fn wrong_calls_change_nothing() {
        with_engine(|e| {
            let free = e.free_frames();
            for (first, blocks) in [(0, 1), (7, 1), (8, 1), (9, 4), (u32::MAX, 1)] {
                assert_eq!(e.end_apart(first, blocks, Some(first)), 0);
            }
            for (start, end) in [(0, 4096), (0, u32::MAX), (4096, 9999), (u32::MAX, 0)] {
                assert_eq!(e.next_in_use(start, end), None);
            }
            assert_eq!(e.take_apart(0, 512, Movable), Err(GiveError::InUse(Pfn(0))));
            assert_eq!(e.set_apart(7, 2), Err(GiveError::NoMemory(Pfn(4096))));
            assert!(e.set_apart(u32::MAX, 1).is_err());
            assert_eq!(e.set_apart(5, 2), Ok(768));
            assert_eq!(e.set_apart(6, 2), Err(GiveError::InUse(Pfn(6 * 512))));
            assert_eq!(e.free_frames(), free - 768);
            assert_eq!(e.validate(), Ok(()));
            for order in [0, 8, 19, 64, 255] {
                let seek = Seek {
                    most: u32::MAX,
                    in_use_only: false,
                    not_waiting: false,
                };
                assert_eq!(e.cheapest_run(0, Order(order), seek), None);
                assert_eq!(e.whole_runs(Order(order)), 0);
                assert_eq!(e.cheapest_run(u32::MAX, Order(9), seek), None);
            }
            assert_eq!(e.end_apart(5, 2, None), 1);
            assert_eq!(e.end_apart(5, 2, None), 0, "once");
            assert_eq!(e.free_frames(), free);
        });
    }

    /// Nobody gets a frame of it, by its place or otherwise, whatever is freed in it; a block in use as a whole too.
    #[test]
    fn what_is_set_apart_is_not_to_be_had() {
        with_engine(|e| {
            assert_eq!(e.set_apart(5, 3), Ok(768));
            let at = |n: u32| Pfn(n.into());
            assert_eq!(
                e.take_range(5 * 512, 1, Movable),
                Err(GiveError::InUse(at(5 * 512)))
            );
            let mut got = vec![0; 4096];
            let n = e.take(&mut got, Order(0), Unmovable, true);
            assert_eq!(n, 5 * 512, "all others");
            assert!(got[..n].iter().all(|&n| n < 5 * 512));
            assert_eq!(e.next_in_use(5 * 512, 4096), Some(6 * 512 + 256));
            assert_eq!(e.next_in_use(7 * 512 + 9, 4096), Some(7 * 512 + 9));
            assert_eq!(e.give(&[7 * 512], Order(9), Movable), Ok(()));
            assert_eq!(e.give(&[6 * 512 + 256], Order(8), Movable), Ok(()));
            assert_eq!(e.next_in_use(5 * 512, 4096), None);
            assert_eq!((e.free_frames(), e.whole_blocks()), (0, 0));
            assert_eq!(e.free_blocks().of, [[0; 19]; 3]);
            assert_eq!(e.validate(), Ok(()));
            // Some of it is taken, and the rest is to be had again.
            assert_eq!(e.take_apart(5 * 512 + 3, 600, Unmovable), Ok(()));
            assert_eq!(e.end_apart(5, 3, None), 1);
            assert_eq!(e.free_frames(), 3 * 512 - 600);
        });
    }

    /// Memory that is added to a block that is set apart would count as free.
    #[test]
    fn nothing_is_added_to_what_is_set_apart() {
        let mut memory = vec![0; EngineLayout::of(4096).words];
        let Some(mut e) = Engine::new(4096, &mut memory) else {
            unreachable!("as many words as the layout says");
        };
        assert_eq!(e.add(0, 700), Ok(()));
        assert_eq!(e.set_apart(1, 1), Ok(188));
        assert_eq!(e.add(700, 900), Err(GiveError::InUse(Pfn(700))));
        assert_eq!(e.end_apart(1, 1, None), 0);
        assert_eq!(e.add(700, 900), Ok(()));
        assert_eq!((e.free_frames(), e.validate()), (1600, Ok(())));
    }

    /// A block with a frame that stays is found again after 2 rounds, then after 4, and so on up to 62; and at once, if that
    /// frame is freed. What is allocated meanwhile goes there first.
    #[test]
    fn a_block_that_cannot_be_emptied_waits() {
        with_engine(|e| {
            let stays = 6 * 512 + 300;
            let rounds = |e: &mut Engine| {
                let waits = |e: &mut Engine| {
                    e.begin_round();
                    assert_eq!(e.validate(), Ok(()));
                    e.cheapest(512).is_none()
                };
                1 + (0..100).take_while(|_| waits(e)).count()
            };
            let in_vain = |e: &mut Engine| {
                assert_eq!(e.set_apart(6, 1), Ok(256));
                assert_eq!(e.end_apart(6, 1, Some(stays)), 0);
                assert_eq!(e.validate(), Ok(()));
                assert_eq!(e.cheapest(512), None);
            };
            assert_eq!(e.cheapest(512), Some((256, 6)));
            let waited: Vec<usize> = (0..8)
                .map(|_| {
                    in_vain(e);
                    rounds(e)
                })
                .collect();
            assert_eq!(waited, [2, 4, 8, 16, 32, 62, 62, 62]);
            in_vain(e);
            let mut one = [0];
            assert_eq!(e.take(&mut one, Order(0), Movable, false), 1);
            assert_eq!(one[0], 6 * 512, "before a whole free block");
            assert_eq!(e.take(&mut one, Order(3), Movable, false), 1);
            assert_eq!(one[0] / 512, 6);
            assert_eq!(e.give(&one, Order(3), Movable), Ok(()));
            // Full meanwhile, and in use in part again: it waits still.
            let mut rest = [0; 255];
            assert_eq!(e.take(&mut rest, Order(0), Movable, false), 255);
            assert!(rest.iter().all(|n| n / 512 == 6));
            assert_eq!(e.give(&rest[..9], Order(0), Movable), Ok(()));
            assert_eq!(e.cheapest(512), None);
            assert_eq!(e.give(&[stays], Order(0), Movable), Ok(()));
            assert_eq!(e.cheapest(512), Some((502, 6)));
            in_vain_no_more(e);
        });
    }

    /// Once emptied, nothing is known of it any more.
    fn in_vain_no_more(e: &mut Engine) {
        for at in 6 * 512..7 * 512 {
            // Some are free already.
            let _ = e.give(&[at], Order(0), Movable);
        }
        assert_eq!(e.cheapest(512), None);
        assert!(e.blocks[6].is_whole() && !e.blocks[6].is_tried());
    }

    /// Blocks that can never be emptied do not hide those that can: partly memory, or with what cannot be moved.
    #[test]
    fn what_cannot_be_emptied_hides_nothing() {
        let frames = 600 * 512;
        let mut memory = vec![0; EngineLayout::of(frames).words];
        let Some(mut e) = Engine::new(frames, &mut memory) else {
            unreachable!("as many words as the layout says");
        };
        for i in 0..600 {
            let hole = u32::from(i % 3 == 0);
            assert_eq!(e.add(i * 512 + hole, 512 - hole), Ok(()));
            let taint = if i % 3 == 1 { Unmovable } else { Movable };
            assert_eq!(e.take_range(i * 512 + 1, 9, Movable), Ok(()));
            assert_eq!(e.take_range(i * 512 + 90, 1, taint), Ok(()));
        }
        let found: Vec<u32> = (0..)
            .map_while(|_| {
                let (used, i) = e.cheapest(512)?;
                assert_eq!((used, e.set_apart(i, 1)), (10, Ok(502)));
                Some(i)
            })
            .collect();
        assert_eq!(found.len(), 200);
        assert!(found.iter().all(|i| i % 3 == 2));
        assert_eq!(e.validate(), Ok(()));
    }
}
