//! Rebuilding a recorded state, frame by frame.
//!
//! [`Restore`] begins with all frames reserved. Each edit takes reserved frames and puts them on a given free
//! list, or makes them used. The order of edits is the order on the lists.

use crate::config::{Config, ConfigError};
use crate::frame::{
    CpuId, FrameIx, FrameKind, MigrateType, NR_ZONE_KINDS, Order, Pfn, State, ZoneId,
};
use crate::gfp::Gfp;
use crate::host::Host;
use crate::manager::Manager;
use crate::pcp::NR_LISTS;
use crate::placement::{FreeBlock, FreeTo};
use crate::zone::{Marks, Zone};

/// Why a state cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreError {
    /// The block is misaligned, too large, or not within one zone.
    NotABlock(Pfn, Order),
    /// A frame of the block was given a state before, or lies in a hole.
    Twice(Pfn),
    /// No such zone, CPU or list.
    NoSuchList,
}

impl core::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            RestoreError::NotABlock(p, o) => {
                write!(f, "frame {:#x} begins no block of order {o} of a zone", p.0)
            }
            RestoreError::Twice(p) => {
                write!(f, "frame {:#x} is named twice, or lies in a hole", p.0)
            }
            RestoreError::NoSuchList => f.write_str("there is no such zone, CPU or list"),
        }
    }
}

impl core::error::Error for RestoreError {}

/// A manager whose state is being put together.
pub struct Restore<'m, H: Host> {
    manager: Manager<'m, H>,
}

impl<'m, H: Host> Restore<'m, H> {
    /// Begins with all frames reserved. `memory` holds at least
    /// [`layout`](crate::layout)`(config).words` words, of any content.
    ///
    /// # Errors
    /// [`ConfigError`], if there is no such manager, or the memory is too small for it.
    pub fn new(config: &Config, host: H, memory: &'m mut [u64]) -> Result<Self, ConfigError> {
        let manager = Manager::new(config, host, memory)?;
        Ok(Restore { manager })
    }

    /// Changes to the state.
    pub fn edit(&mut self) -> Edit<'_, 'm, H> {
        Edit {
            manager: &mut self.manager,
        }
    }

    /// Frees `frames` reserved frames from `start`, as a boot hands over its early memory: ascending, the
    /// largest aligned blocks first, each to the tail of its list. `spec: 9`
    ///
    /// # Errors
    /// [`ConfigError::NotReserved`], if they are not all reserved frames of one zone; nothing has changed
    /// then.
    pub fn free_range(&mut self, start: Pfn, frames: u64) -> Result<(), ConfigError> {
        self.manager.free_range(start, frames)
    }

    /// Ends a boot: counts what is free, and makes the era's reserve of it.
    pub fn boot_done(mut self) -> Manager<'m, H> {
        self.manager.boot_done();
        self.manager
    }

    /// The manager, as its state is now.
    pub fn finish(mut self) -> Manager<'m, H> {
        self.manager.source_ready();
        self.manager
    }
}

/// Direct changes to the state of a manager, for a recorded state.
pub struct Edit<'a, 'm, H: Host> {
    pub(crate) manager: &'a mut Manager<'m, H>,
}

impl<H: Host> Edit<'_, '_, H> {
    /// Takes a block of reserved frames.
    fn claim_reserved(
        &mut self,
        pfn: Pfn,
        order: Order,
    ) -> Result<(FrameIx, ZoneId), RestoreError> {
        let bad = RestoreError::NotABlock(pfn, order);
        let (m, ix) = (&self.manager, self.manager.map.ix(pfn).ok_or(bad)?);
        if order > m.frames.geometry.max_order || !ix.is_aligned(order) {
            return Err(bad);
        }
        let zone = m.frames.zone_of(ix);
        let z = m.zones.get(zone.index()).ok_or(bad)?;
        let end = ix.plus(order.frames());
        if ix < z.span.start || end > z.span.end {
            return Err(bad);
        }
        for at in ix.until(end) {
            if m.frames.state(at).kind() != FrameKind::Reserved || m.frames.is_hole(at) {
                return Err(RestoreError::Twice(m.map.pfn(at)));
            }
        }
        for at in ix.until(end) {
            m.frames.set_state(at, State::TAIL);
        }
        Ok((ix, zone))
    }

