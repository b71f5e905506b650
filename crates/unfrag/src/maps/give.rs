//! Giving blocks back.
//!
//! Most single frames of a batch do no more than count: their block stays in its bin. So the batch has loops of their own
//! for these, one for frames by chance and one for frames in a row, and all else goes one by one.
//!
//! Invariant: what is refused has changed nothing.

use super::block::Block;
use super::engine::Engine;
use super::error::GiveError;
use super::map::Map;
use super::sizes::{BLOCK_ORDER, FRAMES, LARGEST_ORDER, MOVABLE, TYPES, type_index};
use super::tables::Entries;
use crate::frame::{FrameIx, MigrateType, Order, Pfn};

/// Blocks of a batch whose lines are fetched ahead of use: as many misses as a CPU has under way at a time.
const AHEAD: usize = 32;

/// Frames so near to each other are mostly of the same word of a map.
const CLOSE: u64 = 16;

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Gives blocks of `2^order` frames back that requests of a type had. They may be parts of blocks that were taken. A
    /// block that is not in use as a whole is refused; all others are free then.
    ///
    /// # Errors
    /// [`GiveError`], for the first block that was refused.
    #[inline]
    pub fn give(&mut self, blocks: &[u64], order: Order, mt: MigrateType) -> Result<(), GiveError> {
        self.give_beside(blocks, &[], order, mt).0
    }

    /// The same for blocks that somebody kept beside some others, which he gives back next. Also returns whether one of those
    /// is free, for single frames and whole blocks: then it was given back twice.
    #[inline]
    pub(crate) fn give_beside(
        &mut self,
        blocks: &[u64],
        kept: &[u64],
        order: Order,
        mt: MigrateType,
    ) -> (Result<(), GiveError>, bool) {
        let mt = type_index(mt);
        if order == Order::ZERO {
            let result = self.give_singles(blocks, kept.len(), mt);
            return (result, self.has_free(kept));
        }
        if order == BLOCK_ORDER {
            let result = self.give_wholes(blocks, mt);
            return (result, self.has_whole(kept));
        }
        let mut result = Ok(());
        for &frame in blocks {
            result = result.and(self.give_block(frame, order, mt));
        }
        (result, false)
    }

    /// Whether one of some frames is free.
    fn has_free(&self, frames: &[u64]) -> bool {
        // Without an end before the last one, since hardly ever one is.
        let has_bit = |is, &frame: &u64| is | self.of.has_bit(self.offset(frame));
        frames.iter().fold(false, has_bit) && frames.iter().any(|&frame| self.is_free(frame))
    }

    /// Whether one of some blocks is free as a whole.
    fn has_whole(&self, frames: &[u64]) -> bool {
        let is_whole = |is, &frame: &u64| is | self.of.is_whole(self.offset(frame));
        frames.iter().fold(false, is_whole)
    }

    /// Whether a frame is free, and its block is not in use as a whole.
    #[cold]
    fn is_free(&self, frame: u64) -> bool {
        let Some(n) = self.number(frame) else {
            return false;
        };
        let block = self.of.find(n / FRAMES);
        block.is_some_and(|b| !b.is_intact()) && self.of.map(n / FRAMES).is_free(n % FRAMES)
    }

    /// Gives back `frames` frames from `start` on, which are parts of what was taken.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, or if some are beyond the span: nothing has changed then; or for the first aligned
    /// part that is not in use as a whole: all others are free then.
    pub fn give_range(
        &mut self,
        start: Pfn,
        frames: u64,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let (first, end) = self.range(start, frames)?;
        let mut result = Ok(());
        for (ix, order) in FrameIx(first).blocks_until(FrameIx(end), LARGEST_ORDER) {
            result = result.and(self.give(&[self.frame(ix.0).0], order, mt));
        }
        result
    }

    /// Gives whole blocks back. The map of one that was never broken up is not touched.
    fn give_wholes(&mut self, frames: &[u64], mt: usize) -> Result<(), GiveError> {
        let mut result = Ok(());
        let mut given = 0;
        let untaints = i32::from(mt != MOVABLE);
        for &frame in frames {
            let n = self.offset(frame);
            let own = self.of.intact_of(n, mt);
            let Some((b, whole)) = own.filter(|_| n.is_multiple_of(FRAMES.into())) else {
                result = result.and(self.give_block(frame, BLOCK_ORDER, mt));
                continue;
            };
            b.give_whole(mt);
            given += 1;
            let i = (n / u64::from(FRAMES)) as u32;
            whole.whole.set(i % FRAMES);
            if untaints > 0 || !whole.count_one() {
                self.gigabytes().count(i / FRAMES, 1, -untaints);
            }
        }
        self.count_whole(given);
        self.count_free(i64::from(given) * i64::from(FRAMES));
        result
    }

    /// Gives single frames back. Most only count. The lines of the first ones, so many, are there: as many as stay beside them
    /// this time stayed beside others the last time, and were [looked at](Self::has_free) then.
    fn give_singles(&mut self, frames: &[u64], fetched: usize, mt: usize) -> Result<(), GiveError> {
        let is_row = is_row(frames);
        if !is_row {
            for &frame in frames.iter().take(AHEAD).skip(fetched) {
                self.of.fetch(self.offset(frame));
            }
        }
        let mut result = Ok(());
        let mut done = 0;
        loop {
            if (0..TYPES).all(|mt| self.awaited(mt) == 0) {
                done += self.give_on_credit(frames.get(done..).unwrap_or(&[]), is_row, mt);
            }
            let Some(&frame) = frames.get(done) else {
                return result;
            };
            if let Some(&later) = frames.get(done + AHEAD) {
                self.of.fetch(self.offset(later));
            }
            result = result.and(self.give_single(frame, mt));
            done += 1;
        }
    }

    /// Gives single frames back as long as each can be on credit, while no run is waited for. Returns how many.
    fn give_on_credit(&mut self, frames: &[u64], is_row: bool, mt: usize) -> usize {
        let start = self.start().0;
        let done = if is_row {
            self.of.give_row_on_credit(start, frames, mt)
        } else {
            let later = frames.get(AHEAD..).unwrap_or(&[]);
            match self.of.give_on_credit_and_fetch(start, frames, later, mt) {
                done if done < later.len() => done,
                done => done + self.of.give_on_credit(start, &frames[done..], mt),
            }
        };
        // A credit is of a block of its type.
        if mt != MOVABLE {
            self.bins.count_kept(done as i64);
        }
        self.count_free(done as i64);
        done
    }

    /// Gives a single frame back.
    fn give_single(&mut self, frame: u64, mt: usize) -> Result<(), GiveError> {
        let n = self.offset(frame);
        let Some(is_kept) = self.of.count(n, mt) else {
            self.give_block(frame, Order::ZERO, mt)?;
            self.of.grant(n, mt);
            return Ok(());
        };
        self.bins.count_kept(is_kept.into());
        self.count_free(1);
        let (i, place) = (n / u64::from(FRAMES), n % u64::from(FRAMES));
        self.tell_of_run(i as u32, place as u32, Order::ZERO);
        Ok(())
    }

    /// `2^order` frames from a place of a block on have come free: if a run is waited for that they may be of, that is told.
    #[inline]
    fn tell_of_run(&mut self, i: u32, place: u32, order: Order) {
        let awaited = self.awaited(self.of.block(i).mt());
        if is_awaited(awaited, self.of.map(i), place) {
            self.run_came(i, place, order);
        }
    }

    #[inline(never)]
    fn give_block(&mut self, frame: u64, order: Order, mt: usize) -> Result<(), GiveError> {
        let at = Pfn(frame);
        // A span begins at a multiple of the largest block.
        if order > LARGEST_ORDER || frame & (u64::from(order.frames()) - 1) != 0 {
            return Err(GiveError::NotABlock(at));
        }
        let n = self.number(frame).ok_or(GiveError::NoMemory(at))?;
        let i = n / FRAMES;
        if order < BLOCK_ORDER {
            if self.has_absent(i, n % FRAMES, order) {
                return Err(GiveError::NoMemory(at));
            }
            let Some((b, map)) = self.of.block_and_map(i) else {
                return Err(GiveError::NoMemory(at));
            };
            if b.is_intact() {
                break_up(map, b);
            }
            if !map.set_run(n % FRAMES, order) {
                return Err(GiveError::NotTaken(at));
            }
            self.tell_of_run(i, n % FRAMES, order);
            self.given(i, order.frames(), mt);
            return Ok(());
        }
        let last = i + Order(order.0 - BLOCK_ORDER.0).frames();
        let is = |is: fn(&Block) -> bool| (i..last).any(|i| self.of.find(i).is_none_or(|b| is(&b)));
        if is(|b| b.absent() > 0) {
            return Err(GiveError::NoMemory(at));
        }
        if is(|b| b.in_use() < FRAMES) {
            return Err(GiveError::NotTaken(at));
        }
        for i in i..last {
            if let Some((b, map)) = self.of.block_and_map(i) {
                if !b.is_intact() {
                    *map = Map::FULL;
                }
                b.set_intact(false);
                self.given(i, FRAMES, mt);
            }
        }
        Ok(())
    }

    /// Counts frames of a block whose bits have been set. All of them were in use.
    #[inline]
    fn given(&mut self, i: u32, frames: u32, mt: usize) {
        let b = self.of.block_mut(i);
        let was_tainted = b.is_tainted();
        b.give_back(mt, frames);
        self.bins.count(b, frames.into());
        let (free, own) = (b.free(), b.used(b.mt()));
        let (is_tried, to_be_had) = (b.is_tried(), if b.is_apart() { 0 } else { frames });
        if was_tainted && !b.is_tainted() {
            self.gigabytes().taint(i, false);
            self.unbin_if_waits(i);
        }
        if is_tried {
            self.forget_if_freed(i);
        }
        self.settle(i);
        self.count_free(to_be_had.into());
        if own == 0 && free < FRAMES {
            self.retype_by_content(i);
        }
    }
}

/// Whether frames seem to come in a row, as those do that were taken one after the other: at both ends and in the middle
/// neighbours are close.
#[inline]
fn is_row(frames: &[u64]) -> bool {
    let Some(last) = frames.len().checked_sub(2) else {
        return false;
    };
    let are_close = |at: usize| frames[at].abs_diff(frames[at + 1]) < CLOSE;
    [0, last / 2, last].into_iter().all(are_close)
}

/// Whether a run of the lowest of some orders is free around a frame.
#[inline]
fn is_awaited(orders: u16, map: &Map, at: u32) -> bool {
    orders != 0 && {
        let order = Order(orders.trailing_zeros() as u8);
        map.is_free_run(at & !(order.frames() - 1), order)
    }
}

/// A block that is in use as a whole is about to be given back in parts.
#[cold]
fn break_up(map: &mut Map, block: &mut Block) {
    *map = Map::EMPTY;
    block.set_intact(false);
}
