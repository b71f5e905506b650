//! [`Local`]: what one CPU takes and gives without a lock.

use crate::error::AllocError;
use crate::frame::{MigrateType, Order, Pfn};
use crate::local::arrays::{Arrays, batch, room};
use crate::local::slot::Slot;
use crate::maps::{BLOCK_ORDER, GiveError, TYPES, type_index};
use crate::memory::Memory;
use crate::memory::totals::Floor;
use lock_api::RawMutex;

/// What one CPU, or one thread, takes and gives. A kernel keeps it in its per-CPU memory and uses it with preemption off.
/// When it ends, it gives back what it keeps.
pub struct Local<'s, 'm, R: RawMutex> {
    arrays: Arrays,
    slot: &'s Slot,
    shared: &'s Memory<'m, R>,
    home: usize,
    /// Single frames that an array keeps, while nobody calls them home.
    limit: u32,
}

impl<'m, R: RawMutex> Memory<'m, R> {
    /// A `Local` for the caller, if there is one left.
    pub fn local(&self) -> Option<Local<'_, 'm, R>> {
        let limit = self.keeps();
        let (i, slot) = self.claim_slot(limit)?;
        Some(Local {
            arrays: Arrays::EMPTY,
            slot,
            shared: self,
            home: self.home_of(i),
            limit,
        })
    }
}

impl<R: RawMutex> Local<'_, '_, R> {
    /// Takes a block of `2^order` frames for a request of a type; types that nobody requests count as unmovable.
    ///
    /// # Errors
    /// [`AllocError::OrderTooLarge`]; [`AllocError::Short`], if it would leave fewer frames than the min watermark: others
    /// are then called home, so that a later try may succeed; [`AllocError::Fragmented`], if so many are free, but no such
    /// block is.
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
        let got = match order {
            Order::ZERO => self.arrays.singles[t].pop(),
            BLOCK_ORDER => self.arrays.huge[t].pop(),
            _ => None,
        };
        match got {
            Some(n) => Ok(self.shared.frame(n)),
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
        let Some(n) = self.shared.block(pfn, order) else {
            return Err(self.shared.no_block(pfn));
        };
        // Called home, no array takes anything.
        let limit = self.slot.limit();
        let is_kept = match order {
            Order::ZERO => self.arrays.singles[t].push(n, limit),
            BLOCK_ORDER => self.arrays.huge[t].push(n, room(order, limit)),
            _ => false,
        };
        if is_kept {
            return Ok(());
        }
        self.free_slow(n, order, t)
    }

    /// Whether a block is seen to be kept already: as the last one; of an order that is never pushed without a look, as any.
    fn keeps(&mut self, n: u32, order: Order, t: usize) -> bool {
        if matches!(order, Order::ZERO | BLOCK_ORDER) {
            let kept = self.arrays.of(order, t);
            return kept.is_some_and(|a| a.of[..*a.len].last() == Some(&n));
        }
        (0..TYPES).any(|t| {
            let kept = self.arrays.of(order, t);
            kept.is_some_and(|a| a.of[..*a.len].contains(&n))
        })
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&mut self, order: Order, t: usize, floor: Floor) -> Result<Pfn, AllocError> {
        if let Some(kept) = self.arrays.of(order, t)
            && *kept.len > 0
        {
            *kept.len -= 1;
            return Ok(self.shared.frame(kept.of[*kept.len]));
        }
        match self.take(order, t, floor) {
            Err(AllocError::Short | AllocError::Fragmented) => {
                // What it keeps of other types and orders may be what is missing.
                self.flush_quietly();
                let got = self.take(order, t, floor);
                if got.is_err() {
                    self.shared.call_home();
                    self.slot.set_limit(self.limit);
                }
                got
            }
            got => got,
        }
    }

    /// Takes a batch, and one block of it; or the one alone, if there is no room for more above the min watermark.
    fn take(&mut self, order: Order, t: usize, floor: Floor) -> Result<Pfn, AllocError> {
        match self.refill(order, t) {
            Err(AllocError::Short) if floor == Floor::Zero => {
                let mut one = [0];
                let (mt, from) = (MigrateType::ALL[t], (self.home, floor));
                self.shared.take(&mut one, order, mt, from)?;
                Ok(self.shared.frame(one[0]))
            }
            got => got,
        }
    }

    /// Takes a batch, and one block of it.
    fn refill(&mut self, order: Order, t: usize) -> Result<Pfn, AllocError> {
        let mut single = [0];
        let (shared, from) = (self.shared, (self.home, Floor::Min));
        let mut kept = self.arrays.of(order, t);
        let batch = kept.as_mut().map_or(&mut single[..], |a| {
            let n = batch(order, self.limit);
            &mut a.of[..n]
        });
        let got = shared.take(batch, order, MigrateType::ALL[t], from)?;
        let last = got - 1;
        // The lowest is handed out first.
        batch[..got].reverse();
        let n = batch[last];
        if let Some(mut a) = kept {
            *a.len = last;
            self.slot.add_held(a.show() << order.0);
        }
        Ok(shared.frame(n))
    }

    #[cold]
    #[inline(never)]
    fn free_slow(&mut self, n: u32, order: Order, t: usize) -> Result<(), GiveError> {
        if self.keeps(n, order, t) {
            return Err(GiveError::NotTaken(self.shared.frame(n)));
        }
        let mut result = Ok(());
        if self.slot.limit() == 0 {
            self.slot.set_limit(self.limit);
            result = self.flush();
        }
        let Some(mut kept) = self.arrays.of(order, t) else {
            return result.and(self.shared.give(&mut [n], order, MigrateType::ALL[t]));
        };
        let len = *kept.len;
        if len >= room(order, self.limit).max(1) as usize {
            // The older half.
            let goes = batch(order, self.limit).min(len);
            if let Some(twin) = kept.forget_twins(goes, order) {
                result = result.and(Err(GiveError::NotTaken(self.shared.frame(twin))));
            }
            let len = *kept.len;
            let given = self
                .shared
                .give(&mut kept.of[..goes], order, MigrateType::ALL[t]);
            result = result.and(given);
            kept.of.copy_within(goes..len, 0);
            *kept.len -= goes;
            self.slot.add_held(kept.show() << order.0);
        }
        kept.of[*kept.len] = n;
        *kept.len += 1;
        result
    }

    /// Gives back all that is kept.
    ///
    /// # Errors
    /// [`GiveError`], for the first block that was refused, since it had been freed twice. All others are free then.
    pub fn flush(&mut self) -> Result<(), GiveError> {
        let mut result = Ok(());
        for (t, &mt) in MigrateType::ALL[..TYPES].iter().enumerate() {
            for order in Arrays::orders() {
                let Some(mut kept) = self.arrays.of(order, t) else {
                    continue;
                };
                let len = core::mem::take(kept.len);
                result = result.and(self.shared.give(&mut kept.of[..len], order, mt));
                self.slot.add_held(kept.show() << order.0);
            }
        }
        result
    }

    /// The same where nobody hears of an error: it is counted.
    fn flush_quietly(&mut self) {
        if self.flush().is_err() {
            self.shared.count_refused();
        }
    }
}

impl<R: RawMutex> Drop for Local<'_, '_, R> {
    fn drop(&mut self) {
        self.flush_quietly();
        self.slot.release();
    }
}
