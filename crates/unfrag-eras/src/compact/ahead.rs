//! Ahead of demand: kcompactd keeps as many huge blocks free as a node was asked for.
//!
//! It begins below what is wanted and ends an eighth above that, so that it does not run for each block. A pass that
//! gained nothing doubles the pause before the next one.

use super::control::{Control, Goal};
use super::outcome::Mode;
use crate::frame::{NodeId, Order, ZoneId, ZoneKind};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::manager::Manager;

impl<H: Host> Manager<'_, H> {
    /// Whether kcompactd follows demand, rather than a score.
    pub(super) fn follows_demand(&self) -> bool {
        let rules = &self.policy.rules;
        let is_on = self.policy.sysctl.compaction_proactiveness > 0;
        is_on && rules.is_sourced() && rules.compact.is_some_and(|r| r.proactive.is_some())
    }

    /// Counts a request for a block as large as a pageblock or larger.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_huge(&mut self, node: NodeId, order: Order) {
        let block = self.frames.geometry.block_order;
        if order < block || !self.policy.rules.is_sourced() {
            return;
        }
        if let Some(n) = self.node_mut(node) {
            n.huge.note(order, 1 << (order.0 - block.0));
        }
    }

    /// Pageblocks of a zone in free blocks of at least `order`, which is that of a pageblock or larger.
    fn huge_free(&self, zone: ZoneId, order: Order) -> u32 {
        let (block, max) = (
            self.frames.geometry.block_order,
            self.frames.geometry.max_order,
        );
        let free = self.zone(zone).free_area.nr_free();
        let blocks = |o: Order| free[o.index()] << (o.0 - block.0);
        order.up_to(max).map(blocks).sum()
    }

    /// Frames of a zone that movable requests may have: those beyond the low mark and beyond what the zone keeps for
    /// requests that need it (`lowmem_reserve`).
    fn movable_room(&self, zone: ZoneId) -> u64 {
        let z = self.zone(zone);
        let kept = z.marks.of(AllocFlags::WMARK_LOW) + z.protection[ZoneKind::Movable as usize];
        u64::try_from(z.counter).unwrap_or(0).saturating_sub(kept)
    }

    /// Pageblocks of a node in free blocks of at least `order` that movable requests may have.
    fn usable_huge(&self, node: NodeId, order: Order) -> u32 {
        let block = self.frames.geometry.block_order;
        let of = |z: ZoneId| {
            let room = self.movable_room(z) >> block.0;
            self.huge_free(z, order).min(room as u32)
        };
        let zones = self.node(node).into_iter().flat_map(|n| n.zones());
        zones.map(of).sum()
    }

    /// What a node is to have free when a pass ends, if it has less than is wanted.
    pub(super) fn huge_goal(&self, node: NodeId) -> Option<Goal> {
        let n = self.node(node)?;
        let (wanted, order) = (n.huge.wanted(), n.huge.order());
        if wanted == 0 || n.kswapd_awake || self.usable_huge(node, order) >= wanted {
            return None;
        }
        let blocks = wanted.saturating_add(wanted / 8);
        Some(Goal { order, blocks })
    }

    /// A run over a zone that is to bring its node to `goal`; `None` if it is there.
    pub(super) fn ahead_control(&self, zone: ZoneId, goal: Goal) -> Option<Control> {
        let Goal { order, blocks } = goal;
        if self.movable_room(zone) == 0 {
            return None;
        }
        let has = self.usable_huge(self.zone(zone).node, order);
        let missing = blocks.saturating_sub(has);
        let goal = Goal {
            order,
            blocks: self.huge_free(zone, order) + missing,
        };
        (missing > 0).then(|| Control {
            goal: Some(goal),
            ignores_skips: false,
            ..Control::of_zone(zone, Mode::SyncLight, true)
        })
    }
}