    /// A free block, at the tail of a buddy list; it does not merge.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing has changed then.
    pub fn free(&mut self, pfn: Pfn, order: Order, mt: MigrateType) -> Result<(), RestoreError> {
        let (ix, zone) = self.claim_reserved(pfn, order)?;
        let (_, mut z) = self.manager.parts(zone, CpuId(0));
        z.tell_given(ix, order);
        z.zone.free_area.put(z.frames, FreeBlock { ix, order, mt });
        z.zone.counter += i64::from(order.frames());
        Ok(())
    }

    /// A free block that merges with its free buddies, as if it were freed now.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing has changed then.
    pub fn merged(&mut self, pfn: Pfn, order: Order) -> Result<(), RestoreError> {
        let (ix, zone) = self.claim_reserved(pfn, order)?;
        let (_, mut z) = self.manager.parts(zone, CpuId(0));
        z.give(ix, order, FreeTo::Tail);
        Ok(())
    }

    /// A block at the tail of a CPU's list `index`; `mt` is the type of its pageblock.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing has changed then.
    pub fn pcp(
        &mut self,
        cpu: CpuId,
        index: usize,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), RestoreError> {
        if cpu.0 >= self.manager.cpus || index >= NR_LISTS {
            return Err(RestoreError::NoSuchList);
        }
        let (ix, zone) = self.claim_reserved(pfn, order)?;
        let (set, mut z) = self.manager.parts(zone, cpu);
        z.tell_taken(ix, order, mt);
        set.restore(z.frames, index, FreeBlock { ix, order, mt });
        Ok(())
    }

    /// A block in use, as if `gfp` had asked for it.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing has changed then.
    pub fn used(&mut self, pfn: Pfn, order: Order, gfp: Gfp) -> Result<(), RestoreError> {
        let (ix, zone) = self.claim_reserved(pfn, order)?;
        let mt = gfp.mobility().unwrap_or(MigrateType::Unmovable);
        self.manager
            .parts(zone, CpuId(0))
            .1
            .tell_taken(ix, order, mt);
        self.manager.mark_used(ix, order, mt, gfp);
        Ok(())
    }

    /// Gives the pageblock that holds `pfn` a type, without moving anything.
    ///
    /// # Errors
    /// [`RestoreError::NotABlock`], if no zone holds it.
    pub fn block_type(&mut self, pfn: Pfn, mt: MigrateType) -> Result<(), RestoreError> {
        let order = self.manager.frames.geometry.block_order;
        let ix = self.manager.map.ix(pfn);
        let ix = ix.ok_or(RestoreError::NotABlock(pfn, order))?;
        self.manager.frames.set_block_type(ix, mt);
        Ok(())
    }

    /// Says that nothing of the pageblock that holds `pfn` is memory: a hole of the zone, which no count of pageblocks
    /// has. Its frames stay reserved.
    ///
    /// # Errors
    /// [`RestoreError::NotABlock`], if no zone holds it, or several do; [`RestoreError::Twice`], if a frame of it is free or
    /// in use. Nothing has changed then.
    pub fn hole(&mut self, pfn: Pfn) -> Result<(), RestoreError> {
        let m = &self.manager;
        let order = m.frames.geometry.block_order;
        let ix = m.map.ix(pfn).filter(|&ix| !m.frames.is_shared(ix));
        let ix = ix.ok_or(RestoreError::NotABlock(pfn, order))?;
        let span = m.zones.get(m.frames.zone_of(ix).index()).map(|z| z.span);
        let span = span.ok_or(RestoreError::NotABlock(pfn, order))?;
        let first = ix.head(order);
        let end = first.plus(order.frames()).min(span.end);
        for at in first.max(span.start).until(end) {
            if m.frames.state(at).kind() != FrameKind::Reserved {
                return Err(RestoreError::Twice(m.map.pfn(at)));
            }
        }
        m.frames.set_hole(ix);
        Ok(())
    }

    fn zone(&mut self, zone: ZoneId) -> Result<&mut Zone, RestoreError> {
        let z = self.manager.zones.get_mut(zone.index());
        z.ok_or(RestoreError::NoSuchList)
    }

