//! Adding and removing memory, and which frames of a block are no memory, where only a part of it is.
//!
//! Nearly all blocks are memory as a whole, or not at all, and need no map of it; the others, at the ends of regions, share
//! the few maps of their gigabyte.
//!
//! Invariant: a block that is partly memory has a map of its own here, in which its absent frames are set; a map without a
//! set bit is nobody's.

use super::engine::{Engine, GIGABYTE};
use super::error::GiveError;
use super::map::Map;
use super::sizes::{ABSENT, BLOCK_ORDER, FRAMES};
use super::tables::{Entries, fits};
use crate::frame::{FrameIx, Order, Pfn};

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Adds memory, all of it free: the `frames` frames from `start` on, which were not added before. The tables of
    /// gigabytes that have none are made in words off the front of `supply`.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, if some of it is beyond the span, has been added, or is in a block that is being
    /// emptied, if `supply` has too few words for the gigabytes without tables, or if a block would be
    /// partly memory where 64 of its gigabyte are already. Nothing has changed then.
    pub fn add(
        &mut self,
        start: Pfn,
        frames: u64,
        supply: &mut &'m mut [u64],
    ) -> Result<(), GiveError> {
        let missing = self.can_add(start, frames)?;
        if !fits(supply, missing) {
            return Err(GiveError::NoTables(start));
        }
        let (first, end) = self.range(start, frames)?;
        for (g, first, end) in by_gigabyte(first, end) {
            // That none of it is memory is seen by it having no tables: no block of it need be looked at.
            if end - first == GIGABYTE && self.of.make_free(g, supply) {
                self.gigabytes().add_all(g);
                self.count_whole(FRAMES);
                self.count_added(GIGABYTE);
                continue;
            }
            self.of.make(g, supply);
            self.add_blocks(first, end);
        }
        Ok(())
    }

    /// Adds the frames from number `first` up to `end`, none of which is memory, of a gigabyte with tables.
    fn add_blocks(&mut self, first: u32, end: u32) {
        for (ix, order) in FrameIx(first).blocks_until(FrameIx(end), BLOCK_ORDER) {
            let (i, at) = (ix.0 / FRAMES, ix.0 % FRAMES);
            self.set_absent(i, at, order, false);
            self.of.map_mut(i).set_run(at, order);
            let b = self.of.block_mut(i);
            b.add(order.frames());
            self.bins.count(b, order.frames().into());
            if self.of.block(i).absent() == 0 {
                // It waited for that.
                self.unbin_if_waits(i);
            }
            self.settle(i);
            self.runs_came(i);
            self.count_added(order.frames());
        }
    }

    /// Whether [`add`](Self::add) would add these frames: how many gigabytes it would make tables for.
    ///
    /// # Errors
    /// As there, but for the words.
    pub fn can_add(&self, start: Pfn, frames: u64) -> Result<usize, GiveError> {
        let (first, end) = self.range(start, frames)?;
        let is_absent = |i, at, order| self.is_absent(i, at, order);
        self.can_change(first, end, is_absent, GiveError::Present)?;
        // What would be added to a block that is being emptied would count as free.
        let is_plain = |i, _, _| self.of.find(i).is_none_or(|b| !b.is_apart());
        self.can_change(first, end, is_plain, GiveError::InUse)?;
        let all = first / GIGABYTE..=(end - 1) / GIGABYTE;
        Ok(all.filter(|&g| self.of.get(g).is_none()).count())
    }

    /// Removes memory, all of which is in use: the caller has taken it, so that nobody else uses it. None of its frames can
    /// be given back any more.
    ///
    /// # Errors
    /// [`GiveError`], if there are no frames, if some of them are no memory, or not in use, or if a block would be partly
    /// memory where 64 of its gigabyte are already. Nothing has changed then.
    pub fn remove(&mut self, start: Pfn, frames: u64) -> Result<(), GiveError> {
        self.can_give(start, frames)?;
        let (first, end) = self.range(start, frames)?;
        self.can_change(first, end, |_, _, _| true, GiveError::Present)?;
        for (ix, order) in FrameIx(first).blocks_until(FrameIx(end), BLOCK_ORDER) {
            let (i, at) = (ix.0 / FRAMES, ix.0 % FRAMES);
            self.forget_stays(i);
            if let Some((b, map)) = self.of.block_and_map(i)
                && b.is_intact()
            {
                *map = Map::EMPTY;
                b.set_intact(false);
            }
            if self.of.block(i).is_tried() {
                // A frame is known to stay only where all of a block is memory.
                self.unbin(i);
                self.of.block_mut(i).forget();
            }
            self.set_absent(i, at, order, true);
            let b = self.of.block_mut(i);
            let was_tainted = b.is_tainted();
            b.remove(order.frames());
            if was_tainted && !b.is_tainted() {
                self.gigabytes().taint(i, false);
            }
            self.count_removed(order.frames());
            self.settle(i);
            let b = self.of.block(i);
            if b.in_use() > 0 && b.used(b.mt()) == 0 {
                self.retype_by_content(i);
            }
            self.settle(i);
        }
        Ok(())
    }

    /// The words of the tables of the gigabyte that a frame is in, of which nothing is memory any more. `None`, if some is, or
    /// if it has no tables.
    pub fn take_tables(&mut self, frame: Pfn) -> Option<&'m mut [u64]> {
        let n = self.number(frame.0)?;
        self.of.unmake(n / GIGABYTE)
    }

    /// Whether a range may change to memory, or from it: each piece may, and there are maps for the blocks that would be
    /// partly memory.
    fn can_change(
        &self,
        first: u32,
        end: u32,
        may: impl Fn(u32, u32, Order) -> bool,
        why: fn(Pfn) -> GiveError,
    ) -> Result<(), GiveError> {
        for (g, first, end) in by_gigabyte(first, end) {
            // What has no tables is no memory, all of it.
            if self.of.get(g).is_none() && may(g * FRAMES, 0, BLOCK_ORDER) {
                continue;
            }
            for (ix, order) in FrameIx(first).blocks_until(FrameIx(end), BLOCK_ORDER) {
                if !may(ix.0 / FRAMES, ix.0 % FRAMES, order) {
                    return Err(why(self.frame(ix.0)));
                }
            }
        }
        // Only the first and the last block of a range may need a map.
        let is_part = |i: u32| first > i * FRAMES || end < (i + 1) * FRAMES;
        let has_none = |i: u32| self.of.find(i).is_none_or(|b| b.partial().is_none());
        let ends = [first / FRAMES, (end - 1) / FRAMES];
        let distinct = if ends[0] == ends[1] {
            &ends[..1]
        } else {
            &ends
        };
        for &i in distinct {
            let g = i / FRAMES;
            let of_it = distinct.iter().filter(|&&i| i / FRAMES == g);
            let new_maps = of_it.filter(|&&i| is_part(i) && has_none(i)).count();
            let room = self.of.get(g).map_or(ABSENT, |tables| {
                tables.absent.iter().filter(|m| **m == Map::EMPTY).count()
            });
            if new_maps > room {
                return Err(GiveError::TooManyHoles(self.frame(first)));
            }
        }
        Ok(())
    }

    /// The aligned pieces of a range of the span, a block at most.
    pub(super) fn pieces(
        &self,
        start: Pfn,
        frames: u64,
    ) -> Result<impl Iterator<Item = (FrameIx, Order)> + Clone + use<'m, D>, GiveError> {
        let (first, end) = self.range(start, frames)?;
        Ok(FrameIx(first).blocks_until(FrameIx(end), BLOCK_ORDER))
    }

    /// The numbers of the first frame of a range of the span, and of the one behind its last.
    pub(super) fn range(&self, start: Pfn, frames: u64) -> Result<(u32, u32), GiveError> {
        let first = self.number(start.0).ok_or(GiveError::NoMemory(start))?;
        if frames == 0 {
            return Err(GiveError::NoFrames(start));
        }
        let last = start.0.checked_add(frames - 1);
        let last = last.and_then(|last| self.number(last));
        let behind = Pfn(self.start().0 + self.span());
        Ok((first, last.ok_or(GiveError::NoMemory(behind))? + 1))
    }

    /// Whether none of an aligned run of a block is memory.
    fn is_absent(&self, i: u32, at: u32, order: Order) -> bool {
        self.absence(i, |b, map| match map {
            Some(map) => map.is_free_run(at, order),
            None => b == FRAMES,
        })
    }

    /// Whether some of an aligned run of a block is no memory.
    pub(super) fn has_absent(&self, i: u32, at: u32, order: Order) -> bool {
        self.absence(i, |b, map| match map {
            Some(map) => !map.is_clear_run(at, order),
            None => b > 0,
        })
    }

    /// Calls `f` with how many frames of a block are no memory, and with the map of them, if only some are.
    fn absence(&self, i: u32, f: impl Fn(u32, Option<&Map>) -> bool) -> bool {
        let (Some(b), Some(tables)) = (self.of.find(i), self.of.get(i / FRAMES)) else {
            return f(FRAMES, None);
        };
        f(
            b.absent(),
            b.partial().and_then(|map| tables.absent.get(map)),
        )
    }

    /// An aligned run of a block is about to be memory, or no memory any more. It was seen that there is a map.
    fn set_absent(&mut self, i: u32, at: u32, order: Order, is_absent: bool) {
        if order == BLOCK_ORDER {
            return;
        }
        let slot = self.of.block(i).partial();
        let was_memory = self.of.block(i).absent() == 0;
        let tables = self.of.of_mut(i / FRAMES);
        let slot = slot.or_else(|| {
            let free = tables.absent.iter().position(|map| *map == Map::EMPTY)?;
            tables.absent[free] = if was_memory { Map::EMPTY } else { Map::FULL };
            Some(free)
        });
        let Some(slot) = slot else {
            unreachable!("it was seen that there is a map");
        };
        let map = &mut tables.absent[slot];
        if is_absent {
            map.set_run(at, order);
        } else {
            map.clear_run(at, order);
        }
        let is_left = *map != Map::EMPTY && *map != Map::FULL;
        if !is_left {
            *map = Map::EMPTY;
        }
        self.of.block_mut(i).set_partial(is_left.then_some(slot));
    }
}

