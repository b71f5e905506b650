//! [`Local`]: what one CPU takes and gives without a lock.

use crate::error::AllocError;
use crate::frame::{MigrateType, NodeId, Order, Pfn};
use crate::hint::seldom;
use crate::local::arrays::{DRAIN, HUGE, SINGLES, SMALL, Shelf, batch, room, surplus};
use crate::local::door::Inside;
use crate::local::slot::Slot;
use crate::maps::{BLOCK_ORDER, GiveError, TYPES, type_index};
use crate::memory::Memory;
use crate::memory::request::From;
use crate::memory::span::Range;
use crate::memory::totals::Floor;
use core::sync::atomic::AtomicU32;
use lock_api::RawMutex;

/// What one CPU, or one thread, takes and gives. A kernel keeps it in its per-CPU memory and uses it with preemption off.
/// What it keeps lies in the words of the memory: others [drain](Memory::drain_locals) it when they find nothing else. When
/// it ends, it gives back what it keeps.
pub struct Local<'s, 'm, R: RawMutex> {
    slot: Slot<'s>,
    shared: &'s Memory<'m, R>,
    home: usize,
    /// The frames of its node, those alone: what it frees of them it keeps.
    near: Range,
    /// Single frames that an array keeps, while nobody calls them home.
    limit: u32,
}

impl<'m, R: RawMutex> Memory<'m, R> {
    /// A `Local` for the caller, if there is one left, that takes from the first node before others.
    pub fn local(&self) -> Option<Local<'_, 'm, R>> {
        let first = self.spans().first()?;
        self.local_on(NodeId(first.node))
    }

    /// A `Local` for a CPU of a node, if there is one left.
    pub fn local_on(&self, node: NodeId) -> Option<Local<'_, 'm, R>> {
        let slots = self.slots();
        let (i, slot) = slots.claim()?;
        Some(Local {
            slot,
            shared: self,
            home: self.home_of(i, node),
            near: self.range_of(node),
            limit: slots.limit,
        })
    }
}

impl<R: RawMutex> Local<'_, '_, R> {
    /// Takes a block of `2^order` frames for a request of a type; types that nobody requests count as unmovable.
    ///
    /// Before it fails, what all CPUs keep is given back to the maps, as [`Memory::drain_locals`] says.
    ///
    /// # Errors
    /// [`AllocError::OrderTooLarge`]; [`AllocError::Short`], if it would leave fewer frames than the min watermark;
    /// [`AllocError::Fragmented`], if so many are free, but no such block is.
    #[inline]
    pub fn alloc(&mut self, order: Order, mt: MigrateType) -> Result<Pfn, AllocError> {
        self.alloc_down_to(order, mt, Floor::Min)
    }

    /// As [`alloc`](Self::alloc), for somebody who cannot wait, such as an interrupt handler: it may also have the frames
    /// below the min watermark, which are taken one block at a time.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc); [`AllocError::Short`], if no frame is left.
    #[inline]
    pub fn alloc_atomic(&mut self, order: Order, mt: MigrateType) -> Result<Pfn, AllocError> {
        self.alloc_down_to(order, mt, Floor::Zero)
    }

    #[inline]
    fn alloc_down_to(
        &mut self,
        order: Order,
        mt: MigrateType,
        floor: Floor,
    ) -> Result<Pfn, AllocError> {
        let t = type_index(mt);
        let got = if order == Order::ZERO {
            self.pop(self.slot.singles(t))
        } else {
            // What is taken most often waits for no other order's compare.
            seldom();
            if order == BLOCK_ORDER {
                self.pop(self.slot.huge(t))
            } else {
                None
            }
        };
        match got {
            Some(pfn) => Ok(pfn),
            None => self.alloc_slow(order, t, floor),
        }
    }

