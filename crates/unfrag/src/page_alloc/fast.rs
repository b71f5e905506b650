//! The first attempt: zones in order, low mark, per-CPU list, buddy lists.
//! `spec: linux-mm 1.4, 1.6; linux-6.1 1.4-1.6, 2.6`

use super::Manager;
use super::zonelist::ZoneList;
use crate::frame::{HUGE_ORDER, Ix, MigrateType};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{Boost, BoostWakes, Pcp, Reserve};
use crate::pcp::CpuLists;
use crate::place::{Memory, Want};
use crate::zone::ZoneKind;

/// An allocation on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub node: u8,
    pub order: u8,
    pub gfp: Gfp,
    pub mt: MigrateType,
    /// Highest zone that may serve it.
    pub highest: ZoneKind,
}

impl Request {
    #[inline]
    pub fn new(node: u8, order: u8, gfp: Gfp, mt: MigrateType) -> Request {
        Request {
            node,
            order,
            gfp,
            mt,
            highest: highest_zone(gfp),
        }
    }
}

/// Highest zone that a request may use. `spec: linux-mm 1.6`
#[inline]
pub(super) const fn highest_zone(gfp: Gfp) -> ZoneKind {
    /// By the four lowest bits: DMA, HIGHMEM, DMA32, MOVABLE.
    const BY_BITS: [ZoneKind; 16] = {
        let mut all = [ZoneKind::Normal; 16];
        let mut bits = 0;
        while bits < 16 {
            let gfp = Gfp::from_bits_retain(bits as u32);
            all[bits] = if gfp.contains(Gfp::HIGHMEM.union(Gfp::MOVABLE)) {
                ZoneKind::Movable
            } else if gfp.contains(Gfp::HIGHMEM) {
                ZoneKind::HighMem
            } else if gfp.contains(Gfp::DMA) {
                ZoneKind::Dma
            } else if gfp.contains(Gfp::DMA32) {
                ZoneKind::Dma32
            } else {
                ZoneKind::Normal
            };
            bits += 1;
        }
        all
    };
    BY_BITS[(gfp.bits() & 15) as usize]
}

/// How far the first attempt goes.
#[inline]
pub(super) const fn first_flags(gfp: Gfp) -> AllocFlags {
    let flags = AllocFlags::WMARK_LOW.union(AllocFlags::CPUSET);
    if gfp.contains(Gfp::KSWAPD_RECLAIM) {
        flags.union(AllocFlags::KSWAPD)
    } else {
        flags
    }
}

