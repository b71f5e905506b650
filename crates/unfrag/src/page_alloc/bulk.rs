//! Many pages at once (`alloc_pages_bulk`), as kernel stacks and network buffers are taken.
//!
//! A bulk allocation sees the low mark plus what it asks for, takes from one zone's per-CPU list,
//! leaves no tracepoint and is no sign of demand to the list. `spec: linux-6.1 10`

use super::fast::Request;
use super::{AllocError, Manager, Parts};
use crate::frame::{Ix, Pfn};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::place::Want;

impl<H: Host> Manager<'_, H> {
    /// Fills `out` with single pages and returns how many there were.
    pub fn alloc_bulk(&mut self, gfp: Gfp, out: &mut [Pfn]) -> Result<usize, AllocError> {
        let mt = self.request_type(gfp).ok_or(AllocError::BothMobilities)?;
        let r = Request::new(0, 0, gfp, mt);
        let list = self.zonelists.of(&r);
        let flags = AllocFlags::WMARK_LOW | AllocFlags::CPUSET;
        let extra = out.len() as u64;
        let zone = list
            .zones()
            .iter()
            .copied()
            .find(|&z| self.zone_passes(z.into(), &r, flags, extra));
        let mut got = 0;
        if let Some(z) = zone {
            let cpu = self.cpu();
            let want = Want {
                order: 0,
                mt,
                nofragment: false,
                wake: gfp.contains(Gfp::KSWAPD_RECLAIM),
            };
            for slot in out.iter_mut() {
                let Parts {
                    zone,
                    set,
                    frames,
                    env,
                    mut tracer,
                } = self.parts(z.into(), cpu);
                let Some(ix) = set.alloc_bulk(zone, frames, env, want, &mut tracer) else {
                    break;
                };
                self.mark_used(ix, 0, mt, gfp.contains(Gfp::MOVABLE));
                self.counters.pgalloc += 1;
                *slot = self.map.pfn(ix);
                got += 1;
            }
        }
        // With no page from the list, one is taken the ordinary way, and the caller asks again.
        if got == 0
            && let Some(slot) = out.first_mut()
        {
            *slot = self.alloc(0, gfp)?;
            got = 1;
        }
        Ok(got)
    }

    /// Takes single pages near `node` from this CPU's own list as long as it has them and no watermark is in
    /// sight, and returns how many: what as many calls of [`begin_alloc`](Manager::begin_alloc) would give,
    /// sooner. Where `out` is not filled, that one has to give the next page.
    pub fn alloc_listed(&mut self, node: u8, gfp: Gfp, out: &mut [Pfn]) -> usize {
        let Some(mt) = self.request_type(gfp) else {
            return 0;
        };
        let r = Request::new(node, 0, gfp, mt);
        let tuned = self.env.sw.pcp.is_tuned();
        let Some(set) = self.set_with_plenty(&r, tuned) else {
            return 0;
        };
        let (set, frames, sw) = (&mut self.sets[set], &mut self.frames, &self.env.sw);
        let mut n = 0;
        // First their positions, then their numbers.
        while let Some(slot) = out.get_mut(n)
            && let Some(ix) = set.hit_page(frames, sw, mt)
        {
            *slot = Pfn(ix.into());
            n += 1;
        }
        for slot in &mut out[..n] {
            *slot = self.hand_out(&r, slot.0 as Ix);
        }
        n
    }
}