    /// Gives back a block that a request of a type had, or an aligned part of one.
    ///
    /// # Errors
    /// [`GiveError`], if no block of this order begins there, or if it was freed twice, where that is seen: the last time just
    /// before, or as a block of order 1 to 3 that is kept still. It may also be about a block that was freed before, and is
    /// given back together with this one: that it was freed twice, or is no memory. It is not handed out for it again.
    ///
    /// # Safety
    /// The block is the caller's, and nobody uses it any more: it was taken from the same memory, as it is or as a part of a
    /// larger one, and not given back since, here or anywhere else. What this `Local` keeps is handed out again before any
    /// map has seen it: so of two that free one block, each through its own `Local`, both may hand it out.
    #[inline]
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub unsafe fn free(
        &mut self,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let t = type_index(mt);
        let is_kept = if order == Order::ZERO {
            self.push(self.slot.singles(t), pfn, Order::ZERO)
        } else {
            seldom();
            order == BLOCK_ORDER && self.push(self.slot.huge(t), pfn, BLOCK_ORDER)
        };
        if is_kept {
            return Ok(());
        }
        self.free_slow(pfn, order, t)
    }

    /// Gives back a block of another node. Such blocks are not handed out here again: each node has its own.
    #[cold]
    #[inline(never)]
    fn free_far(&mut self, pfn: Pfn, order: Order, t: usize) -> Result<(), GiveError> {
        let mt = MigrateType::ALL[t];
        if !self.shared.is_block(pfn, order) {
            return Err(self.shared.no_block(pfn));
        }
        let shelf = self.slot.far(t);
        let Some(inside) = self.slot.door().enter().filter(|_| order == Order::ZERO) else {
            return self.shared.give(&mut [pfn.0], order, mt);
        };
        if shelf.contains(pfn) {
            return Err(GiveError::NotTaken(pfn));
        }
        let result = self.answer(&inside);
        if shelf.push(pfn, u32::MAX) {
            return result;
        }
        let mut all = [0; DRAIN];
        let given = self.shared.give(shelf.take_last(&mut all), order, mt);
        shelf.push(pfn, u32::MAX);
        result.and(given)
    }

    #[inline(always)]
    fn pop(&self, shelf: Shelf<'_>) -> Option<Pfn> {
        let _inside = self.slot.door().enter()?;
        shelf.pop()
    }

    /// Keeps a block, if it is of this node. Called home, no array takes anything; and none while somebody drains it.
    #[inline(always)]
    fn push(&self, shelf: Shelf<'_>, pfn: Pfn, order: Order) -> bool {
        self.near.has_block(pfn, order) && {
            let inside = self.slot.door().look_in();
            shelf.push_quick(pfn, room(order, inside.limit()))
        }
    }

    /// Whether a block is seen to be kept already: as the last one; of an order that is never pushed without a look, as any.
    fn keeps(&self, pfn: Pfn, order: Order, t: usize) -> bool {
        if matches!(order, Order::ZERO | BLOCK_ORDER) {
            let kept = self.slot.shelf(order, t);
            return kept.is_some_and(|a| a.is_last(pfn));
        }
        let mut all = (0..TYPES).filter_map(|t| self.slot.shelf(order, t));
        all.any(|a| a.contains(pfn))
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&mut self, order: Order, t: usize, floor: Floor) -> Result<Pfn, AllocError> {
        let got = match (self.slot.door().enter(), self.slot.shelf(order, t)) {
            (Some(_inside), Some(shelf)) => match shelf.pop() {
                Some(pfn) => return Ok(pfn),
                None => match order {
                    Order::ZERO => self.refill::<{ SINGLES / 2 }>(shelf, order, t),
                    BLOCK_ORDER => self.refill::<HUGE>(shelf, order, t),
                    _ => self.refill::<{ SMALL / 2 }>(shelf, order, t),
                },
            },
            // Somebody drains it: he is not waited for.
            (None, _) | (_, None) => self.take_frame(order, t, floor),
        };
        match got {
            Err(AllocError::Short | AllocError::Fragmented) => self.alloc_short(order, t, floor),
            got => got,
        }
    }

    /// What this CPU keeps of other types and orders may be what is missing, then what others keep.
    fn alloc_short(&mut self, order: Order, t: usize, floor: Floor) -> Result<Pfn, AllocError> {
        self.flush_quietly();
        self.take_frame(order, t, floor).or_else(|why| {
            let (mt, from) = (MigrateType::ALL[t], From::home(self.home, floor));
            self.shared.take_drained(order, mt, from, why)
        })
    }

