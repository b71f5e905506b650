//! Taking frames by their place, for a device, a firmware, or a caller that asks for an address; and any number of them.

use super::block::Block;
use super::engine::Engine;
use super::error::GiveError;
use super::sizes::{BLOCK_ORDER, FRAMES, LARGEST_ORDER, type_index};
use super::tables::Entries;
use crate::frame::{MigrateType, Order, Pfn};

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Takes `frames` frames in one piece, the first one a multiple of `2^align`, out of the smallest free block that has
    /// them; what is left of that block is free again. `mixes` as for [`take`](Engine::take). `None`, if there is no such
    /// block.
    pub fn take_run(
        &mut self,
        frames: u32,
        align: Order,
        mt: MigrateType,
        mixes: bool,
    ) -> Option<Pfn> {
        let order = Order(frames.checked_next_power_of_two()?.ilog2() as u8).max(align);
        let mut one = [0];
        if frames == 0 || order > LARGEST_ORDER || self.take(&mut one, order, mt, mixes) == 0 {
            return None;
        }
        let first = Pfn(one[0]);
        let rest = order.frames() - frames;
        if rest > 0 {
            let tail = self.give_range(Pfn(first.0 + u64::from(frames)), rest.into(), mt);
            debug_assert!(tail.is_ok(), "what has just been taken");
        }
        Some(first)
    }

    /// Whether all of the `frames` frames from `start` on are in use, so that [`give_range`](Engine::give_range) refuses none.
    ///
    /// # Errors
    /// [`GiveError`], for the first aligned part, of a block at most, that is not in use as a whole.
    pub fn can_give(&self, start: Pfn, frames: u64) -> Result<(), GiveError> {
        for (ix, order) in self.pieces(start, frames)? {
            let (i, at) = (ix.0 / FRAMES, ix.0 % FRAMES);
            if self.has_absent(i, at, order) {
                return Err(GiveError::NoMemory(self.frame(ix.0)));
            }
            let b = self.of.block(i);
            let is_used = match order {
                BLOCK_ORDER => b.in_use() == FRAMES,
                _ => b.is_intact() || self.of.map(i).is_clear_run(at, order),
            };
            if !is_used {
                return Err(GiveError::NotTaken(self.frame(ix.0)));
            }
        }
        Ok(())
    }

    /// Whether all of the `frames` frames from `start` on are free, so that [`take_range`](Engine::take_range) takes them.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, or if some of them is not free, or no memory.
    pub fn can_take(&self, start: Pfn, frames: u64) -> Result<(), GiveError> {
        for (ix, order) in self.pieces(start, frames)? {
            let (i, at) = (ix.0 / FRAMES, ix.0 % FRAMES);
            if self.has_absent(i, at, order) {
                return Err(GiveError::NoMemory(self.frame(ix.0)));
            }
            let b = self.of.block(i);
            let is_free = !b.is_intact() && self.of.map(i).is_free_run(at, order);
            if !is_free || b.is_apart() {
                return Err(GiveError::InUse(self.frame(ix.0)));
            }
        }
        Ok(())
    }

    /// Takes the `frames` frames from `start` on, which are all free, for a request of a type.
    ///
    /// # Errors
    /// As [`can_take`](Engine::can_take); nothing has changed then.
    pub fn take_range(
        &mut self,
        start: Pfn,
        frames: u64,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        self.can_take(start, frames)?;
        let mt = type_index(mt);
        for (ix, order) in self.pieces(start, frames)? {
            let i = ix.0 / FRAMES;
            if self.of.block(i).is_whole() {
                self.take_whole_run(i, Order::ZERO);
                if order == BLOCK_ORDER {
                    self.use_whole(i, Order::ZERO, mt);
                    self.count_free(-i64::from(FRAMES));
                    continue;
                }
                self.of.block_mut(i).set_mt(mt);
                self.runs_came(i);
            } else if self.of.block(i).in_use() == 0 {
                // A block of which only a part is memory.
                self.retype(i, mt);
            }
            self.of.map_mut(i).clear_run(ix.0 % FRAMES, order);
            self.taken(i, order.frames(), mt);
        }
        Ok(())
    }

    /// Takes a block of `2^order` frames that ends at `limit` at the latest, for a device that reaches no further: the
    /// lowest one. It looks at each block below the limit.
    pub fn take_below(&mut self, limit: Pfn, order: Order, mt: MigrateType) -> Option<Pfn> {
        let reach = limit.0.checked_sub(self.start().0)?.min(self.span());
        if order > LARGEST_ORDER || reach >> order.0 == 0 {
            return None;
        }
        let size = u64::from(order.frames());
        let starts = (0..=reach - size).step_by(order.max(BLOCK_ORDER).frames() as usize);
        for start in starts {
            let i = (start / u64::from(FRAMES)) as u32;
            let found = if order >= BLOCK_ORDER {
                let blocks = i..i + Order(order.0 - BLOCK_ORDER.0).frames();
                let mut all = blocks.map(|i| self.of.find(i));
                all.all(|b| b.is_some_and(|b| b.is_whole())).then_some(0)
            } else {
                let usable = |b: &Block| b.free() > 0 && !b.is_apart();
                let part = (reach - start).min(FRAMES.into()) as u32;
                let run = self.of.find(i).filter(usable);
                let run = run.and_then(|_| self.of.map(i).first_run(order));
                run.filter(|at| at + order.frames() <= part)
            };
            if let Some(at) = found {
                let first = self.frame(i * FRAMES + at);
                return self.take_range(first, size, mt).ok().map(|()| first);
            }
        }
        None
    }
}