/// The gigabytes of a range of frames, by their numbers in the span, and the part of the range that is in each.
fn by_gigabyte(first: u32, end: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let all = first / GIGABYTE..=(end - 1) / GIGABYTE;
    all.map(move |g| {
        let start = g * GIGABYTE;
        (g, first.max(start), end.min(start + GIGABYTE))
    })
}

#[cfg(test)]
mod tests {
    use super::super::engine::EngineLayout;
    use super::super::tables::Gigabyte;
    use super::super::validate::Broken;
    use super::*;
    use crate::frame::MigrateType::Movable;
    use std::vec;

    type One<'m> = Engine<'m, [Gigabyte<'m>; 1]>;

    /// Each state that absence makes wrong is seen, by the block or as a total.
    #[test]
    fn a_wrong_absence_is_found() {
        type Break = fn(&mut One);
        let at = Pfn(0);
        let breaks: [(Break, Broken); 6] = [
            // A frame that is no memory is free.
            (|e| _ = e.of.map_mut(0).set(5), Broken::Absent(at)),
            // One more is no memory than the counts say, or one less.
            (
                |e| _ = e.of.of_mut(0).absent[0].set(100),
                Broken::Absent(at),
            ),
            (
                |e| e.of.of_mut(0).absent[0].clear_run(5, Order(0)),
                Broken::Absent(at),
            ),
            // A block that is partly memory has no map, or one that is not there; or a whole one has a map.
            (|e| e.of.block_mut(0).set_partial(None), Broken::Absent(at)),
            (
                |e| e.of.block_mut(0).set_partial(Some(77)),
                Broken::Absent(at),
            ),
            // A map is nobody's.
            (|e| _ = e.of.of_mut(0).absent[1].set(9), Broken::Total),
        ];
        for (wrong, why) in breaks {
            let mut memory = vec![0; EngineLayout::GIGABYTE];
            let Some(mut e) = Engine::new(at, [Gigabyte::NONE]) else {
                unreachable!("a gigabyte begins at 0");
            };
            assert_eq!(e.add(Pfn(10), 2000, &mut &mut memory[..]), Ok(()));
            // One map of a block at each end; the second one is filled up again.
            assert_eq!(e.add(Pfn(2010), 38, &mut &mut [][..]), Ok(()));
            assert_eq!(e.take(&mut [0; 7], Order(0), Movable, true), 7);
            assert_eq!(e.validate(), Ok(()));
            wrong(&mut e);
            assert_eq!(e.validate(), Err(why));
        }
    }
}