    /// Takes a block from the maps.
    fn take_frame(&self, order: Order, t: usize, floor: Floor) -> Result<Pfn, AllocError> {
        let (mt, from) = (MigrateType::ALL[t], From::home(self.home, floor));
        self.shared.take_frame(order, mt, from)
    }

    /// Takes a batch of up to `N` blocks for an empty array from the maps, and one block of it.
    #[inline(always)]
    fn refill<const N: usize>(
        &self,
        shelf: Shelf<'_>,
        order: Order,
        t: usize,
    ) -> Result<Pfn, AllocError> {
        let mut blocks = [0; N];
        let blocks = &mut blocks[..batch(order, self.limit)];
        let (mt, from) = (MigrateType::ALL[t], From::home(self.home, Floor::Min));
        let got = self.shared.take(blocks, order, mt, from)?;
        // The lowest is handed out first.
        shelf.fill(&blocks[1..got]);
        Ok(Pfn(blocks[0]))
    }

    #[cold]
    #[inline(never)]
    fn free_slow(&mut self, pfn: Pfn, order: Order, t: usize) -> Result<(), GiveError> {
        if !self.near.has_block(pfn, order) {
            return self.free_far(pfn, order, t);
        }
        let mt = MigrateType::ALL[t];
        let Some(inside) = self.slot.door().enter() else {
            // Somebody drains it: he is not waited for.
            return self.shared.give(&mut [pfn.0], order, mt);
        };
        if self.keeps(pfn, order, t) {
            return Err(GiveError::NotTaken(pfn));
        }
        let mut result = self.answer(&inside);
        let Some(shelf) = self.slot.shelf(order, t) else {
            return result.and(self.shared.give(&mut [pfn.0], order, mt));
        };
        let most = room(order, self.limit).max(1);
        if shelf.len() >= most as usize {
            result = result.and(match order {
                Order::ZERO => self.drain_first::<SINGLES>(shelf, order, mt),
                BLOCK_ORDER => self.drain_first::<HUGE>(shelf, order, mt),
                _ => self.drain_first::<SMALL>(shelf, order, mt),
            });
        }
        if !shelf.push(pfn, most) {
            // It was the last one of those that are kept.
            result = result.and(Err(GiveError::NotTaken(pfn)));
        }
        result
    }

    /// Gives those of a full array of up to `N` blocks back that came first. What was freed once more, and stays, is not kept.
    #[inline(always)]
    fn drain_first<const N: usize>(
        &self,
        shelf: Shelf<'_>,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let mut all = [0; N];
        let (first, rest) = shelf.take_first(surplus(order, self.limit), &mut all);
        let (given, one_is_free) = self.shared.give_beside(first, rest, order, mt);
        if one_is_free && let Some(twin) = shelf.forget(first) {
            return Err(GiveError::NotTaken(twin));
        }
        given
    }

    /// Gives back all that is kept, if it was called home.
    fn answer(&self, inside: &Inside<'_, AtomicU32>) -> Result<(), GiveError> {
        if inside.limit() > 0 {
            return Ok(());
        }
        let result = self.shared.empty(self.slot);
        inside.answer(self.limit);
        result
    }

    /// Gives back all that is kept; what somebody else drains at this moment, he gives back.
    ///
    /// # Errors
    /// [`GiveError`], for the first block that was refused, since it had been freed twice. All others are free then.
    pub fn flush(&mut self) -> Result<(), GiveError> {
        let door = self.slot.door();
        if !door.shut() {
            return Ok(());
        }
        let gate = Gate(self.slot, self.limit);
        // No barrier is needed: the owner is not inside, but here.
        let result = self.shared.empty(self.slot);
        drop(gate);
        result
    }

    /// The same where nobody hears of an error: it is counted.
    fn flush_quietly(&mut self) {
        if self.flush().is_err() {
            self.shared.count_refused();
        }
    }
}

/// The gate of a slot that its owner has shut: however the flush ends, it is opened.
struct Gate<'s>(Slot<'s>, u32);

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.0.door().open(self.1);
    }
}

impl<R: RawMutex> Drop for Local<'_, '_, R> {
    fn drop(&mut self) {
        self.flush_quietly();
        self.slot.door().leave();
    }
}
