//! Rebuilding a recorded state, frame by frame.
//!
//! A manager fresh from [`new`](Manager::new) has all frames reserved. Each call here takes reserved
//! frames and makes them free on a given list, or used. Order of calls is order on the lists.

use super::Manager;
use crate::frame::{Kind, MAX_ORDER, MigrateType, Pfn, State};
use crate::gfp::Gfp;
use crate::host::Host;
use crate::place::End;
use crate::place::lists::At;
use crate::zone::{Marks, NR_ZONE_KINDS};

/// Why a state cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The block is misaligned, too large, or not within one zone.
    NotABlock(Pfn, u8),
    /// A frame of the block was given a state before.
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
            RestoreError::Twice(p) => write!(f, "frame {:#x} is named twice", p.0),
            RestoreError::NoSuchList => f.write_str("there is no such zone, CPU or list"),
        }
    }
}

impl core::error::Error for RestoreError {}

impl<H: Host> Manager<'_, H> {
    /// Takes a block of reserved frames.
    fn claim_reserved(&mut self, pfn: Pfn, order: u8) -> Result<(u32, u8), RestoreError> {
        let bad = RestoreError::NotABlock(pfn, order);
        let ix = self.map.ix(pfn).ok_or(bad)?;
        if order > MAX_ORDER || ix & ((1 << order) - 1) != 0 {
            return Err(bad);
        }
        let zone = self.frames.state(ix).zone();
        let z = self
            .zones
            .get(usize::from(zone))
            .and_then(Option::as_ref)
            .ok_or(bad)?;
        if ix < z.start || ix + (1 << order) > z.end {
            return Err(bad);
        }
        for at in ix..ix + (1 << order) {
            if self.frames.state(at).kind() != Kind::Reserved {
                return Err(RestoreError::Twice(self.map.pfn(at)));
            }
        }
        for at in ix..ix + (1 << order) {
            self.frames
                .set_state(at, State::new(Kind::Tail, 0, MigrateType::Unmovable, zone));
        }
        Ok((ix, zone))
    }

    /// A free block, at the tail of a buddy list; it does not merge.
    pub fn restore_free(
        &mut self,
        pfn: Pfn,
        order: u8,
        mt: MigrateType,
    ) -> Result<(), RestoreError> {
        let (ix, zone) = self.claim_reserved(pfn, order)?;
        if let Some(z) = &mut self.zones[usize::from(zone)] {
            z.place.lists.push(&mut self.frames, ix, order, mt, true);
            z.counter += 1 << order;
        }
        Ok(())
    }

    /// A free block that merges with its free buddies, as if it were freed now.
    pub fn restore_merged(&mut self, pfn: Pfn, order: u8) -> Result<(), RestoreError> {
        let (ix, zone) = self.claim_reserved(pfn, order)?;
        let p = self.parts(zone.into(), 0);
        p.zone.give(p.frames, p.env, p.set, ix, order, At::Tail);
        Ok(())
    }

    /// A block at the tail of a CPU's list `index`; `mt` is the type of its pageblock.
    pub fn restore_pcp(
        &mut self,
        cpu: usize,
        index: usize,
        pfn: Pfn,
        order: u8,
        mt: MigrateType,
    ) -> Result<(), RestoreError> {
        if cpu >= self.cpus || index >= crate::pcp::NR_LISTS {
            return Err(RestoreError::NoSuchList);
        }
        let (ix, zone) = self.claim_reserved(pfn, order)?;
        let p = self.parts(zone.into(), cpu);
        p.frames
            .set_state(ix, State::new(Kind::Pcp, order, mt, zone));
        p.set.lists[index].push_tail(p.frames.meta, ix);
        p.set.first.joined(index, ix, mt, End::Tail);
        p.set.count += 1 << order;
        Ok(())
    }

    /// A block in use, as if `gfp` had asked for it.
    pub fn restore_used(&mut self, pfn: Pfn, order: u8, gfp: Gfp) -> Result<(), RestoreError> {
        let (ix, _) = self.claim_reserved(pfn, order)?;
        let mt = gfp.mobility().unwrap_or(MigrateType::Unmovable);
        self.mark_used(ix, order, mt, gfp.contains(Gfp::MOVABLE));
        Ok(())
    }

    /// Gives the pageblock that holds `pfn` a type, without moving anything.
    pub fn restore_block_type(&mut self, pfn: Pfn, mt: MigrateType) -> Result<(), RestoreError> {
        let ix = self
            .map
            .ix(pfn)
            .ok_or(RestoreError::NotABlock(pfn, self.frames.block_order))?;
        self.frames.set_block_type(ix, mt);
        Ok(())
    }

    /// A zone's marks and protections as recorded.
    pub fn restore_marks(
        &mut self,
        zone: usize,
        marks: Marks,
        protection: [u64; NR_ZONE_KINDS],
    ) -> Result<(), RestoreError> {
        let z = self
            .zones
            .get_mut(zone)
            .and_then(Option::as_mut)
            .ok_or(RestoreError::NoSuchList)?;
        (z.marks, z.protection) = (marks, protection);
        self.size_sets(zone);
        Ok(())
    }

    /// A zone's high-atomic reserve in pages, its free counter with which all is counted, and how far a
    /// CPU's delta may grow from now on.
    pub fn restore_counters(
        &mut self,
        zone: usize,
        highatomic: u64,
        free: i64,
        stat_threshold: u32,
    ) -> Result<(), RestoreError> {
        let z = self
            .zones
            .get_mut(zone)
            .and_then(Option::as_mut)
            .ok_or(RestoreError::NoSuchList)?;
        z.highatomic = highatomic;
        z.counter = free;
        z.stat_threshold = stat_threshold.into();
        for cpu in 0..self.cpus {
            self.sets[cpu * self.nr_zones + zone].delta = 0;
        }
        Ok(())
    }

    /// A CPU's set of a zone: high, batch and factor as recorded.
    pub fn restore_set(
        &mut self,
        zone: usize,
        cpu: usize,
        high: i32,
        batch: i32,
        factor: i32,
    ) -> Result<(), RestoreError> {
        if zone >= self.nr_zones || cpu >= self.cpus {
            return Err(RestoreError::NoSuchList);
        }
        let s = &mut self.sets[cpu * self.nr_zones + zone];
        (s.high, s.batch, s.factor) = (high, batch.max(1), factor);
        (s.high_min, s.high_max) = (s.high_min.min(high), s.high_max.max(high));
        Ok(())
    }

    /// Makes frames in use that begin at `pfn` one block of `order`, whatever blocks they are now:
    /// smaller ones are joined, a larger one around them is cut. They leave their LRU lists. The outside pieces of a cut stay in
    /// use, in the largest blocks that fit.
    pub fn reshape(&mut self, pfn: Pfn, order: u8) -> Result<(), RestoreError> {
        let bad = RestoreError::NotABlock(pfn, order);
        let ix = self.map.ix(pfn).ok_or(bad)?;
        if order > MAX_ORDER || ix & ((1 << order) - 1) != 0 {
            return Err(bad);
        }
        for o in order..=MAX_ORDER {
            let head = ix & !((1 << o) - 1);
            let s = self.frames.state(head);
            if s.kind() != Kind::Used || s.order() != o {
                continue;
            }
            self.lru_del(self.map.pfn(head));
            let at = |order| {
                State::new(Kind::Used, order, s.mt(), s.zone()).with_movable(s.is_movable())
            };
            // Halve the block that holds the frame until it is of the order asked for.
            let (mut lo, mut o) = (head, o);
            while o > order {
                o -= 1;
                let hi = lo + (1 << o);
                let (keep, apart) = if ix >= hi { (hi, lo) } else { (lo, hi) };
                self.frames.set_state(apart, at(o));
                lo = keep;
            }
            self.frames.set_state(ix, at(order));
            return Ok(());
        }
        let mut at = ix;
        while at < ix + (1 << order) {
            let s = self.frames.state(at);
            if s.kind() != Kind::Used || s.order() >= order {
                return Err(bad);
            }
            at += 1 << s.order();
        }
        let s = self.frames.state(ix);
        self.lru_del(pfn);
        for at in ix + 1..ix + (1 << order) {
            self.lru_del(self.map.pfn(at));
            self.frames.set_state(
                at,
                State::new(Kind::Tail, 0, MigrateType::Unmovable, s.zone()),
            );
        }
        let whole = State::new(Kind::Used, order, s.mt(), s.zone()).with_movable(s.is_movable());
        self.frames.set_state(ix, whole);
        Ok(())
    }
}
