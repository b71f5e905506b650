//! Freeing blocks. `spec: 1.2, 3`

use crate::frame::{CpuId, FrameIx, FrameKind, MigrateType, Order, PageFlags, Pfn, State, ZoneId};
use crate::host::Host;
use crate::lru::{ISOLATED, ISOLATED_OTHER};
use crate::manager::{Manager, own_set};
use crate::pcp::{Freed, ZonePressure};
use crate::placement::{FreeBlock, FreeTo};
use crate::trace::Event;

/// Why a block was not freed. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeError {
    /// No zone holds this frame.
    NoSuchFrame(Pfn),
    /// The frame is not the first of a block in use (freed twice, or never allocated).
    NotAllocated(Pfn, FrameKind),
    /// The block in use there has another order; [`split`](crate::Manager::split) it first.
    WrongOrder {
        /// First frame.
        pfn: Pfn,
        /// Its order.
        actual: Order,
    },
}

impl core::fmt::Display for FreeError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            FreeError::NoSuchFrame(p) => write!(f, "frame {:#x} is in no zone", p.0),
            FreeError::NotAllocated(p, k) => {
                write!(
                    f,
                    "frame {:#x} does not begin a block in use: it is {k:?}",
                    p.0
                )
            }
            FreeError::WrongOrder { pfn, actual } => write!(
                f,
                "the block in use at frame {:#x} has order {actual}; split it before freeing a part",
                pfn.0
            ),
        }
    }
}

impl core::error::Error for FreeError {}

