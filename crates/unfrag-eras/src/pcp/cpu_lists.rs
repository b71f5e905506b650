//! The per-CPU lists of one zone.
//!
//! Invariant: `count` is the number of base pages on all lists; every block on a list has
//! `FrameKind::Pcp` and, as its type, the type of the buddy list it will return to.
//! `spec: 3`

use super::searched::{SearchStart, is_searched};
use crate::frame::{FrameIx, FrameKind, Frames, MigrateType, Order, State};
use crate::host::Host;
use crate::kernel::{Pcp, Rules};
use crate::placement::{BadLink, BlockRequest, End, FreeBlock, FreeTo, List};
use crate::policy::Policy;
use crate::trace::Event;
use crate::zone::{Zone, ZoneOps};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Number of list heads of a set.
pub const NR_LISTS: usize = 14;

/// List of an order and a type where lists hold several orders. Types have their Linux numbers: 0
/// unmovable, 1 movable, 2 reclaimable; of huge pages, the only larger blocks on these lists, there is
/// one list for movable ones and one for all others.
#[inline]
pub const fn list_index(order: Order, mt: MigrateType) -> usize {
    if order.0 > Order::COSTLY.0 {
        return 12 + (mt as usize == MigrateType::Movable as usize) as usize;
    }
    order.index() * 3 + mt as usize
}

/// The lists and the counter of one CPU for one zone. They fill whole cache lines, so that two CPUs share
/// none.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct CpuZone {
    pub lists: CpuLists,
    /// The CPU's part of the zone's count of free pages.
    pub delta: i32,
    pad: [u32; 7],
}

const _: () = assert!(size_of::<CpuZone>().is_multiple_of(64), "whole cache lines");

impl CpuZone {
    pub fn new() -> CpuZone {
        CpuZone {
            lists: CpuLists::new(),
            delta: 0,
            pad: [0; 7],
        }
    }
}

/// The lists of one CPU for one zone.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct CpuLists {
    pub(super) lists: [List; NR_LISTS],
    /// Where searches of lists with several types begin.
    pub(super) search_start: SearchStart,
    /// Base pages on all lists.
    pub count: i32,
    /// Number of pages from which on a free gives pages back.
    pub high: i32,
    pub high_min: i32,
    pub high_max: i32,
    /// Pages moved at a time.
    pub batch: i32,
    /// 6.1's `free_factor`, 6.18's `alloc_factor`.
    pub factor: i32,
    /// Pages freed recently (`free_count`, 6.18).
    pub(super) free_count: i32,
    /// The previous free was of order 1 to 3 (6.18).
    pub(super) prev_free_high: i32,
}

/// The state of a zone that makes a free keep the per-CPU lists small.
#[derive(Clone, Copy)]
pub(crate) struct ZonePressure {
    pub reclaim_active: bool,
    pub below_high: bool,
}

impl ZonePressure {
    #[inline]
    pub fn of(zone: &Zone) -> ZonePressure {
        ZonePressure {
            reclaim_active: zone.reclaim_active,
            below_high: zone.below_high,
        }
    }
}

/// A freed block that joined a list, and how many base pages that list is to give back now.
#[derive(Clone, Copy)]
pub(crate) struct Freed {
    pub list: usize,
    pub surplus: i32,
}

impl CpuLists {
    fn new() -> CpuLists {
        CpuLists {
            lists: [List::EMPTY; NR_LISTS],
            search_start: SearchStart::EMPTY,
            batch: 1,
            count: 0,
            high: 0,
            high_min: 0,
            high_max: 0,
            factor: 0,
            free_count: 0,
            prev_free_high: 0,
        }
    }

    /// Takes a block from its list, if that has one: [`take`](Self::take) without a refill.
    #[inline(always)]
    pub fn pop(
        &mut self,
        frames: &Frames,
        rules: &Rules,
        order: Order,
        mt: MigrateType,
    ) -> Option<FrameIx> {
        match rules.pcp {
            Pcp::Orders { tuned } => self.orders_pop(frames, order, mt, tuned.is_some()),
            _ => self.single_pop(frames, rules, mt),
        }
    }

