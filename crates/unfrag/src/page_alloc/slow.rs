//! When the first attempt fails: wake kswapd, go to the min mark, use the reserves that the caller
//! has a right to.
//!
//! The steps are those of the kernel with nothing reclaimable; with reclaim they are those of
//! [`Attempt`](super::Attempt).
//! `spec: linux-mm 1.4, 4.3, 4.8; linux-6.1 1.4`

use super::fast::Request;
use super::zonelist::ZoneList;
use super::{AllocError, Manager};
use crate::frame::{COSTLY_ORDER, Ix};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{BoostRecheck, KswapdForm, LeavesCpuset, Reserve, Rules};
use crate::zone::Zone;

/// The rights of a request in the slow path (`gfp_to_alloc_flags`). `spec: linux-mm 1.4`
pub(crate) fn alloc_flags(gfp: Gfp, order: u8, sw: &Rules) -> AllocFlags {
    let mut f = AllocFlags::CPUSET;
    if gfp.contains(Gfp::HIGH) {
        f |= AllocFlags::MIN_RESERVE;
    }
    if gfp.contains(Gfp::KSWAPD_RECLAIM) {
        f |= AllocFlags::KSWAPD;
    }
    if let Some(boost) = sw.boost()
        && gfp.contains(match boost.recheck {
            BoostRecheck::AtomicBit => Gfp::ATOMIC,
            BoostRecheck::High => Gfp::HIGH,
        })
    {
        f |= AllocFlags::UNBOOSTED_RECHECK;
    }
    if gfp.contains(Gfp::DIRECT_RECLAIM) {
        return f;
    }
    let high = gfp.contains(Gfp::HIGH);
    if !(sw.rights.nomemalloc_forbids && gfp.contains(Gfp::NOMEMALLOC)) {
        f |= AllocFlags::NON_BLOCK;
        if order > 0 && high && matches!(sw.reserve(), Reserve::HighAtomic(_)) {
            f |= AllocFlags::HIGHATOMIC;
        }
    }
    if high || sw.rights.leaves_cpuset == LeavesCpuset::AllThatCannotWait {
        f -= AllocFlags::CPUSET;
    }
    f
}

