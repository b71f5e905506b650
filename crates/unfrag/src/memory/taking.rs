//! Taking blocks out of the shards, and giving them back, for who has no [`Local`](crate::Local), and in batches for who has
//! one.

use super::config::MAX_NODES;
use super::request::{From, Request};
use super::shards::Memory;
use super::span::Span;
use super::totals::Floor;
use crate::error::AllocError;
use crate::frame::{MigrateType, Order, Pfn};
use crate::maps::{GiveError, LARGEST_ORDER};
use lock_api::RawMutex;

impl<R: RawMutex> Memory<'_, R> {
    /// Takes a block without a `Local`, down to the min watermark, from where the request names.
    ///
    /// # Errors
    /// As [`Local::alloc`](crate::local::Local::alloc), and [`AllocError::Nowhere`], if nothing that it names can ever be
    /// memory.
    pub fn alloc(&self, request: &Request) -> Result<Pfn, AllocError> {
        let from = From {
            home: self.home_of(0, request.node.unwrap_or_default()),
            floor: if request.is_atomic {
                Floor::Zero
            } else {
                Floor::Min
            },
            only: request.node.filter(|_| request.is_only).map(|n| n.0),
            below: request.below.map_or(u64::MAX, |p| p.0),
        };
        let may = |s: &Span| from.may(s.start, s.node);
        if !self.spans().iter().any(may) {
            return Err(AllocError::Nowhere);
        }
        let got = self.take_frame(request.order, request.mt, from);
        got.or_else(|why| self.take_drained(request.order, request.mt, from, why))
    }

    /// Gives one block back without a `Local`.
    ///
    /// # Errors
    /// [`GiveError`], if no such block begins there, or if it is not in use as a whole: it stays as it is.
    ///
    /// # Safety
    /// The block is the caller's, and nobody uses it any more: it was taken from this memory, as it is or as a part of a
    /// larger one, and not given back since. What is free already is refused, but the maps do not know whose a frame is: one
    /// that somebody else has would be handed out once more.
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub unsafe fn free(&self, pfn: Pfn, order: Order, mt: MigrateType) -> Result<(), GiveError> {
        self.give_back(pfn, order, mt)
    }

    /// The same for a block that is known to be the caller's.
    pub(crate) fn give_back(
        &self,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        if !self.is_block(pfn, order) {
            return Err(self.no_block(pfn));
        }
        self.give(&mut [pfn.0], order, mt)
    }

    /// Takes one block.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn take_frame(
        &self,
        order: Order,
        mt: MigrateType,
        from: From,
    ) -> Result<Pfn, AllocError> {
        let mut one = [0];
        self.take(&mut one, order, mt, from)?;
        Ok(Pfn(one[0]))
    }

    /// Takes up to `out.len()` blocks of one node, as many as leave the floor. Returns how many, at least one.
    ///
    /// # Errors
    /// As [`Local::alloc`](crate::local::Local::alloc).
    pub(crate) fn take(
        &self,
        out: &mut [u64],
        order: Order,
        mt: MigrateType,
        from: From,
    ) -> Result<usize, AllocError> {
        if order > LARGEST_ORDER {
            return Err(AllocError::OrderTooLarge);
        }
        let home = self.spans().get(from.home).map_or(0, |s| s.node.into());
        let mut why = AllocError::Short;
        for i in 0..MAX_NODES {
            let node = (home + i) % MAX_NODES;
            let Some(totals) = self.totals(node).filter(|_| from.may_node(node)) else {
                continue;
            };
            // Another node's frames are not kept here.
            let most = if i == 0 { out.len() } else { 1 };
            let granted = totals.reserve(most.min(out.len()), order, from.floor);
            if granted == 0 {
                continue;
            }
            let got = self.take_reserved(&mut out[..granted], order, mt, (from, node));
            totals.add(granted - got, order);
            if got > 0 {
                return Ok(got);
            }
            why = AllocError::Fragmented;
        }
        Err(why)
    }

    /// Takes blocks from the first shard of a node that has some, beginning at home. Types mix only if each shard would have
    /// to mix them. What cannot be moved is taken from the same shard by all. Low addresses come last.
    fn take_reserved(
        &self,
        out: &mut [u64],
        order: Order,
        mt: MigrateType,
        (from, node): (From, usize),
    ) -> usize {
        let count = self.spans().len();
        for (is_low, mixes) in [(false, false), (false, true), (true, false), (true, true)] {
            // Who names an address has only what is below it.
            let is_low = is_low != (from.below != u64::MAX);
            for i in 0..count {
                // Down from the last shard, for what cannot be moved; up from home, for what can.
                let i = match from.home.wrapping_add(i) {
                    _ if mt != MigrateType::Movable => count - 1 - i,
                    i if i < count => i,
                    i => i.wrapping_sub(count),
                };
                let Some(span) = self.spans().get(i) else {
                    continue;
                };
                if usize::from(span.node) != node
                    || span.is_low != is_low
                    || !from.may(span.start, span.node)
                {
                    continue;
                }
                let mut engine = self.engine(i).lock();
                let got = if span.start + span.frames <= from.below {
                    engine.take(out, order, mt, mixes)
                } else {
                    let one = engine.take_below(Pfn(from.below), order, mt);
                    let slot = out.first_mut().zip(one);
                    slot.map_or(0, |(slot, one)| {
                        *slot = one.0;
                        1
                    })
                };
                if got > 0 {
                    return got;
                }
            }
        }
        0
    }

    /// Gives blocks back, each to its shard. A block that is refused stays out.
    pub(crate) fn give(
        &self,
        blocks: &mut [u64],
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        self.give_beside(blocks, &[], order, mt).0
    }

    /// The same for blocks that were kept beside some others, which are given back next. Also returns whether one of those is
    /// free in the same shards, as [`Engine::give_beside`](crate::maps::Engine::give_beside) says.
    pub(crate) fn give_beside(
        &self,
        blocks: &mut [u64],
        kept: &[u64],
        order: Order,
        mt: MigrateType,
    ) -> (Result<(), GiveError>, bool) {
        if blocks.is_empty() {
            return (Ok(()), false);
        }
        if self.spans().len() == 1 {
            return self.counted(0, |e| e.give_beside(blocks, kept, order, mt));
        }
        let (mut result, mut one_is_free) = (Ok(()), false);
        let mut rest = blocks;
        while let Some(&first) = rest.first() {
            let Some(shard) = self.shard_of(first) else {
                result = result.and(Err(GiveError::NoMemory(Pfn(first))));
                rest = &mut core::mem::take(&mut rest)[1..];
                continue;
            };
            let n = self.spans()[shard].gather(rest);
            let (of_shard, others) = core::mem::take(&mut rest).split_at_mut(n);
            rest = others;
            let (given, is_free) =
                self.counted(shard, |e| e.give_beside(of_shard, kept, order, mt));
            result = result.and(given);
            one_is_free |= is_free;
        }
        (result, one_is_free)
    }

    /// Takes the `frames` frames from `start` on, if all of them are free, for requests of a type: for a device, a firmware, or
    /// a caller that asks for an address.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, if some of them are no memory, or in use. Nothing has changed then.
    pub fn alloc_at(&self, start: Pfn, frames: u64, mt: MigrateType) -> Result<(), GiveError> {
        // What is reserved in vain would be missing for others meanwhile.
        self.parts(start, frames, |shard, part, n| {
            self.engine(shard).lock().can_take(part, n)
        })?;
        let mut taken = 0;
        let result = self.parts(start, frames, |shard, part, n| {
            let mut engine = self.engine(shard).lock();
            engine.can_take(part, n)?;
            // Others may have reserved so many that they will find them elsewhere only if these stay.
            if !self.node(shard).reserve_all(n, Floor::Zero) {
                return Err(GiveError::InUse(part));
            }
            taken += n;
            engine.take_range(part, n, mt)
        });
        if result.is_err() && taken > 0 {
            let back = self.give_range_back(start, taken, mt);
            debug_assert!(back.is_ok(), "what has just been taken");
        }
        result
    }

    /// Gives a range back that is known to be the caller's.
    pub(crate) fn give_range_back(
        &self,
        start: Pfn,
        frames: u64,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let mut result = Ok(());
        self.parts(start, frames, |shard, start, n| {
            let given = self.counted(shard, |e| e.give_range(start, n, mt));
            result = result.and(given);
            Ok(())
        })?;
        result
    }
}
