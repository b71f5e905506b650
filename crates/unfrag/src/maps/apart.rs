//! Blocks that are set apart to be emptied: one, a run of them, or those of a range.
//!
//! A block costs a copy for each of its frames in use. While it is set apart nobody gets a frame of it, and what is free
//! in it counts for no mark: it is not to be had. What is freed there stays there. So when its last frame has gone it is
//! whole, or its frames are taken for who asked for them.
//!
//! Invariant: a block that is set apart is in no bin and no whole free one, and none of its frames counts as free.

use super::block::WAITS;
use super::engine::Engine;
use super::error::GiveError;
use super::sizes::{BLOCK_ORDER, FRAMES, type_index};
use super::tables::Entries;
use crate::frame::{MigrateType, Order, Pfn};

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Begins a round: blocks with a frame that stayed may be tried again, if they have waited for so many of them.
    pub(crate) fn begin_round(&mut self) {
        self.bins.begin_round(&mut self.of);
    }

    /// The block that is the cheapest to empty, after how many of its frames are in use: at most `most`. It has free frames,
    /// and none in use that cannot be moved, or that stayed a short while ago.
    pub(crate) fn cheapest(&mut self, most: u32) -> Option<(u32, u32)> {
        self.bins.cheapest(&mut self.of, most)
    }

    /// Frames that setting so many blocks apart would take from those that count as free.
    ///
    /// # Errors
    /// [`GiveError`], for the first block that is set apart already, or is beyond the frames of the engine.
    pub(crate) fn free_of(&self, first: u32, blocks: u32) -> Result<u32, GiveError> {
        if first.checked_add(blocks).is_none() {
            return Err(GiveError::NoMemory(self.frame(0)));
        }
        let mut free = 0;
        for i in first..first.saturating_add(blocks) {
            let at = || Pfn(self.start().0 + u64::from(i) * u64::from(FRAMES));
            let b = self.of.find(i).ok_or_else(|| GiveError::NoMemory(at()))?;
            if b.is_apart() {
                return Err(GiveError::InUse(at()));
            }
            free += b.free();
        }
        Ok(free)
    }

    /// Sets blocks apart. Returns how many of their frames are free, and count as that no more.
    ///
    /// # Errors
    /// As [`free_of`](Self::free_of); nothing has changed then.
    pub(crate) fn set_apart(&mut self, first: u32, blocks: u32) -> Result<u32, GiveError> {
        let free = self.free_of(first, blocks)?;
        for i in first..first.saturating_add(blocks) {
            if self.of.block(i).is_whole() {
                self.take_whole_run(i, Order::ZERO);
            } else {
                self.unbin(i);
            }
            self.of.block_mut(i).set_apart(true);
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
        for (ix, order) in self.pieces(self.frame(start), frames.into())? {
            let (i, at) = (ix.0 / FRAMES, ix.0 % FRAMES);
            if self.has_absent(i, at, order) {
                return Err(GiveError::NoMemory(self.frame(ix.0)));
            }
            if order == BLOCK_ORDER && self.of.block(i).is_tainted() {
                let used = self.in_use_from(i, 0).unwrap_or(0);
                return Err(GiveError::InUse(self.frame(ix.0 + used)));
            }
        }
        Ok(())
    }

    /// Frames in use of the `frames` frames from `start` on.
    pub(crate) fn in_use(&self, start: u32, frames: u32) -> u32 {
        let Ok(pieces) = self.pieces(self.frame(start), frames.into()) else {
            return 0;
        };
        let of = |(ix, order): (crate::frame::FrameIx, Order)| {
            let i = ix.0 / FRAMES;
            let Some(b) = self.of.find(i) else {
                return 0;
            };
            let map = self.of.map(i);
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
            self.of.find(i).filter(|b| b.is_apart())?;
            match self.in_use_from(i, at % FRAMES) {
                Some(found) => return Some(i * FRAMES + found).filter(|&n| n < end),
                None => at = (i + 1).checked_mul(FRAMES)?,
            }
        }
        None
    }

    /// The first place from `at` on of a block that is in use.
    fn in_use_from(&self, i: u32, at: u32) -> Option<u32> {
        let b = self.of.block(i);
        if b.is_intact() {
            return Some(at);
        }
        let mut found = self.of.map(i).next_in_use(at)?;
        // What is no memory is not free either.
        if let Some(absent) = b.partial() {
            while self.of.of(i / FRAMES).absent[absent].is_free(found) {
                found = self.of.map(i).next_in_use(found + 1)?;
            }
        }
        Some(found)
    }

    /// Ends the setting apart of blocks: what is free of them counts as that again. `stays`: a frame that nobody moved; if it
    /// is in use still, its block is left alone for some rounds. Returns how many of them are whole free blocks.
    pub(crate) fn end_apart(&mut self, first: u32, blocks: u32, stays: Option<u32>) -> u32 {
        let mut whole = 0;
        for i in first..first.saturating_add(blocks) {
            let found = self.of.block_and_map(i);
            let Some((b, _)) = found.filter(|(b, _)| b.is_apart()) else {
                continue;
            };
            b.set_apart(false);
            let (free, is_whole) = (b.free(), b.is_whole());
            let stays = stays.filter(|&n| n / FRAMES == i).map(|n| n % FRAMES);
            let stays = stays.filter(|_| b.absent() == 0);
            if let Some(at) = stays.filter(|&at| self.in_use_from(i, at) == Some(at)) {
                self.of.block_mut(i).set_waiting(at);
            }
            whole += u32::from(is_whole);
            self.count_free(free.into());
            self.settle(i);
            self.runs_came(i);
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
        let pieces = self.pieces(self.frame(start), frames.into())?;
        for (ix, order) in pieces.clone() {
            let i = ix.0 / FRAMES;
            let Some(b) = self.of.find(i) else {
                return Err(GiveError::NoMemory(self.frame(ix.0)));
            };
            let is_free = !b.is_intact() && self.of.map(i).is_free_run(ix.0 % FRAMES, order);
            if !b.is_apart() || !is_free {
                return Err(GiveError::InUse(self.frame(ix.0)));
            }
        }
        for (ix, order) in pieces {
            let i = ix.0 / FRAMES;
            let b = self.of.block_mut(i);
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
            self.of.map_mut(i).clear_run(ix.0 % FRAMES, order);
            self.taken(i, order.frames(), mt);
            self.runs_came(i);
        }
        Ok(())
    }

    /// Nothing in a block is left that cannot be moved: if it waited for that, it goes where it belongs.
    pub(super) fn unbin_if_waits(&mut self, i: u32) {
        if self.of.block(i).class() == WAITS {
            self.unbin(i);
        }
    }

    /// Something was freed in a block of which a frame stayed: if it was that one, nothing of it is known to stay.
    #[cold]
    pub(super) fn forget_if_freed(&mut self, i: u32) {
        let b = self.of.block(i);
        let at = b.stays().map(|(at, _)| at);
        if at.is_some_and(|at| self.in_use_from(i, at) != Some(at)) {
            self.forget_stays(i);
        }
    }

    /// No frame of a block is known to stay any more: it is in no bin, if one was.
    pub(super) fn forget_stays(&mut self, i: u32) {
        if self.of.block(i).is_tried() {
            self.unbin(i);
            self.of.block_mut(i).forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::EngineLayout;
    use super::super::runs::Seek;
    use super::super::tables::Gigabyte;
    use super::*;
    use crate::frame::MigrateType::{Movable, Unmovable};
    use std::vec;
    use std::vec::Vec;

    type One<'m> = Engine<'m, [Gigabyte<'m>; 1]>;

    /// Eight blocks, the last one in use as a whole, the one before as single frames.
    fn with_engine(test: impl FnOnce(&mut One)) {
        let mut memory = vec![0; EngineLayout::GIGABYTE];
        let Some(mut e) = Engine::new(Pfn(0), [Gigabyte::NONE]) else {
            unreachable!("a gigabyte begins at 0");
        };
        assert_eq!(e.add(Pfn(0), 4096, &mut &mut memory[..]), Ok(()));
        assert_eq!(e.take_range(Pfn(7 * 512), 512, Movable), Ok(()));
        assert_eq!(e.take_range(Pfn(6 * 512), 512, Movable), Ok(()));
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
            for (first, blocks) in [(0, 1), (7, 1), (8, 1), (9, 4), (512, 1), (u32::MAX, 1)] {
                assert_eq!(e.end_apart(first, blocks, Some(first)), 0);
            }
            for (start, end) in [(0, 4096), (0, u32::MAX), (4096, 9999), (u32::MAX, 0)] {
                assert_eq!(e.next_in_use(start, end), None);
            }
            assert_eq!(e.take_apart(0, 512, Movable), Err(GiveError::InUse(Pfn(0))));
            assert_eq!(e.set_apart(511, 2), Err(GiveError::NoMemory(Pfn(1 << 18))));
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
            assert_eq!(
                e.take_range(Pfn(5 * 512), 1, Movable),
                Err(GiveError::InUse(Pfn(5 * 512)))
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
        let mut memory = vec![0; EngineLayout::GIGABYTE];
        let Some(mut e) = One::new(Pfn(0), [Gigabyte::NONE]) else {
            unreachable!("a gigabyte begins at 0");
        };
        let mut words = &mut memory[..];
        assert_eq!(e.add(Pfn(0), 700, &mut words), Ok(()));
        assert_eq!(e.set_apart(1, 1), Ok(188));
        let in_use = Err(GiveError::InUse(Pfn(700)));
        assert_eq!(e.add(Pfn(700), 900, &mut words), in_use);
        assert_eq!(e.end_apart(1, 1, None), 0);
        assert_eq!(e.add(Pfn(700), 900, &mut words), Ok(()));
        assert_eq!((e.free_frames(), e.validate()), (1600, Ok(())));
    }

    /// Memory that goes takes what is known of it along: of one frame of a block that waits, or of all of it.
    #[test]
    fn what_is_removed_does_not_stay() {
        for (start, frames) in [(6 * 512 + 300, 1), (6 * 512 + 511, 1), (6 * 512 + 256, 256)] {
            with_engine(|e| {
                let stays = 6 * 512 + 300;
                assert_eq!(e.set_apart(6, 1), Ok(256));
                assert_eq!(e.end_apart(6, 1, Some(stays)), 0);
                assert_eq!(e.remove(Pfn(start), frames), Ok(()));
                assert_eq!(e.validate(), Ok(()));
                assert_eq!(e.add(Pfn(start), frames, &mut &mut [][..]), Ok(()));
                assert_eq!(e.validate(), Ok(()));
            });
        }
        with_engine(|e| {
            assert_eq!(e.set_apart(7, 1), Ok(0));
            assert_eq!(e.end_apart(7, 1, Some(7 * 512 + 9)), 0);
            assert!(e.of.block(7).is_tried());
            assert_eq!(e.remove(Pfn(7 * 512), 512), Ok(()));
            assert_eq!(e.add(Pfn(7 * 512), 512, &mut &mut [][..]), Ok(()));
            assert!(e.of.block(7).is_whole() && !e.of.block(7).is_tried());
        });
    }

    /// A block with a frame that stays is found again after 2 rounds, then after 4, and so on up to 62; and at once, if that
    /// frame is freed. What is allocated meanwhile goes there first.
    #[test]
    fn a_block_that_cannot_be_emptied_waits() {
        with_engine(|e| {
            let stays = 6 * 512 + 300;
            let rounds = |e: &mut One| {
                let waits = |e: &mut One| {
                    e.begin_round();
                    // Miri takes too long to look at every block each time.
                    if !cfg!(miri) {
                        assert_eq!(e.validate(), Ok(()));
                    }
                    e.cheapest(512).is_none()
                };
                1 + (0..100).take_while(|_| waits(e)).count()
            };
            let in_vain = |e: &mut One| {
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
            assert_eq!(e.give(&[stays.into()], Order(0), Movable), Ok(()));
            assert_eq!(e.cheapest(512), Some((502, 6)));
            in_vain_no_more(e);
        });
    }

    /// Once emptied, nothing is known of it any more.
    fn in_vain_no_more(e: &mut One) {
        for at in 6 * 512..7 * 512 {
            // Some are free already.
            let _ = e.give(&[at], Order(0), Movable);
        }
        assert_eq!(e.cheapest(512), None);
        assert!(e.of.block(6).is_whole() && !e.of.block(6).is_tried());
    }

    /// Blocks that can never be emptied do not hide those that can: partly memory, or with what cannot be moved.
    #[test]
    fn what_cannot_be_emptied_hides_nothing() {
        let mut memory = vec![0; EngineLayout::GIGABYTE];
        let mut words = &mut memory[..];
        let Some(mut e) = Engine::new(Pfn(0), [Gigabyte::NONE]) else {
            unreachable!("a gigabyte begins at 0");
        };
        for i in 0..180 {
            let (start, hole) = (i * 512, u64::from(i % 3 == 0));
            let added = e.add(Pfn(start + hole), 512 - hole, &mut words);
            assert_eq!(added, Ok(()));
            let taint = if i % 3 == 1 { Unmovable } else { Movable };
            assert_eq!(e.take_range(Pfn(start + 1), 9, Movable), Ok(()));
            assert_eq!(e.take_range(Pfn(start + 90), 1, taint), Ok(()));
        }
        let found: Vec<u32> = (0..)
            .map_while(|_| {
                let (used, i) = e.cheapest(512)?;
                assert_eq!((used, e.set_apart(i, 1)), (10, Ok(502)));
                Some(i)
            })
            .collect();
        assert_eq!(found.len(), 60);
        assert!(found.iter().all(|i| i % 3 == 2));
        assert_eq!(e.validate(), Ok(()));
    }
}