impl<'m, H: Host> Manager<'m, H> {
    /// Frees the block of `2^order` frames at `pfn`, on a CPU. A page on an LRU list leaves it. An
    /// isolated page is freed when its isolation ends; one that has just been moved may be named by either frame.
    ///
    /// # Errors
    /// [`FreeError`]; nothing has changed then. A block that is freed twice is found here.
    ///
    /// # Panics
    /// If there is no such CPU.
    #[inline]
    pub fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Ok(ix) = self.check(pfn, order) else {
            return self.free_lru_page(cpu, pfn, order);
        };
        self.account_free(pfn, order);
        self.free_block(cpu, ix, order);
        Ok(())
    }

    #[inline(never)]
    fn free_lru_page(&mut self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let left = self.take_off_lru(pfn, order)?;
        self.account_free(pfn, order);
        if let Some(ix) = left {
            self.free_block(cpu, ix, order);
        }
        Ok(())
    }

    /// Takes a page in use off its LRU list. An isolated page is marked [`PageFlags::FREED`] instead, and
    /// `None` is returned.
    fn take_off_lru(&mut self, pfn: Pfn, order: Order) -> Result<Option<FrameIx>, FreeError> {
        let ix = self.map.ix(pfn).ok_or(FreeError::NoSuchFrame(pfn))?;
        let s = self.frames.state(ix);
        let flags = s.flags();
        // On a list, the flag's bit may say something else.
        let freed = s.lru() >= ISOLATED && flags.contains(PageFlags::FREED);
        if s.lru() == 0 || !s.with_lru(0).is_used(order) || freed {
            return self.check(pfn, order).map(Some);
        }
        if s.lru() == ISOLATED_OTHER && !s.is_movable() {
            // A run of compaction took it from the free lists, and nobody has it yet.
            return Err(FreeError::NotAllocated(pfn, FrameKind::Buddy));
        }
        if s.lru() == ISOLATED || s.lru() == ISOLATED_OTHER {
            self.frames
                .set_state(ix, s.with_flags(flags | PageFlags::FREED));
            return Ok(None);
        }
        self.pages().lru_leave(ix, s);
        Ok(Some(ix))
    }

    /// The frame at `pfn` if a block of `order` is in use there.
    #[inline]
    pub(crate) fn check(&self, pfn: Pfn, order: Order) -> Result<FrameIx, FreeError> {
        let ix = self.map.ix(pfn).ok_or(FreeError::NoSuchFrame(pfn))?;
        let s = self.frames.state(ix);
        if s.is_used(order) {
            return Ok(ix);
        }
        Err(match s.kind() {
            FrameKind::Used => FreeError::WrongOrder {
                pfn,
                actual: s.order(),
            },
            other => FreeError::NotAllocated(pfn, other),
        })
    }

    /// Frees a block that is on no list: to the CPU's list if that serves the order, else to the buddy lists.
    #[inline]
    pub(crate) fn free_block(&mut self, cpu: CpuId, ix: FrameIx, order: Order) {
        // The most frequent orders, each as a constant.
        match order {
            Order::ZERO => self.free_block_of(cpu, ix, Order::ZERO),
            Order::HUGE => self.free_block_of(cpu, ix, Order::HUGE),
            _ => self.free_block_other_order(cpu, ix, order),
        }
    }

    #[inline(never)]
    fn free_block_other_order(&mut self, cpu: CpuId, ix: FrameIx, order: Order) {
        self.free_block_of(cpu, ix, order);
    }

    #[inline(always)]
    fn free_block_of(&mut self, cpu: CpuId, ix: FrameIx, order: Order) {
        let (zone, mut mt) = self.frames.zone_and_type(ix);
        if H::SOURCES && self.policy.rules.is_sourced() && mt != MigrateType::Isolate {
            // The CPU's lists are by what was asked for: a source mixes no types.
            let pfn = self.map.pfn(ix);
            mt = self.host.source().map_or(mt, |s| s.type_of(zone, pfn));
        }
        let huge = self.frames.geometry.huge_order;
        if !self.policy.rules.pcp.serves(order, huge) || mt == MigrateType::Isolate {
            return self.give_to_zone(cpu, zone, ix, order);
        }
        let set = self.set_of(zone, cpu);
        let pressure = ZonePressure::of(&self.zones[zone.index()]);
        let block = FreeBlock { ix, order, mt };
        let lists = &mut own_set(self.sets, set, cpu).lists;
        let freed = lists.put_freed(&self.frames, &self.policy.rules, block, pressure);
        if freed.surplus > 0 {
            self.give_surplus(cpu, zone, freed);
        }
    }

    #[inline(never)]
    fn give_surplus(&mut self, cpu: CpuId, zone: ZoneId, freed: Freed) {
        let (set, mut z) = self.parts(zone, cpu);
        set.give_surplus(&mut z, freed);
    }

    #[inline(never)]
    fn give_to_zone(&mut self, cpu: CpuId, zone: ZoneId, ix: FrameIx, order: Order) {
        let (_, mut z) = self.parts(zone, cpu);
        z.give(ix, order, FreeTo::ByRules);
    }

    /// Frees pages of order 0 as one batch, on a CPU, with the events that a batch has. Stops at the
    /// first page that cannot be freed: those before it are, those after it are not.
    ///
    /// # Errors
    /// As [`free`](Self::free), for that page.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn free_bulk(&mut self, cpu: CpuId, pages: &[Pfn]) -> Result<(), FreeError> {
        let mut bad = Ok(());
        let mut checked = 0;
        for &pfn in pages {
            match self.take_off_lru(pfn, Order::ZERO) {
                // Marked as not in use, so that a second entry for it in the batch is refused.
                Ok(left) => left
                    .into_iter()
                    .for_each(|ix| self.frames.set_state(ix, State::TAIL)),
                Err(why) => {
                    bad = Err(why);
                    break;
                }
            }
            self.account_free(pfn, Order::ZERO);
            checked += 1;
        }
        for &pfn in &pages[..checked] {
            let ix = self.map.ix(pfn);
            // An isolated page is freed when its isolation ends.
            let Some(ix) = ix.filter(|&ix| self.frames.state(ix).kind() == FrameKind::Tail) else {
                continue;
            };
            self.free_block(cpu, ix, Order::ZERO);
            if H::TRACING {
                self.host.trace(&Event::PageFreeBatched { pfn });
            }
        }
        bad
    }

    /// Makes `2^(order - to)` blocks of order `to` out of a block in use (`split_page`, the split of
    /// a huge page), so that each can be freed by itself; one block, if `to` is no smaller order. A page on an LRU list
    /// leaves it.
    ///
    /// # Errors
    /// [`FreeError`]; nothing has changed then.
    pub fn split(&mut self, pfn: Pfn, order: Order, to: Order) -> Result<(), FreeError> {
        if self.pages().lru_of(pfn).is_some() {
            self.take_off_lru(pfn, order)?;
        }
        let ix = self.check(pfn, order)?;
        let piece = self.frames.state(ix).piece(to.min(order));
        let mut at = ix;
        while at < ix.plus(order.frames()) {
            self.frames.set_state(at, piece);
            at = at.plus(piece.order().frames());
        }
        Ok(())
    }

    /// Gives all per-CPU lists back to their zones.
    pub fn drain_all(&mut self) {
        for cpu in self.cpu_ids() {
            for zone in self.zone_ids() {
                self.drain(cpu, zone);
            }
        }
    }

    /// Gives one CPU's lists of one zone back.
    ///
    /// # Panics
    /// If there is no such CPU or zone.
    pub fn drain(&mut self, cpu: CpuId, zone: ZoneId) {
        let (set, mut z) = self.parts(zone, cpu);
        set.drain(&mut z);
    }

    /// The work of the per-CPU vmstat worker: folds the CPU's deltas into the zones' counters and
    /// lets self-tuning lists shrink.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn vmstat_update(&mut self, cpu: CpuId) {
        for zone in self.zone_ids() {
            let (set, mut z) = self.parts(zone, cpu);
            set.decay(&mut z);
            z.zone.counter += i64::from(core::mem::take(z.delta));
        }
    }
}
