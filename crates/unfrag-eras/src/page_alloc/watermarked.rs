//! Passes over the zones with watermark checks, and the reason why no zone served a request.
//! `spec: 1.4-1.6, 2.6`

use crate::frame::{FrameIx, Order, ZoneId};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{Boost, BoostWakes, Reserve};
use crate::manager::Manager;
use crate::placement::{BlockRequest, RmqueueMode};
use crate::request::{AllocError, Demand};
use crate::rights::alloc_flags;
use crate::zone::ZoneList;

impl<H: Host> Manager<'_, H> {
    /// The zones that may serve a request, best first.
    #[inline]
    pub(crate) fn zone_list(&self, d: &Demand) -> ZoneList {
        let list = *self.zonelists.of(d.node, d.highest);
        if d.gfp.contains(Gfp::THISNODE) {
            list.local()
        } else {
            list
        }
    }

    /// One pass over the zones (`get_page_from_freelist`). With `defrag_mode`, the slow path decides when
    /// types may mix.
    #[inline]
    pub(super) fn get_page(
        &mut self,
        list: &ZoneList,
        d: &Demand,
        flags: AllocFlags,
    ) -> Option<FrameIx> {
        let unmixed = flags.contains(AllocFlags::NOFRAGMENT);
        if unmixed && !self.policy.sysctl.defrag_mode {
            // Types mix before another node is used, and before the request fails.
            let near = usize::from(list.near);
            return self
                .pass(list, near, d, flags)
                .or_else(|| self.get_page_mixed(list, d, flags));
        }
        self.pass(list, usize::MAX, d, flags)
    }

    /// A pass without [`AllocFlags::NOFRAGMENT`].
    pub(super) fn get_page_mixed(
        &mut self,
        list: &ZoneList,
        d: &Demand,
        flags: AllocFlags,
    ) -> Option<FrameIx> {
        self.pass(list, usize::MAX, d, flags - AllocFlags::NOFRAGMENT)
    }

    /// One pass over the first zones of a list.
    #[inline]
    fn pass(
        &mut self,
        list: &ZoneList,
        first: usize,
        d: &Demand,
        flags: AllocFlags,
    ) -> Option<FrameIx> {
        let mut zones = list.zones().take(first);
        zones.find_map(|z| self.try_zone(z, d, flags))
    }

    /// Whether a zone passes the check of a request with `extra` pages added to the mark.
    #[inline]
    pub(super) fn zone_passes(
        &mut self,
        zone: ZoneId,
        d: &Demand,
        flags: AllocFlags,
        extra: u64,
    ) -> bool {
        let rules = &self.policy.rules;
        let zone = &mut self.zones[zone.index()];
        if !zone.below_high && extra == 0 && rules.pcp.is_tuned() {
            let high = zone.marks.of(AllocFlags::WMARK_HIGH);
            if zone.passes(rules, d.order, high, d.highest, flags) {
                return true;
            }
            zone.below_high = true;
        }
        let mark = zone.marks.of(flags) + extra;
        flags.contains(AllocFlags::NO_WATERMARKS)
            || zone.passes(rules, d.order, mark, d.highest, flags)
    }

    fn try_zone(&mut self, zone: ZoneId, d: &Demand, flags: AllocFlags) -> Option<FrameIx> {
        if !self.zone_passes(zone, d, flags, 0) {
            return None;
        }
        let ix = self.take_from_zone(zone, d, flags)?;
        if d.order > self.policy.rules.reserves_above()
            && flags.contains(AllocFlags::HIGHATOMIC)
            && let Reserve::HighAtomic(rule) = self.policy.rules.reserve()
        {
            let zone = &mut self.zones[zone.index()];
            zone.reserve_highatomic(&self.frames, &self.policy.rules, rule, ix);
        }
        Some(ix)
    }

    /// Takes a block from a zone (`rmqueue`): the CPU's list if it serves the order, else the buddy
    /// lists.
    #[inline]
    pub(crate) fn take_from_zone(
        &mut self,
        zone: ZoneId,
        d: &Demand,
        flags: AllocFlags,
    ) -> Option<FrameIx> {
        let order = d.order;
        let wanted = BlockRequest {
            order,
            mt: d.mt,
            nofragment: flags.contains(AllocFlags::NOFRAGMENT),
            wake: flags.contains(AllocFlags::KSWAPD),
        };
        let (set, mut z) = self.parts(zone, d.cpu);
        let mut got = None;
        if z.policy
            .rules
            .pcp
            .serves(order, z.frames.geometry.huge_order)
        {
            got = set.take(&mut z, wanted, true);
        }
        if got.is_none() {
            if order > Order::ZERO && flags.contains(AllocFlags::HIGHATOMIC) {
                got = z.take_highatomic(order);
            }
            if got.is_none() {
                got = z
                    .take(wanted, &mut RmqueueMode::default())
                    .map(|(ix, _)| ix);
            }
            if got.is_none() && flags.intersects(AllocFlags::OOM | AllocFlags::NON_BLOCK) {
                got = z.take_highatomic(order);
            }
            if got.is_some() {
                z.count(-i64::from(order.frames()));
            }
        }
        // The next request after a boost wakes kswapd; since 6.3 only if it may wake it.
        let wakes = |b: Boost| b.wakes == BoostWakes::AnyRequest;
        if z.zone.boosted && (wanted.wake || z.policy.rules.boost().is_some_and(wakes)) {
            z.zone.boosted = false;
            let node = z.zone.node;
            self.ask_kswapd(node, Order::ZERO, None);
        }
        got
    }

    /// Why no zone served a request.
    pub(super) fn failure_reason(&self, d: &Demand) -> AllocError {
        let list = self.zone_list(d);
        if list.is_empty() {
            return AllocError::Forbidden;
        }
        let rules = &self.policy.rules;
        let flags = alloc_flags(d.gfp, d.order, rules);
        let mut why = AllocError::Short;
        for zone in list.zones().map(|id| self.zone(id)) {
            // As many single pages are free above the mark.
            let mark = zone.marks.of(flags) + u64::from(d.order.frames()) - 1;
            if zone.passes(rules, Order::ZERO, mark, d.highest, flags) {
                return AllocError::Fragmented;
            }
            // A block is free, but below the mark.
            let blocks = &zone.free_area.nr_free()[d.order.index()..];
            let block = blocks.iter().any(|&n| n > 0);
            if block {
                why = AllocError::Reserved;
            }
        }
        why
    }
}
