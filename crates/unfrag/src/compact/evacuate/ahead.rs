//! Ahead of demand: kcompactd keeps as many huge blocks free as a node was asked for.
//!
//! It begins below what is wanted and ends an eighth above that, so that it does not run for each block. A pass that
//! gained nothing doubles the pause before the next one.

use super::super::control::Control;
use super::super::outcome::Mode;
use crate::frame::{NodeId, Order, ZoneId};
use crate::host::Host;
use crate::kernel::Chooser;
use crate::manager::Manager;

impl<H: Host> Manager<'_, H> {
    /// Whether kcompactd follows demand, rather than a score.
    pub(in super::super) fn follows_demand(&self) -> bool {
        let rules = self.policy.rules.compact;
        let is_on = self.policy.sysctl.compaction_proactiveness > 0;
        is_on && rules.is_some_and(|r| r.chooser == Chooser::Evacuator && r.proactive.is_some())
    }

    /// Counts a request for a block as large as a pageblock or larger.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_huge(&mut self, node: NodeId, order: Order) {
        let block = self.frames.geometry.block_order;
        if order < block || !self.frames.counts_blocks {
            return;
        }
        if let Some(n) = self.node_mut(node) {
            n.huge.note(1 << (order.0 - block.0));
        }
    }

    /// Free blocks of a zone, in pageblocks.
    pub(in super::super) fn huge_free(&self, zone: ZoneId) -> u32 {
        let (block, max) = (
            self.frames.geometry.block_order,
            self.frames.geometry.max_order,
        );
        let free = self.zone(zone).free_area.nr_free();
        let blocks = |o: Order| free[o.index()] << (o.0 - block.0);
        block.up_to(max).map(blocks).sum()
    }

    /// Free blocks of a node, in pageblocks.
    pub(in super::super) fn huge_free_of(&self, node: NodeId) -> u32 {
        let zones = self.node(node).into_iter().flat_map(|n| n.zones());
        zones.map(|z| self.huge_free(z)).sum()
    }

    /// Huge blocks that a node is to have free when a pass ends; 0 if it has as many as are wanted.
    pub(in super::super) fn huge_goal(&self, node: NodeId) -> u32 {
        let Some(n) = self.node(node) else { return 0 };
        let wanted = n.huge.wanted();
        if n.kswapd_awake || self.huge_free_of(node) >= wanted {
            return 0;
        }
        wanted.saturating_add(wanted / 8)
    }

    /// A run over a zone that is to bring its node to `goal` free huge blocks; `None` if these are there.
    pub(in super::super) fn ahead_control(&self, zone: ZoneId, goal: u32) -> Option<Control> {
        let missing = goal.saturating_sub(self.huge_free_of(self.zone(zone).node));
        (missing > 0).then(|| Control {
            goal: Some(self.huge_free(zone) + missing),
            ignores_skips: false,
            ..Control::of_zone(zone, Mode::SyncLight, true)
        })
    }
}
