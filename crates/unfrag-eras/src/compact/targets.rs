//! Free blocks that a run has taken, for pages to move to. `spec: 5.1`
//!
//! Invariant: a block that was taken is on one list of [`Targets`], and its frames count as in use.

use crate::frame::{
    CpuId, FrameIx, Frames, MigrateType, ORDER_SLOTS, Order, State, ZoneId, ZoneKind,
};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::kernel::CompactRules;
use crate::lru::ISOLATED_OTHER;
use crate::manager::Manager;
use crate::placement::{End, List};

/// Pages of a batch (`COMPACT_CLUSTER_MAX`), and the longest stride of a free scan.
pub(crate) const CLUSTER: u32 = 32;

/// Free blocks that a run has taken and not used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    lists: [List; ORDER_SLOTS],
    pub pages: u32,
}

impl Targets {
    pub const NONE: Targets = Targets {
        lists: [List::EMPTY; ORDER_SLOTS],
        pages: 0,
    };

    /// Takes a block of `order`: one of that order, or a piece of a larger one.
    pub fn pop(&mut self, frames: &Frames, order: Order) -> Option<FrameIx> {
        let mut from = order.up_to(frames.geometry.max_order);
        let found = from.find(|o| !self.lists[o.index()].is_empty())?;
        let ix = self.lists[found.index()].pop_head(frames.table)?;
        self.pages -= order.frames();
        let mut rest = found;
        while rest > order {
            rest.0 -= 1;
            let upper = ix.plus(rest.frames());
            frames.set_state(upper, held(rest));
            self.lists[rest.index()].push_head(frames.table, upper);
        }
        frames.set_state(ix, held(order));
        Some(ix)
    }

    /// Puts a block back, as the next to be used.
    pub fn push(&mut self, frames: &Frames, ix: FrameIx, order: Order, end: End) {
        frames.set_state(ix, held(order));
        self.lists[order.index()].push(frames.table, ix, end);
        self.pages += order.frames();
    }

    /// The next of the blocks that were not used, to be freed.
    pub fn take_any(&mut self, frames: &Frames) -> Option<(FrameIx, Order)> {
        let mut orders = Order::ZERO.up_to(frames.geometry.max_order);
        let (ix, order) = orders.find_map(|o| {
            let ix = self.lists[o.index()].pop_head(frames.table)?;
            Some((ix, o))
        })?;
        self.pages -= order.frames();
        Some((ix, order))
    }
}

/// The state of a block that a run has taken.
pub(super) fn held(order: Order) -> State {
    State::used(order, MigrateType::Movable, false).with_lru(ISOLATED_OTHER)
}

/// Whether a free block may be taken: enough stays free (`__isolate_free_page`).
pub(crate) fn has_room<H: Host>(m: &Manager<'_, H>, zone: ZoneId, order: Order) -> bool {
    let z = m.zone(zone);
    let mark = z.marks.of(AllocFlags::empty()) + u64::from(order.frames());
    z.passes(
        &m.policy.rules,
        Order::ZERO,
        mark,
        ZoneKind::Dma,
        AllocFlags::CMA,
    )
}

/// Takes the free block at `ix`: cut to single pages, highest first, or as a whole.
pub(super) fn take_block<H: Host>(
    m: &mut Manager<'_, H>,
    (zone, rules): (ZoneId, &CompactRules),
    cpu: CpuId,
    ix: FrameIx,
    targets: &mut Targets,
) -> Order {
    let (_, mut z) = m.parts(zone, cpu);
    let order = z.isolate(ix);
    if rules.targets_by_order {
        targets.push(&m.frames, ix, order, End::Tail);
    } else {
        for at in ix.until(ix.plus(order.frames())) {
            targets.push(&m.frames, at, Order::ZERO, End::Head);
        }
    }
    order
}
