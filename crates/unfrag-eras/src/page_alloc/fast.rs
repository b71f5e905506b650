//! The fast path: the CPU's own list, then the zones in order at the low mark.
//! `spec: 1.4-1.6, 2.6`

use super::allocation::{Allocation, Begun};
use crate::frame::{CpuId, FrameIx, MigrateType, NodeId, Order, Pfn, State};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{MarkCheck, Pcp};
use crate::manager::{Manager, own_set};
use crate::request::{AllocError, Demand, Request, first_flags, highest_zone};
use crate::trace::Event;

impl<'m, H: Host> Manager<'m, H> {
    /// Allocates a block of `2^order` frames and returns its first. `spec: 1.6, 4.8`
    ///
    /// Uses free memory only, down to the mark and the reserves that the request has a right to. kswapd is
    /// woken, but **nothing is reclaimed** and nothing waits. For an allocation that may reclaim see
    /// [`begin`](Self::begin). The block is not zeroed, even with [`Gfp::ZERO`]: the caller does that.
    ///
    /// # Errors
    /// [`AllocError`], which says whether memory was short, fragmented, reserved or forbidden.
    ///
    /// # Panics
    /// If the request names a CPU that does not exist.
    #[inline(always)]
    pub fn alloc(&mut self, request: &Request) -> Result<Pfn, AllocError> {
        let Request {
            order,
            gfp,
            cpu,
            node,
            ..
        } = *request;
        match self.pcp_alloc(order, gfp, cpu, node) {
            Some(pfn) => Ok(pfn),
            None => self.alloc_beyond_pcp(request),
        }
    }

    #[inline(never)]
    fn alloc_beyond_pcp(&mut self, request: &Request) -> Result<Pfn, AllocError> {
        let demand = &self.demand(request)?;
        if let Some(ix) = self.fast_path(demand) {
            return Ok(self.hand_out(demand, ix));
        }
        if request.first_pass_only {
            return self.fail(demand);
        }
        match Allocation::new(self, demand, request.context, false) {
            Some(mut allocation) => allocation.without_waiting(self),
            None => self.fail(demand),
        }
    }

    /// Begins an allocation that may reclaim. Returns the frame if the fast path serves the request, else an
    /// [`Allocation`] to be driven ([`drive`](crate::drive::drive)). A request with `first_pass_only` fails
    /// instead.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), for requests that nothing can serve.
    ///
    /// # Panics
    /// If the request names a CPU that does not exist.
    #[inline(always)]
    pub fn begin(&mut self, request: &Request) -> Result<Begun, AllocError> {
        let Request {
            order,
            gfp,
            cpu,
            node,
            ..
        } = *request;
        match self.pcp_alloc(order, gfp, cpu, node) {
            Some(pfn) => Ok(Begun::Got(pfn)),
            None => self.begin_beyond_pcp(request),
        }
    }

    #[inline(never)]
    fn begin_beyond_pcp(&mut self, request: &Request) -> Result<Begun, AllocError> {
        let demand = &self.demand(request)?;
        if let Some(ix) = self.fast_path(demand) {
            return Ok(Begun::Got(self.hand_out(demand, ix)));
        }
        if request.first_pass_only {
            return self.fail(demand).map(Begun::Got);
        }
        let allocation = Allocation::new(self, demand, request.context, true);
        allocation
            .map(Begun::Allocation)
            .ok_or(AllocError::Forbidden)
    }

    /// The request with its type and highest zone.
    #[inline]
    pub(crate) fn demand(&self, r: &Request) -> Result<Demand, AllocError> {
        let d = self.any_demand(r.order, r.gfp, r.cpu, r.node);
        let d = d.ok_or(AllocError::BothMobilities)?;
        if d.order > self.frames.geometry.max_order {
            return Err(AllocError::OrderTooLarge);
        }
        Ok(d)
    }

    /// Type whose lists serve a request.
    #[inline]
    pub(crate) fn request_type(&self, gfp: Gfp) -> Option<MigrateType> {
        let mt = gfp.mobility()?;
        let grouped = self.policy.grouped;
        Some(if grouped { mt } else { MigrateType::Unmovable })
    }

    /// The most common case: the CPU's list of the best zone has a block, and the zone is above its watermark.
    /// Takes the block that [`fast_path`](Self::fast_path) would take. The arguments are passed in registers.
    fn pcp_alloc(&mut self, order: Order, gfp: Gfp, cpu: CpuId, node: NodeId) -> Option<Pfn> {
        let Pcp::Orders { tuned } = self.policy.rules.pcp else {
            return self.pcp_alloc_single(order, gfp, cpu, node);
        };
        let tuned = tuned.is_some();
        let d = self.any_demand(order, gfp, cpu, node)?;
        // The most frequent orders, each as a constant.
        let ix = match order {
            Order::ZERO => self.pcp_alloc_order(d, Order::ZERO, tuned),
            Order::HUGE => self.pcp_alloc_order(d, Order::HUGE, tuned),
            _ => self.pcp_alloc_other_order(d, tuned),
        };
        ix.map(|ix| self.hand_out(&d, ix))
    }