    /// Takes a block of `request.order` for `request.mt`, from the zone where the list has none. `demand`: the
    /// allocation counts as demand for the list (all but bulk allocations). `spec: 10`
    #[inline]
    pub fn take<H: Host>(
        &mut self,
        z: &mut ZoneOps<H>,
        request: BlockRequest,
        demand: bool,
    ) -> Option<FrameIx> {
        match z.policy.rules.pcp {
            Pcp::Orders { tuned, .. } => {
                if demand {
                    self.note_demand(tuned.is_some());
                }
                self.orders_take(z, request)
            }
            _ => self.single_take(z, request),
        }
    }

    /// Puts a freed block on its list. `mt` is the type of its pageblock.
    #[inline(always)]
    pub fn put_freed(
        &mut self,
        frames: &Frames,
        rules: &Rules,
        block: FreeBlock,
        pressure: ZonePressure,
    ) -> Freed {
        match rules.pcp {
            Pcp::Orders { tuned, .. } => self.orders_put(frames, tuned, block, pressure),
            _ => self.single_put(frames, rules, block),
        }
    }

    /// Gives the surplus that [`put_freed`](Self::put_freed) found back to the zone.
    #[inline(never)]
    pub fn give_surplus<H: Host>(&mut self, z: &mut ZoneOps<H>, freed: Freed) {
        self.release(z, freed.surplus, freed.list);
        if z.policy.rules.pcp.is_tuned() && z.zone.below_high && z.above_high() {
            z.zone.below_high = false;
        }
    }

    /// Gives everything back to the zone.
    pub fn drain<H: Host>(&mut self, z: &mut ZoneOps<H>) {
        self.release(z, self.count, 0);
    }

    /// Gives `n` base pages back to the zone, beginning with list `first`.
    pub(super) fn release<H: Host>(&mut self, z: &mut ZoneOps<H>, n: i32, first: usize) {
        match z.policy.rules.pcp {
            Pcp::Orders { .. } => self.orders_release(z, n, first),
            _ => self.single_release(z, n, first),
        }
    }

    /// Returns a block that is off its list to the zone's lists.
    #[inline(always)]
    pub(super) fn give_back<H: Host>(
        &mut self,
        z: &mut ZoneOps<H>,
        ix: FrameIx,
        order: Order,
        mt: MigrateType,
    ) {
        z.frames.set_state(ix, State::TAIL);
        z.tracer.emit(|m| Event::PagePcpuDrain {
            pfn: m.pfn(ix),
            order,
            migratetype: mt,
        });
        if z.is_sourced() {
            return z.give(ix, order, FreeTo::ByRules);
        }
        let block = FreeBlock { ix, order, mt };
        z.zone
            .free_area
            .give(z.frames, &z.policy.rules, block, FreeTo::ByRules);
        z.count(order.frames().into());
    }

    /// Puts a block on list `i`.
    #[inline(always)]
    pub(super) fn link(&mut self, frames: &Frames, i: usize, block: FreeBlock, end: End) {
        let FreeBlock { ix, order, mt } = block;
        frames.set_state(ix, State::new(FrameKind::Pcp, order, mt));
        self.lists[i].push(frames.table, ix, end);
        self.count += order.frames() as i32;
    }

    /// Puts a block of a recorded state at the tail of list `i`.
    pub fn restore(&mut self, frames: &Frames, i: usize, block: FreeBlock) {
        self.link(frames, i, block, End::Tail);
        self.search_start.joined(i, block.ix, block.mt, End::Tail);
    }

    /// The blocks on list `i`, from its head.
    pub fn iter<'a>(
        &self,
        frames: &'a Frames,
        i: usize,
    ) -> impl Iterator<Item = FrameIx> + use<'a> {
        self.lists[i].iter(frames.table)
    }

    /// Checks the lists; `visit` is asked about each block. `None`: a count is wrong.
    pub fn validate<E: From<BadLink>>(
        &self,
        frames: &Frames,
        policy: &Policy,
        mut visit: impl FnMut(FrameIx) -> Result<(), E>,
    ) -> Result<Option<()>, E> {
        let mut count = 0;
        for list in &self.lists {
            list.validate(frames.table, |ix| {
                count += frames.state(ix).order().frames() as i32;
                visit(ix)
            })?;
        }
        let right = count == self.count
            && (!is_searched(policy.rules.pcp) || self.search_starts_hold(frames));
        Ok(right.then_some(()))
    }
}
