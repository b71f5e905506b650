//! When the first attempt fails: wake kswapd, go to the min mark, use the reserves that the caller
//! has a right to.
//!
//! The steps are those of the kernel with nothing reclaimable: reclaim and compaction will stand
//! between [`reserves`](Manager::reserves) and [`last_resort`](Manager::last_resort).
//! `spec: linux-mm 1.4, 4.3, 4.8; linux-6.1 1.4`

use super::fast::Request;
use super::{AllocError, Manager};
use crate::frame::{COSTLY_ORDER, Ix};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{MarkCheck, Reserve, Switches};

/// The rights of a request in the slow path (`gfp_to_alloc_flags`). `spec: linux-mm 1.4`
pub(crate) fn alloc_flags(gfp: Gfp, order: u8, sw: &Switches) -> AllocFlags {
    let mut f = AllocFlags::CPUSET;
    if gfp.contains(Gfp::HIGH) {
        f |= AllocFlags::MIN_RESERVE;
    }
    if gfp.contains(Gfp::KSWAPD_RECLAIM) {
        f |= AllocFlags::KSWAPD;
    }
    let unboosted = if sw.atomic_bit {
        Gfp::ATOMIC
    } else {
        Gfp::HIGH
    };
    if gfp.contains(unboosted) {
        f |= AllocFlags::UNBOOSTED_RECHECK;
    }
    if gfp.contains(Gfp::DIRECT_RECLAIM) {
        return f;
    }
    match sw.mark_check {
        MarkCheck::PerOrder => {
            f |= AllocFlags::NON_BLOCK;
            f -= AllocFlags::CPUSET;
        }
        MarkCheck::BlockExists => {
            if !gfp.contains(Gfp::NOMEMALLOC) {
                f |= AllocFlags::NON_BLOCK;
                if order > 0 && gfp.contains(Gfp::HIGH) {
                    f |= AllocFlags::HIGHATOMIC;
                }
            }
            if gfp.contains(Gfp::HIGH) {
                f -= AllocFlags::CPUSET;
            }
        }
    }
    f
}

impl<H: Host> Manager<'_, H> {
    #[cold]
    pub(super) fn slow_path(&mut self, r: &Request) -> Result<Ix, AllocError> {
        let (_, zones) = self.zonelist(r);
        if zones == 0 {
            return Err(AllocError::NoZone);
        }
        self.counters.slow_path += 1;
        self.wake_kswapds(r);
        let mut flags = alloc_flags(r.gfp, r.order, &self.env.sw);
        if self.env.sysctl.defrag_mode {
            flags |= AllocFlags::NOFRAGMENT;
        }
        self.get_page(r, flags)
            .or_else(|| self.reserves(r, flags))
            .or_else(|| self.last_resort(r, flags))
            .ok_or(AllocError::NoMemory)
    }

    fn wake_kswapds(&mut self, r: &Request) {
        // Before 4.x every request that may wait woke it; the flag is the modern spelling.
        if !r.gfp.contains(Gfp::KSWAPD_RECLAIM) {
            return;
        }
        let (list, n) = self.zonelist(r);
        let mut woken = None;
        for &z in &list[..n] {
            let node = self.zone(z.into()).config.node;
            if woken != Some(node) {
                woken = Some(node);
                self.counters.kswapd_wakeups += 1;
                self.host.wake_kswapd(node, r.order);
            }
        }
    }

    /// Those that reclaim memory themselves ignore the marks.
    fn reserves(&mut self, r: &Request, flags: AllocFlags) -> Option<Ix> {
        let memalloc = r.gfp.contains(Gfp::MEMALLOC) && !r.gfp.contains(Gfp::NOMEMALLOC);
        memalloc.then(|| self.get_page(r, flags | AllocFlags::NO_WATERMARKS))?
    }

    /// Nothing can be reclaimed: what remains is to give up reserves and types.
    fn last_resort(&mut self, r: &Request, flags: AllocFlags) -> Option<Ix> {
        if !r.gfp.contains(Gfp::DIRECT_RECLAIM) {
            return None;
        }
        if matches!(self.env.sw.reserve, Reserve::HighAtomic(_)) {
            let (list, n) = self.zonelist(r);
            let mut any = false;
            for &z in &list[..n] {
                if let Some(zone) = &mut self.zones[usize::from(z)] {
                    any |= zone.unreserve_highatomic(&mut self.frames, r.mt, true);
                }
            }
            if any && let Some(ix) = self.get_page(r, flags) {
                return Some(ix);
            }
        }
        if flags.contains(AllocFlags::NOFRAGMENT)
            && let Some(ix) = self.get_page_mixed(r, flags)
        {
            return Some(ix);
        }
        if r.gfp.contains(Gfp::NOFAIL) {
            let all = AllocFlags::MIN_RESERVE | AllocFlags::NON_BLOCK;
            return self.get_page_mixed(r, flags | all);
        }
        // The OOM routine looks once more, at the high mark, before it would kill.
        if r.order <= COSTLY_ORDER && !r.gfp.contains(Gfp::NORETRY) {
            return self.get_page(r, flags | AllocFlags::WMARK_HIGH);
        }
        None
    }

    /// A pass without the wish to keep types apart.
    fn get_page_mixed(&mut self, r: &Request, flags: AllocFlags) -> Option<Ix> {
        let defrag = core::mem::replace(&mut self.env.sysctl.defrag_mode, false);
        let got = self.get_page(r, flags - AllocFlags::NOFRAGMENT);
        self.env.sysctl.defrag_mode = defrag;
        got
    }
}
