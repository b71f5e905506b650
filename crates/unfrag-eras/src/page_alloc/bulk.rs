//! Bulk allocation: many pages at once.

use crate::frame::{FrameIx, Order, Pfn};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::manager::{Manager, own_set};
use crate::placement::BlockRequest;
use crate::request::{AllocError, Request};

impl<H: Host> Manager<'_, H> {
    /// Fills `out` with single pages (`alloc_pages_bulk`, as kernel stacks and network buffers are taken)
    /// and returns how many there were. A bulk allocation sees the low mark plus what it asks for, takes
    /// from one zone's per-CPU list, emits no tracepoint and does not count as demand for that list.
    /// `spec: 10`
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), if there was no page at all. The order of the request is ignored.
    ///
    /// # Panics
    /// If the request names a CPU that does not exist.
    pub fn alloc_bulk(&mut self, request: &Request, out: &mut [Pfn]) -> Result<usize, AllocError> {
        let single = Request {
            order: Order::ZERO,
            ..*request
        };
        let d = self.demand(&single)?;
        let list = self.zone_list(&d);
        let flags = AllocFlags::WMARK_LOW | AllocFlags::CPUSET;
        let extra = out.len() as u64;
        let zone = list
            .zones()
            .find(|&z| self.zone_passes(z, &d, flags, extra));
        let mut got = 0;
        if let Some(zone) = zone {
            let wanted = BlockRequest {
                order: Order::ZERO,
                mt: d.mt,
                nofragment: false,
                wake: d.gfp.contains(Gfp::KSWAPD_RECLAIM),
            };
            for slot in out.iter_mut() {
                let (set, mut z) = self.parts(zone, d.cpu);
                let Some(ix) = set.take(&mut z, wanted, false) else {
                    break;
                };
                self.mark_used(ix, Order::ZERO, d.mt, d.gfp);
                self.counters.pgalloc += 1;
                *slot = self.map.pfn(ix);
                got += 1;
            }
        }
        // With no page from the list, one page is allocated the ordinary way, as `alloc_pages_bulk` does.
        if got == 0
            && let Some(slot) = out.first_mut()
        {
            *slot = self.alloc(&single)?;
            got = 1;
        }
        Ok(got)
    }

    /// Fills `out` with single pages from this CPU's list, as far as the list has them and the zone is well
    /// above its watermark. Returns how many pages there were. The pages are those that as many calls of
    /// [`begin`](Self::begin) would give. The order of the request is ignored.
    ///
    /// # Panics
    /// If the request names a CPU that does not exist.
    pub fn alloc_from_pcp(&mut self, request: &Request, out: &mut [Pfn]) -> usize {
        let single = Request {
            order: Order::ZERO,
            ..*request
        };
        let Ok(d) = self.demand(&single) else {
            return 0;
        };
        let tuned = self.policy.rules.pcp.is_tuned();
        let Some(set) = self.set_above_marks(&d, tuned) else {
            return 0;
        };
        let lists = &mut own_set(self.sets, set, d.cpu).lists;
        let (frames, rules) = (&self.frames, &self.policy.rules);
        let mut n = 0;
        // Positions in the frame table first; they are turned into frame numbers below.
        while let Some(slot) = out.get_mut(n)
            && let Some(ix) = lists.pop(frames, rules, Order::ZERO, d.mt)
        {
            *slot = Pfn(ix.0.into());
            n += 1;
        }
        for slot in &mut out[..n] {
            *slot = self.hand_out(&d, FrameIx(slot.0 as u32));
        }
        n
    }
}
