//! The first attempt: zones in order, low mark, per-CPU list, buddy lists.
//! `spec: linux-mm 1.4, 1.6; linux-6.1 1.4-1.6, 2.6`

use super::{MAX_ZONES, Manager};
use crate::frame::{Ix, MigrateType};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{MarkCheck, Reserve};
use crate::pcp::CpuLists;
use crate::place::Want;
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
    if gfp.contains(Gfp::HIGHMEM) {
        if gfp.contains(Gfp::MOVABLE) {
            ZoneKind::Movable
        } else {
            ZoneKind::HighMem
        }
    } else if gfp.contains(Gfp::DMA) {
        ZoneKind::Dma
    } else if gfp.contains(Gfp::DMA32) {
        ZoneKind::Dma32
    } else {
        ZoneKind::Normal
    }
}

impl<H: Host> Manager<'_, H> {
    /// Zones that may serve a request, best first: the local node's from the highest down, then the
    /// other nodes'.
    #[inline]
    pub(super) fn zonelist(&self, r: &Request) -> ([u8; MAX_ZONES], usize) {
        let (mut list, mut n) = ([0; MAX_ZONES], 0);
        for local in [true, false] {
            for i in (0..self.nr_zones).rev() {
                let c = &self.zone(i).config;
                if (c.node == r.node) == local && c.kind <= r.highest && c.managed > 0 {
                    list[n] = i as u8;
                    n += 1;
                }
            }
            if r.gfp.contains(Gfp::THISNODE) {
                break;
            }
        }
        (list, n)
    }

    pub(super) fn fast_path(&mut self, r: &Request) -> Option<Ix> {
        let mut flags = AllocFlags::WMARK_LOW | AllocFlags::CPUSET;
        if r.gfp.contains(Gfp::KSWAPD_RECLAIM) {
            flags |= AllocFlags::KSWAPD;
        }
        self.get_page(r, flags | self.nofragment(r))
    }

    /// Whether a request should rather take another zone than mix types.
    fn nofragment(&self, r: &Request) -> AllocFlags {
        if !self.env.sw.nofragment {
            return AllocFlags::empty();
        }
        let (list, n) = self.zonelist(r);
        let preferred = list[..n].first().map(|&z| self.zone(z.into()).config);
        let normal = preferred.is_some_and(|c| {
            c.kind == ZoneKind::Normal
                && self
                    .zones
                    .iter()
                    .flatten()
                    .any(|z| z.config.kind == ZoneKind::Dma32 && z.config.node == c.node)
        });
        if normal || self.env.sysctl.defrag_mode {
            AllocFlags::NOFRAGMENT
        } else {
            AllocFlags::empty()
        }
    }

    /// One pass over the zones (`get_page_from_freelist`).
    pub(super) fn get_page(&mut self, r: &Request, flags: AllocFlags) -> Option<Ix> {
        let (list, n) = self.zonelist(r);
        let mut flags = flags;
        loop {
            for &z in &list[..n] {
                if let Some(ix) = self.try_zone(z.into(), r, flags, 0) {
                    return Some(ix);
                }
            }
            // Better mixed than none; with defrag_mode, the slow path decides.
            if !flags.contains(AllocFlags::NOFRAGMENT) || self.env.sysctl.defrag_mode {
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
        let sw = self.env.sw;
        let Some(zone) = self.zones[z].as_mut() else {
            return false;
        };
        if !zone.below_high
            && extra == 0
            && matches!(sw.pcp, crate::kernel::Pcp::Orders { tuned: true, .. })
            && sw.mark_check == MarkCheck::BlockExists
        {
            let high = zone.marks.of(AllocFlags::WMARK_HIGH);
            if zone.passes(&sw, r.order, high, r.highest, flags) {
                return true;
            }
            zone.below_high = true;
        }
        flags.contains(AllocFlags::NO_WATERMARKS)
            || zone.passes(&sw, r.order, zone.marks.of(flags) + extra, r.highest, flags)
    }

    fn try_zone(&mut self, z: usize, r: &Request, flags: AllocFlags, extra: u64) -> Option<Ix> {
        if !self.zone_passes(z, r, flags, extra) {
            return None;
        }
        let ix = self.rmqueue(z, r, flags)?;
        if r.order > 0
            && flags.contains(AllocFlags::HIGHATOMIC)
            && let Reserve::HighAtomic(rule) = self.env.sw.reserve
            && let Some(zone) = &mut self.zones[z]
        {
            zone.reserve_highatomic(&mut self.frames, rule, ix);
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
                    .take(p.frames, p.env, want, &mut p.tracer)
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
        // Whoever comes next after a boost wakes kswapd; since 6.3 only if it may.
        if p.zone.boosted && (p.env.sw.atomic_bit || want.wake) {
            p.zone.boosted = false;
            let node = p.zone.config.node;
            p.tracer.host.wake_kswapd(node, 0);
        }
        got
    }
}
