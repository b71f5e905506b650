//! Giving blocks back. `spec: linux-mm 1.2, 3; linux-6.1 1.2, 3`

use super::{Manager, Parts};
use crate::frame::{HUGE_ORDER, Ix, Kind, MigrateType, Pfn, State};
use crate::host::Host;
use crate::kernel::Pcp;
use crate::pcp::CpuLists;
use crate::place::lists::At;
use crate::reclaim::{ISOLATED, PageFlags};
use crate::trace::Event;
use crate::zone::Zone;

/// Why a block was not freed. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeError {
    /// No zone holds this frame.
    NoSuchFrame(Pfn),
    /// The frame is not the first of a block in use (freed twice, or never allocated).
    NotAllocated(Pfn, Kind),
    /// The block in use there has another order; [`split`](Manager::split) it first.
    WrongOrder {
        /// First frame.
        pfn: Pfn,
        /// Its order.
        actual: u8,
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
    /// Frees the block of `2^order` frames at `pfn`.
    #[inline]
    pub fn free(&mut self, pfn: Pfn, order: u8) -> Result<(), FreeError> {
        let Ok(ix) = self.check(pfn, order) else {
            return self.free_listed(pfn, order);
        };
        self.tell_freed(pfn, order);
        if !self.keep(ix, order) {
            self.put_back(ix, order);
        }
        Ok(())
    }

    /// A page that an LRU list holds leaves it first; what reclaim holds apart is freed when it is put
    /// back.
    #[inline(never)]
    fn free_listed(&mut self, pfn: Pfn, order: u8) -> Result<(), FreeError> {
        let left = self.unlist(pfn, order)?;
        self.tell_freed(pfn, order);
        if let Some(ix) = left
            && !self.keep(ix, order)
        {
            self.put_back(ix, order);
        }
        Ok(())
    }

    /// Takes a page in use off its LRU list; one that reclaim holds apart is marked as gone, and stays.
    fn unlist(&mut self, pfn: Pfn, order: u8) -> Result<Option<Ix>, FreeError> {
        let ix = self.map.ix(pfn).ok_or(FreeError::NoSuchFrame(pfn))?;
        let s = self.frames.state(ix);
        let flags = PageFlags::from_bits_retain(s.flags());
        if s.lru() == 0 || !s.with_lru(0).is_used(order) || flags.contains(PageFlags::GONE) {
            return self.check(pfn, order).map(Some);
        }
        if s.lru() == ISOLATED {
            let gone = (flags | PageFlags::GONE).bits();
            self.frames.set_state(ix, s.with_flags(gone));
            return Ok(None);
        }
        self.lru_leave(ix, s);
        Ok(Some(ix))
    }

    /// The commonest case: a single or a huge page that the CPU's own list keeps. Does what
    /// [`put_back`](Self::put_back) would.
    #[inline]
    fn keep(&mut self, ix: Ix, order: u8) -> bool {
        let Pcp::Orders { tuned, .. } = self.env.sw.pcp else {
            return self.keep_single(ix, order);
        };
        if order != 0 && order != HUGE_ORDER {
            return false;
        }
        let z = usize::from(self.frames.state(ix).zone());
        let mt = self.frames.block_type(ix);
        let calm = |zone: &Zone| !(zone.reclaim_active || tuned && zone.below_high);
        if !mt.is_ordinary() || !self.zones[z].as_ref().is_some_and(calm) {
            return false;
        }
        let set = self.own_set(z);
        self.sets[set].keep(&mut self.frames, ix, order, mt, tuned)
    }

    /// The same where lists hold single pages (to 5.12). Cold, so that it stands off the road of all others.
    #[cold]
    #[inline(never)]
    fn keep_single(&mut self, ix: Ix, order: u8) -> bool {
        let mt = self.frames.block_type(ix);
        if order != 0 || mt == MigrateType::Isolate {
            return false;
        }
        let z = usize::from(self.frames.state(ix).zone());
        let set = self.own_set(z);
        self.sets[set].keep_single(&mut self.frames, &self.env.sw, ix, mt)
    }

    /// The frame at `pfn` if a block of `order` is in use there.
    #[inline]
    pub(crate) fn check(&self, pfn: Pfn, order: u8) -> Result<Ix, FreeError> {
        let ix = self.map.ix(pfn).ok_or(FreeError::NoSuchFrame(pfn))?;
        let s = self.frames.state(ix);
        if s.is_used(order) {
            return Ok(ix);
        }
        Err(match s.kind() {
            Kind::Used => FreeError::WrongOrder {
                pfn,
                actual: s.order(),
            },
            other => FreeError::NotAllocated(pfn, other),
        })
    }

    #[inline]
    pub(crate) fn tell_freed(&mut self, pfn: Pfn, order: u8) {
        self.counters.pgfree += 1 << order;
        if H::TRACING {
            self.host.trace(&Event::PageFree { pfn, order });
        }
    }

    #[inline(never)]
    pub(crate) fn put_back(&mut self, ix: Ix, order: u8) {
        let zone = self.frames.state(ix).zone();
        let cpu = self.cpu();
        let mt = self.frames.block_type(ix);
        let Parts {
            zone,
            set,
            frames,
            env,
            mut tracer,
        } = self.parts(zone.into(), cpu);
        if CpuLists::serves(env.sw.pcp, order) && mt != MigrateType::Isolate {
            set.free(zone, frames, env, ix, order, mt, false, &mut tracer);
        } else {
            frames.set_state(ix, State::new(Kind::Tail, order, mt, zone.id));
            zone.give(frames, env, set, ix, order, At::Rule);
        }
    }

    /// Frees pages of order 0 as one batch, with the events that a batch has. Stops at the first
    /// page that cannot be freed.
    pub fn free_bulk(&mut self, pages: &[Pfn]) -> Result<(), FreeError> {
        for &pfn in pages {
            self.unlist(pfn, 0)?;
            self.tell_freed(pfn, 0);
        }
        for &pfn in pages {
            // What reclaim holds apart is freed when it is put back.
            let Ok(ix) = self.check(pfn, 0) else {
                continue;
            };
            if !self.keep(ix, 0) {
                self.put_back(ix, 0);
            }
            if H::TRACING {
                self.host.trace(&Event::PageFreeBatched { pfn });
            }
        }
        Ok(())
    }

    /// Makes `2^(order - to)` blocks of order `to` out of a block in use (`split_page`, the split of
    /// a huge page), so that each can be freed by itself.
    /// A page on an LRU list leaves it.
    pub fn split(&mut self, pfn: Pfn, order: u8, to: u8) -> Result<(), FreeError> {
        if self.lru_of(pfn).is_some() {
            self.unlist(pfn, order)?;
        }
        let ix = self.check(pfn, order)?;
        let s = self.frames.state(ix);
        let piece =
            State::new(Kind::Used, to.min(order), s.mt(), s.zone()).with_movable(s.is_movable());
        for i in 0..1 << (order - to.min(order)) {
            self.frames.set_state(ix + (i << to), piece);
        }
        Ok(())
    }

    /// Gives all per-CPU lists back to their zones.
    pub fn drain_all(&mut self) {
        for cpu in 0..self.cpus {
            for zone in 0..self.nr_zones {
                self.drain(cpu, zone);
            }
        }
    }

    /// Gives one CPU's lists of one zone back.
    pub fn drain(&mut self, cpu: usize, zone: usize) {
        let Parts {
            zone,
            set,
            frames,
            env,
            mut tracer,
        } = self.parts(zone, cpu);
        set.drain(zone, frames, env, &mut tracer);
    }

    /// The work of the per-CPU vmstat worker: folds the CPU's deltas into the zones' counters and
    /// lets self-tuning lists shrink.
    pub fn vmstat_update(&mut self, cpu: usize) {
        for zone in 0..self.nr_zones {
            let Parts {
                zone,
                set,
                frames,
                env,
                mut tracer,
            } = self.parts(zone, cpu);
            set.decay(zone, frames, env, &mut tracer);
            zone.counter += i64::from(core::mem::take(&mut set.delta));
        }
    }
}
