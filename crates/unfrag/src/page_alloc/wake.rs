//! Waking kswapd. `spec: 4.2, 4.8`

use crate::frame::{NodeId, Order, ZoneKind};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::KswapdForm;
use crate::manager::Manager;
use crate::request::Demand;
use crate::zone::{Zone, ZoneList};

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
        let mut zones = node.zones().map(|z| self.zone(z));
        let top = zones.clone().map(|z| z.kind).max();
        let passes = |z: &Zone, flags| {
            let class = top.unwrap_or(z.kind);
            z.passes(rules, order, z.marks.of(flags), class, flags)
        };
        match rules.kswapd.form {
            KswapdForm::PerNode => {
                zones.clone().all(|z| z.marks.boost == 0)
                    && zones.any(|z| passes(z, AllocFlags::WMARK_HIGH))
            }
            KswapdForm::PerZone { .. } => zones.all(|z| passes(z, AllocFlags::WMARK_LOW)),
        }
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