    /// A zone's marks and protections as recorded.
    ///
    /// # Errors
    /// [`RestoreError::NoSuchList`], if there is no such zone.
    pub fn marks(
        &mut self,
        zone: ZoneId,
        marks: Marks,
        protection: [u64; NR_ZONE_KINDS],
    ) -> Result<(), RestoreError> {
        let z = self.zone(zone)?;
        (z.marks, z.protection) = (marks, protection);
        self.manager.size_sets(zone);
        Ok(())
    }

    /// A zone's high-atomic reserve in pages, its free counter with which all is counted, and how far a
    /// CPU's delta may grow from now on.
    ///
    /// # Errors
    /// [`RestoreError::NoSuchList`], if there is no such zone.
    pub fn counters(
        &mut self,
        zone: ZoneId,
        highatomic: u64,
        free: i64,
        stat_threshold: u32,
    ) -> Result<(), RestoreError> {
        let z = self.zone(zone)?;
        z.highatomic = highatomic;
        z.counter = free;
        z.stat_threshold = stat_threshold.into();
        for cpu in self.manager.cpu_ids() {
            *self.manager.parts(zone, cpu).1.delta = 0;
        }
        Ok(())
    }

    /// What a zone remembers of compactions, as recorded.
    ///
    /// # Errors
    /// [`RestoreError`], if there is no such zone, or a position is in no zone; nothing has changed then.
    pub fn compaction(&mut self, zone: ZoneId, at: CompactPositions) -> Result<(), RestoreError> {
        let map = &self.manager.map;
        let ix = |pfn| map.ix(pfn).ok_or(RestoreError::NotABlock(pfn, Order::ZERO));
        let migrate = [ix(at.migrate[0])?, ix(at.migrate[1])?];
        let free = ix(at.free)?;
        let z = &mut self.zone(zone)?.compact;
        (z.migrate, z.free) = (migrate, free);
        z.set_deferral(at.considered, at.defer_shift, at.order_failed);
        Ok(())
    }

    /// Whether compaction skips the pageblock that holds a frame.
    ///
    /// # Errors
    /// [`RestoreError::NotABlock`], if no zone holds it.
    pub fn skipped(&mut self, pfn: Pfn, skipped: bool) -> Result<(), RestoreError> {
        let order = self.manager.frames.geometry.block_order;
        let ix = self.manager.map.ix(pfn);
        let ix = ix.ok_or(RestoreError::NotABlock(pfn, order))?;
        self.manager.frames.set_skipped(ix, skipped);
        Ok(())
    }

    /// A CPU's lists of a zone: high, batch and factor as recorded.
    ///
    /// # Errors
    /// [`RestoreError::NoSuchList`], if there is no such zone or CPU.
    pub fn set(&mut self, zone: ZoneId, cpu: CpuId, size: SetSizes) -> Result<(), RestoreError> {
        if cpu.0 >= self.manager.cpus {
            return Err(RestoreError::NoSuchList);
        }
        self.zone(zone)?;
        let (s, _) = self.manager.parts(zone, cpu);
        let SetSizes {
            high,
            batch,
            factor,
        } = size;
        (s.high, s.batch, s.factor) = (high, batch.max(1), factor);
        (s.high_min, s.high_max) = (s.high_min.min(high), s.high_max.max(high));
        Ok(())
    }
}

/// Where a zone's compactions go on, and how long it is put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactPositions {
    /// The migrate scanner: asynchronous runs, others.
    pub migrate: [Pfn; 2],
    /// The free scanner.
    pub free: Pfn,
    /// Requests put off since the last failure.
    pub considered: u32,
    /// It is put off for `2^defer_shift` requests.
    pub defer_shift: u8,
    /// The smallest order that failed.
    pub order_failed: u8,
}

/// How much a CPU's lists hold and move, in pages, as `/proc/zoneinfo` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetSizes {
    /// Pages from which on a free gives back.
    pub high: i32,
    /// Pages moved at a time.
    pub batch: i32,
    /// 6.1's `free_factor` or 6.18's `alloc_factor`.
    pub factor: i32,
}
