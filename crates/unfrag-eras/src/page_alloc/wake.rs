//! Waking kswapd. `spec: 4.2, 4.8`

use crate::frame::{NodeId, Order, ZoneId, ZoneKind};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::KswapdForm;
use crate::manager::Manager;
use crate::request::Demand;
use crate::zone::ZoneList;

impl<H: Host> Manager<'_, H> {
    /// Wakes kswapd of a node for an order, unless the node is balanced (`wakeup_kswapd`). Then a request that may not
    /// reclaim has kcompactd work for it: `compacts_for` is the highest zone that it may use.
    pub(super) fn ask_kswapd(
        &mut self,
        node: NodeId,
        order: Order,
        compacts_for: Option<ZoneKind>,
    ) {
        if self.needs_no_kswapd(node, order) {
            if let Some(highest) = compacts_for {
                self.ask_kcompactd(node, order, highest);
            }
            return;
        }
        if let Some(node) = self.node_mut(node) {
            node.ask_kswapd(order);
        }
        self.counters.kswapd_wakeups += 1;
        self.host.wake_kswapd(node, order);
    }

    fn needs_no_kswapd(&self, node: NodeId, order: Order) -> bool {
        let rules = &self.policy.rules;
        let Some(node) = self.node(node) else {
            return true;
        };
        let mut zones = node.zones();
        let top = zones.clone().map(|z| self.zone(z).kind).max();
        let top = top.unwrap_or(ZoneKind::Movable);
        match rules.kswapd.form {
            KswapdForm::PerNode => {
                zones.clone().all(|z| self.zone(z).marks.boost == 0)
                    && zones.any(|z| self.is_balanced(z, order, top))
            }
            KswapdForm::PerZone { .. } => zones.all(|z| {
                let (z, low) = (self.zone(z), AllocFlags::WMARK_LOW);
                z.passes(rules, order, z.marks.of(low), top, low)
            }),
        }
    }

    /// Whether a zone has what kswapd of a node works for, where the highest zone of the node is `top`. `spec: 2.6, 4.8`
    ///
    /// In defrag mode whole free pageblocks are to pass the high mark. Once kswapd has given up that, and works for single
    /// pages, it is enough that kcompactd can make a pageblock out of what is free: `spec: 4.9` leaves that open, and
    /// without it kswapd would reclaim without end, and kcompactd, which does not begin while it is awake, never compact.
    pub(crate) fn is_balanced(&self, zone: ZoneId, order: Order, top: ZoneKind) -> bool {
        let (z, rules, high) = (self.zone(zone), &self.policy.rules, AllocFlags::WMARK_HIGH);
        if !self.policy.sysctl.defrag_mode {
            return z.passes(rules, order, z.marks.of(high), top, high);
        }
        let geometry = self.frames.geometry;
        z.blocks_pass(rules, geometry, order, top)
            || order == Order::ZERO
                && self.has_room(zone, geometry.block_order, high, top, z.counter)
    }

    /// Wakes kswapd of each node of a list, if the request may wake it (`wake_all_kswapds`).
    pub(super) fn wake_kswapds(&mut self, list: &ZoneList, d: &Demand) {
        // Before 4.x every request that may wait wakes it; here the flag says so for all eras.
        if !d.gfp.contains(Gfp::KSWAPD_RECLAIM) {
            return;
        }
        let order = if self.policy.sysctl.defrag_mode {
            d.order.max(self.frames.geometry.block_order)
        } else {
            d.order
        };
        let waits = d.gfp.contains(Gfp::DIRECT_RECLAIM);
        let compacts_for = (!waits).then_some(d.highest);
        let mut woken = None;
        for z in list.zones() {
            let node = self.zone(z).node;
            if woken != Some(node) {
                woken = Some(node);
                self.ask_kswapd(node, order, compacts_for);
            }
        }
    }
}