impl<H: Host> Manager<'_, H> {
    #[cold]
    pub(super) fn slow_path(&mut self, r: &Request) -> Result<Ix, AllocError> {
        let list = self.zonelists.of(r);
        if list.zones().is_empty() {
            return Err(AllocError::NoZone);
        }
        self.counters.slow_path += 1;
        self.wake_kswapds(&list, r);
        let mut flags = alloc_flags(r.gfp, r.order, &self.env.sw);
        if self.env.sysctl.defrag_mode {
            flags |= AllocFlags::NOFRAGMENT;
        }
        self.get_page(&list, r, flags)
            .or_else(|| self.reserves(&list, r, flags))
            .or_else(|| self.last_resort(&list, r, flags))
            .ok_or(AllocError::NoMemory)
    }

    /// kswapd of a node should run for an order, unless there is enough for it. `spec: linux-mm 4.2, 4.8`
    pub(super) fn ask_kswapd(&mut self, node: u8, order: u8) {
        if self.needs_no_kswapd(node, order) {
            return;
        }
        let first = self.nodes_zones(node).next();
        if let Some(first) = first {
            let w = &mut self.kswapd[first];
            (w.order, w.asked) = (if w.asked { w.order.max(order) } else { order }, true);
        }
        self.counters.kswapd_wakeups += 1;
        self.host.wake_kswapd(node, order);
    }

    /// The zones of a node that have pages, low to high.
    pub(crate) fn nodes_zones(&self, node: u8) -> impl Iterator<Item = usize> + Clone {
        (0..self.nr_zones).filter(move |&z| {
            let c = &self.zone(z).config;
            c.node == node && c.managed > 0
        })
    }

    fn needs_no_kswapd(&self, node: u8, order: u8) -> bool {
        let sw = &self.env.sw;
        let mut zones = self.nodes_zones(node).map(|z| self.zone(z));
        let top = zones.clone().map(|z| z.config.kind).max();
        let passes = |z: &Zone, flags| {
            let class = top.unwrap_or(z.config.kind);
            z.passes(sw, order, z.marks.of(flags), class, flags)
        };
        match sw.kswapd.form {
            KswapdForm::PerNode => {
                zones.clone().all(|z| z.marks.boost == 0)
                    && zones.any(|z| passes(z, AllocFlags::WMARK_HIGH))
            }
            KswapdForm::PerZone { .. } => zones.all(|z| passes(z, AllocFlags::WMARK_LOW)),
        }
    }

    pub(super) fn wake_kswapds(&mut self, list: &ZoneList, r: &Request) {
        // Before 4.x every request that may wait woke it; the flag is the modern spelling.
        if !r.gfp.contains(Gfp::KSWAPD_RECLAIM) {
            return;
        }
        let order = if self.env.sysctl.defrag_mode {
            r.order.max(self.frames.block_order)
        } else {
            r.order
        };
        let mut woken = None;
        for &z in list.zones() {
            let node = self.zone(z.into()).config.node;
            if woken != Some(node) {
                woken = Some(node);
                self.ask_kswapd(node, order);
            }
        }
    }

    /// Those that reclaim memory themselves ignore the marks.
    pub(super) fn reserves(
        &mut self,
        list: &ZoneList,
        r: &Request,
        flags: AllocFlags,
    ) -> Option<Ix> {
        let memalloc = r.gfp.contains(Gfp::MEMALLOC) && !r.gfp.contains(Gfp::NOMEMALLOC);
        memalloc.then(|| self.get_page(list, r, flags | AllocFlags::NO_WATERMARKS))?
    }

    /// Nothing can be reclaimed: what remains is to give up reserves and types, for those that do
    /// not give up early. `spec: linux-mm 4.7, 4.8`
    fn last_resort(&mut self, list: &ZoneList, r: &Request, flags: AllocFlags) -> Option<Ix> {
        if !r.gfp.contains(Gfp::DIRECT_RECLAIM) {
            return None;
        }
        let persists = !r.gfp.contains(Gfp::NORETRY)
            && (r.order <= COSTLY_ORDER || r.gfp.contains(Gfp::RETRY_MAYFAIL));
        if persists && let Some(ix) = self.persist(list, r, flags) {
            return Some(ix);
        }
        if r.gfp.contains(Gfp::NOFAIL) {
            let all = AllocFlags::MIN_RESERVE | AllocFlags::NON_BLOCK;
            return self.get_page_mixed(list, r, flags | all);
        }
        None
    }

    fn persist(&mut self, list: &ZoneList, r: &Request, flags: AllocFlags) -> Option<Ix> {
        while self.unreserve(list, r, true) {
            if let Some(ix) = self.get_page(list, r, flags) {
                return Some(ix);
            }
        }
        if flags.contains(AllocFlags::NOFRAGMENT)
            && let Some(ix) = self.get_page_mixed(list, r, flags)
        {
            return Some(ix);
        }
        // The OOM routine looks once more, at the high mark, before it would kill.
        self.get_page(list, r, AllocFlags::WMARK_HIGH | AllocFlags::CPUSET)
    }

    /// Gives one pageblock of the first high-atomic reserve back to the request's type; even the
    /// last one, if `last`.
    pub(super) fn unreserve(&mut self, list: &ZoneList, r: &Request, last: bool) -> bool {
        let (sw, frames, zones) = (&self.env.sw, &mut self.frames, &mut self.zones);
        list.zones().iter().any(|&z| {
            let zone = zones[usize::from(z)].as_mut();
            zone.is_some_and(|z| z.unreserve_highatomic(frames, sw, r.mt, last))
        })
    }

    /// A pass without the wish to keep types apart.
    pub(super) fn get_page_mixed(
        &mut self,
        list: &ZoneList,
        r: &Request,
        flags: AllocFlags,
    ) -> Option<Ix> {
        let defrag = core::mem::replace(&mut self.env.sysctl.defrag_mode, false);
        let got = self.get_page(list, r, flags - AllocFlags::NOFRAGMENT);
        self.env.sysctl.defrag_mode = defrag;
        got
    }
}