impl<H: Host> Manager<'_, H> {
    /// The commonest case: a single or a huge page that the CPU's own list of the best zone holds,
    /// with no watermark in sight. Does what [`fast_path`](Self::fast_path) would.
    #[inline(always)]
    pub(super) fn hit(&mut self, r: &Request) -> Option<Ix> {
        let Pcp::Orders { tuned, .. } = self.env.sw.pcp else {
            return self.hit_single(r);
        };
        if r.order != 0 && r.order != HUGE_ORDER {
            return None;
        }
        let set = self.set_with_plenty(r, tuned)?;
        self.sets[set].hit(&mut self.frames, r.order, r.mt, tuned)
    }

    /// The same where lists hold single pages (to 5.12). Cold, so that it stands off the road of all others.
    #[cold]
    #[inline(never)]
    fn hit_single(&mut self, r: &Request) -> Option<Ix> {
        if r.order != 0 {
            return None;
        }
        let set = self.set_with_plenty(r, false)?;
        self.sets[set].hit_single(&mut self.frames, &self.env.sw, r.mt)
    }

    /// This CPU's lists of the best zone for a request, if no watermark is in sight there.
    #[inline(always)]
    pub(super) fn set_with_plenty(&self, r: &Request, tuned: bool) -> Option<usize> {
        let z = self.zonelists.first(r)?;
        let zone = self.zones[z].as_ref()?;
        if zone.boosted || !zone.has_plenty(r.order, r.highest, tuned) {
            return None;
        }
        Some(self.own_set(z))
    }

    pub(super) fn fast_path(&mut self, r: &Request) -> Option<Ix> {
        let list = self.zonelists.of(r);
        let mut flags = first_flags(r.gfp);
        if list.nofragment || self.env.sysctl.defrag_mode {
            flags |= AllocFlags::NOFRAGMENT;
        }
        self.get_page(&list, r, flags)
    }

    /// One pass over the zones (`get_page_from_freelist`).
    #[inline]
    pub(super) fn get_page(
        &mut self,
        list: &ZoneList,
        r: &Request,
        mut flags: AllocFlags,
    ) -> Option<Ix> {
        loop {
            // With defrag_mode, the slow path decides when types may mix.
            let retry = flags.contains(AllocFlags::NOFRAGMENT) && !self.env.sysctl.defrag_mode;
            for (i, &z) in list.zones().iter().enumerate() {
                // Better mixed than from another node.
                if retry && i >= usize::from(list.near) {
                    break;
                }
                if let Some(ix) = self.try_zone(z.into(), r, flags, 0) {
                    return Some(ix);
                }
            }
            // Better mixed than none.
            if !retry {
                return None;
            }
            flags -= AllocFlags::NOFRAGMENT;
        }
    }

    /// Whether zone `z` may serve a request that leaves `extra` pages more than usual.
    #[inline]
    pub(super) fn zone_passes(
        &mut self,
        z: usize,
        r: &Request,
        flags: AllocFlags,
        extra: u64,
    ) -> bool {
        let sw = &self.env.sw;
        let Some(zone) = self.zones[z].as_mut() else {
            return false;
        };
        if !zone.below_high && extra == 0 && sw.pcp.is_tuned() {
            let high = zone.marks.of(AllocFlags::WMARK_HIGH);
            if zone.passes(sw, r.order, high, r.highest, flags) {
                return true;
            }
            zone.below_high = true;
        }
        flags.contains(AllocFlags::NO_WATERMARKS)
            || zone.passes(sw, r.order, zone.marks.of(flags) + extra, r.highest, flags)
    }

    fn try_zone(&mut self, z: usize, r: &Request, flags: AllocFlags, extra: u64) -> Option<Ix> {
        if !self.zone_passes(z, r, flags, extra) {
            return None;
        }
        let ix = self.rmqueue(z, r, flags)?;
        if r.order > 0
            && flags.contains(AllocFlags::HIGHATOMIC)
            && let Reserve::HighAtomic(rule) = self.env.sw.reserve()
            && let Some(zone) = &mut self.zones[z]
        {
            zone.reserve_highatomic(&mut self.frames, &self.env.sw, rule, ix);
        }
        Some(ix)
    }

    /// Takes a block from a zone (`rmqueue`): the CPU's list if it serves the order, else the buddy
    /// lists.
    #[inline]
    pub(super) fn rmqueue(&mut self, z: usize, r: &Request, flags: AllocFlags) -> Option<Ix> {
        let cpu = self.cpu();
        let want = Want {
            order: r.order,
            mt: r.mt,
            nofragment: flags.contains(AllocFlags::NOFRAGMENT),
            wake: flags.contains(AllocFlags::KSWAPD),
        };
        let mut p = self.parts(z, cpu);
        let cold = false;
        let mut got = None;
        if CpuLists::serves(p.env.sw.pcp, r.order) {
            got = p
                .set
                .alloc(p.zone, p.frames, p.env, want, cold, &mut p.tracer);
        }
        if got.is_none() {
            if r.order > 0 && flags.contains(AllocFlags::HIGHATOMIC) {
                got = p
                    .zone
                    .take_highatomic(p.frames, p.env, r.order, &mut p.tracer);
            }
            if got.is_none() {
                got = p
                    .zone
                    .take(p.frames, p.env, want, &mut Memory::default(), &mut p.tracer)
                    .map(|(ix, _)| ix);
            }
            if got.is_none() && flags.intersects(AllocFlags::OOM | AllocFlags::NON_BLOCK) {
                got = p
                    .zone
                    .take_highatomic(p.frames, p.env, r.order, &mut p.tracer);
            }
            if got.is_some() {
                p.zone.count(&mut p.set.delta, -(1 << r.order));
            }
        }
        // Whoever comes next after a boost wakes kswapd; in some eras only if it may.
        let any = |b: Boost| b.wakes == BoostWakes::AnyRequest;
        if p.zone.boosted && (want.wake || p.env.sw.boost().is_some_and(any)) {
            p.zone.boosted = false;
            let node = p.zone.config.node;
            self.ask_kswapd(node, 0);
        }
        got
    }
}
