//! The fast searches: sources and targets are first looked for on the free lists of movable pages. `spec: 5.1`
//!
//! A free block of middle size low in the zone marks a pageblock that is nearly empty: a good source. One high in the
//! zone is a target that a sweep would reach late.

use super::control::Control;
use super::targets::{CLUSTER, Targets, has_room, take_block};
use crate::frame::{CpuId, FrameIx, MigrateType, Order};
use crate::host::Host;
use crate::kernel::CompactRules;
use crate::manager::Manager;

/// Both searches of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// Searches in vain, one after the other: each halves the next ones.
    fails: u32,
    /// The order at which the next search for targets begins.
    order: Option<Order>,
    /// The lowest block that a search for sources found and left behind.
    lowest: Option<FrameIx>,
}

/// What a search for targets brought.
pub(super) enum Found {
    /// Blocks, or none but a place: the rest of its pageblock is to be swept.
    Near(FrameIx),
    /// Blocks, enough of them.
    Enough,
    /// Nothing.
    Nothing,
}

impl Search {
    pub const NEW: Search = Search {
        fails: 0,
        order: None,
        lowest: None,
    };

    /// Entries of free lists that a search looks at.
    fn limit(&self) -> u32 {
        (CLUSTER >> self.fails.min(31)) + 1
    }

    /// A pageblock from which pages should be taken next, before the scanner goes on at `migrate`. Its lowest frame.
    pub fn source<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        c: &Control,
        (migrate, free): (FrameIx, FrameIx),
    ) -> Option<FrameIx> {
        let block_order = m.frames.geometry.block_order;
        let start = m.zone(c.zone).span.start;
        let order = c.order.filter(|&o| o > Order::COSTLY)?;
        let is_inside = migrate != start && !migrate.is_aligned(block_order);
        if c.ignores_skips || is_inside || c.direct && c.mt != MigrateType::Movable {
            return None;
        }
        let gap = (free.0 - migrate.0) >> if migrate == start { 1 } else { 3 };
        let high = migrate.plus(gap).head(block_order);
        let limit = self.limit();
        let mut looked = 0;
        for o in Order::COSTLY.up_to(order.below()?).rev() {
            if looked >= limit {
                break;
            }
            let list = *m.zone(c.zone).free_area.list(o, MigrateType::Movable);
            let mut found = None;
            let mut last = None;
            for ix in list.iter(m.frames.table) {
                looked += 1;
                last = Some(ix);
                if looked > limit {
                    break;
                }
                if ix < high && !m.frames.is_skipped(ix) {
                    found = Some(ix);
                    break;
                }
            }
            let rotate = found.or(last.filter(|_| looked > limit));
            if let Some(ix) = rotate {
                let area = &mut m.zones[c.zone.index()].free_area;
                area.rotate_behind(&m.frames, ix);
            }
            if let Some(ix) = found {
                self.fails = 0;
                m.frames.set_skipped(ix, true);
                self.lowest = Some(self.lowest.map_or(ix, |l| l.min(ix)).head(block_order));
                return Some(ix.head(block_order).max(start));
            }
        }
        self.fails += 1;
        // The scanner goes back to the lowest block that was found, so that none is left out.
        self.lowest.take().map(|ix| ix.max(start))
    }

    /// Takes free blocks high in the zone: above a quarter of the way down from `free` to `migrate`, or else above
    /// half of it.
    pub fn targets<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        (c, rules): (&Control, &CompactRules),
        cpu: CpuId,
        (wanted, migrate): (u32, FrameIx),
        (free, targets): (&mut FrameIx, &mut Targets),
    ) -> Found {
        let block_order = m.frames.geometry.block_order;
        let Some(largest) = c.order.and_then(Order::below) else {
            return Found::Nothing;
        };
        let begins = *free >= m.zone(c.zone).compact.first_free;
        let mut limit = if begins {
            block_order.frames() / 2
        } else {
            (self.limit() / 2).max(1)
        };
        let gap = free.0 - migrate.0.min(free.0);
        let low = FrameIx(free.0 - gap / 4).head(block_order);
        let min = FrameIx(free.0 - gap / 2).head(block_order);
        let first = self.order.unwrap_or(largest).min(largest);
        let mut order = first;
        let (mut place, mut highest) = (None, None);
        loop {
            let list = *m.zone(c.zone).free_area.list(order, MigrateType::Movable);
            let (mut looked, mut best, mut last) = (0, None, None);
            let mut taken = None;
            for ix in list.iter_back(m.frames.table) {
                looked += 1;
                last = Some(ix);
                highest = highest.max(Some(ix.head(block_order)));
                if ix >= low {
                    taken = Some(ix);
                    self.order = Some(order);
                    break;
                }
                if ix >= min && Some(ix) > best {
                    best = Some(ix);
                    limit /= 2;
                }
                if looked >= limit {
                    break;
                }
            }
            let taken = taken.or(best);
            if let Some(ix) = last {
                let area = &mut m.zones[c.zone.index()].free_area;
                area.rotate_to(&m.frames, ix);
            }
            if let Some(ix) = taken {
                self.fails = 0;
                if has_room(m, c.zone, order) {
                    take_block(m, (c.zone, rules), cpu, ix, targets);
                    m.compact_counters.compact_isolated += u64::from(order.frames());
                    place = Some(ix);
                }
            }
            if targets.pages >= wanted || place.is_some() {
                break;
            }
            if looked >= limit {
                limit = (limit / 2).max(1);
            }
            order = order.below().unwrap_or(largest);
            if order == first {
                let next = self.order.unwrap_or(largest).below();
                self.order = Some(next.unwrap_or(largest));
                break;
            }
        }
        if place.is_none() {
            self.fails += 1;
            if begins {
                // The highest place seen; a request that waits takes the middle instead of none.
                place = highest.filter(|&h| h >= min).or(c.direct.then_some(min));
                if let Some(ix) = place {
                    *free = ix;
                }
            }
        }
        if let Some(h) = highest {
            let z = &mut m.zones[c.zone.index()];
            if h >= z.compact.free {
                z.compact.free = FrameIx(h.0.saturating_sub(block_order.frames()));
            }
        }
        match place {
            _ if targets.pages >= wanted => Found::Enough,
            Some(_) if c.direct && c.mode.is_async() && targets.pages > 0 => Found::Enough,
            Some(_) if c.direct && c.mode.is_async() => Found::Nothing,
            Some(ix) => Found::Near(ix.head(block_order)),
            None => Found::Nothing,
        }
    }
}