    /// The eras whose lists hold single pages (to 5.12). Cold, so that its code is apart from the common case.
    #[cold]
    #[inline(never)]
    fn pcp_alloc_single(
        &mut self,
        order: Order,
        gfp: Gfp,
        cpu: CpuId,
        node: NodeId,
    ) -> Option<Pfn> {
        if order != Order::ZERO {
            return None;
        }
        let d = self.any_demand(Order::ZERO, gfp, cpu, node)?;
        let set = self.set_above_marks(&d, false)?;
        let lists = &mut own_set(self.sets, set, cpu).lists;
        let ix = lists.single_pop(&self.frames, &self.policy.rules, d.mt)?;
        Some(self.hand_out(&d, ix))
    }

    /// The demand of a request, without a check of its order; `None` if both mobility flags are set.
    #[inline(always)]
    fn any_demand(&self, order: Order, gfp: Gfp, cpu: CpuId, node: NodeId) -> Option<Demand> {
        Some(Demand {
            cpu,
            node,
            order,
            gfp,
            mt: self.request_type(gfp)?,
            highest: highest_zone(gfp),
        })
    }

    #[inline(never)]
    fn pcp_alloc_other_order(&mut self, d: Demand, tuned: bool) -> Option<FrameIx> {
        self.pcp_alloc_order(d, d.order, tuned)
    }

    #[inline(always)]
    fn pcp_alloc_order(&mut self, d: Demand, order: Order, tuned: bool) -> Option<FrameIx> {
        let set = self.set_above_marks(&Demand { order, ..d }, tuned)?;
        let lists = &mut own_set(self.sets, set, d.cpu).lists;
        lists.orders_pop(&self.frames, order, d.mt, tuned)
    }

    /// Index of this CPU's lists of the best zone for a request, if they serve its order and the zone is above
    /// its watermark. `tuned`: the lists tune themselves to demand (6.7 and later).
    #[inline(always)]
    pub(super) fn set_above_marks(&self, d: &Demand, tuned: bool) -> Option<usize> {
        let huge = self.frames.geometry.huge_order;
        if !self.policy.rules.pcp.serves(d.order, huge) {
            return None;
        }
        let zone = self.zonelists.of(d.node, d.highest).first_local()?;
        let z = self.zone(zone);
        let check = self.policy.rules.marks.check;
        let checkable = d.order == Order::ZERO || check == MarkCheck::BlockExists;
        if z.boosted || !checkable || !z.is_above_marks(d.order, d.highest, tuned) {
            return None;
        }
        Some(self.set_of(zone, d.cpu))
    }

    #[inline]
    pub(super) fn fast_path(&mut self, d: &Demand) -> Option<FrameIx> {
        let list = self.zone_list(d);
        let mut flags = first_flags(d.gfp);
        if list.nofragment || self.policy.sysctl.defrag_mode {
            flags |= AllocFlags::NOFRAGMENT;
        }
        self.get_page(&list, d, flags)
    }

    /// Ends an allocation without a block: counts it, emits its tracepoint and finds the reason.
    #[cold]
    pub(crate) fn fail(&mut self, d: &Demand) -> Result<Pfn, AllocError> {
        self.counters.alloc_failed += 1;
        self.note_huge(d.node, d.order);
        self.trace_alloc(d, None);
        Err(self.failure_reason(d))
    }

    /// Marks a block as in use, counts the allocation and emits its tracepoint.
    #[inline]
    pub(crate) fn hand_out(&mut self, d: &Demand, ix: FrameIx) -> Pfn {
        self.mark_used(ix, d.order, d.mt, d.gfp);
        if d.order > Order::COSTLY {
            self.note_huge(d.node, d.order);
        }
        let first = self.map.pfn(ix);
        self.counters.pgalloc += u64::from(d.order.frames());
        self.trace_alloc(d, Some(first));
        first
    }

    #[inline]
    fn trace_alloc(&mut self, d: &Demand, pfn: Option<Pfn>) {
        if H::TRACING {
            let e = Event::PageAlloc {
                pfn,
                order: d.order,
                migratetype: d.mt,
                gfp: d.gfp,
            };
            self.host.trace(&e);
        }
    }

    #[inline]
    pub(crate) fn mark_used(&mut self, ix: FrameIx, order: Order, mt: MigrateType, gfp: Gfp) {
        let movable = gfp.contains(Gfp::MOVABLE);
        self.frames.set_state(ix, State::used(order, mt, movable));
    }
}
