//! Allocation of pages and slab objects for the simulated kernel, waiting where the caller may wait.
//! `spec: 4.3, 6.2, 6.5`

use crate::engine::{Nanos, Priority};
use crate::error::Fail;
use crate::kernel::mm::caller::{Caller, Who};
use crate::kernel::{Cx, Sim};
use crate::kmem::caches::CacheKind;
use crate::kmem::grow::Try;
use crate::kmem::{CacheId, Obj};
use crate::mm::frames::Use;
use unfrag_eras::drive::Operation;
use unfrag_eras::page_alloc::{Allocation, Begun};
use unfrag_eras::reclaim::{Answer, Context, Step};
use unfrag_eras::{AllocError, Gfp, Order, Pfn, Request};

/// Grace period of objects that are freed late.
const GRACE: Nanos = 10_000_000;

/// Nodes of the index that are allocated ahead of insertions.
const STASH: usize = 2;

impl Sim {
    #[inline]
    fn context(&self, who: Who) -> Context {
        Context {
            memalloc: who.memalloc,
            realtime: who.realtime,
            in_interrupt: false,
            oom_victim: self.is_victim(who),
        }
    }

    #[inline]
    fn is_victim(&self, who: Who) -> bool {
        who.proc
            .is_some_and(|p| self.kernel_ref().procs.get(p).victim)
    }

    /// Begins to allocate a block.
    #[inline]
    pub(crate) fn begin(&mut self, who: Who, order: u8, gfp: Gfp) -> Result<Begun, AllocError> {
        let context = self.context(who);
        self.begin_request(&self.request(order, gfp).by(context))
    }

    /// A request on the CPU that runs, near its node.
    #[inline]
    pub(super) fn request(&self, order: u8, gfp: Gfp) -> Request {
        let request = Request::new(Order(order), gfp);
        request.on(self.cpu_id()).near(self.node())
    }

    /// Begins to allocate, and adds the cost.
    #[inline]
    fn begin_request(&mut self, request: &Request) -> Result<Begun, AllocError> {
        let kernel = self.kernel();
        kernel.owed += kernel.config.costs.alloc;
        let begun = self.manager().begin(request);
        if matches!(begun, Ok(Begun::Got(_))) {
            self.owe_block(request.order, request.gfp);
        }
        // Returned unmodified, without a copy: it is large in the rare case.
        begun
    }

    /// Adds the cost of zeroing an allocated block, if it is to be zeroed.
    #[inline]
    fn owe_block(&mut self, order: Order, gfp: Gfp) {
        if gfp.contains(Gfp::ZERO) {
            self.kernel().owe_zeroing(order.0);
        }
    }

    /// Allocates a block with one pass over the free lists.
    fn alloc_first_pass(&mut self, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        let request = self.request(order, gfp).first_pass_only();
        let pfn = self.manager().alloc(&request)?;
        self.owe_block(request.order, gfp);
        Ok(pfn)
    }

    /// Allocates a block from free memory alone, in any context.
    #[inline]
    pub(crate) fn alloc_now(&mut self, who: Who, order: u8, gfp: Gfp) -> Option<Pfn> {
        match self.begin(who, order, gfp) {
            Ok(Begun::Got(pfn)) => Some(pfn),
            _ => None,
        }
    }

    /// Allocates a block in an interrupt (`GFP_ATOMIC`), without waiting. The interrupted task's class
    /// counts in the eras whose rules say so. `spec: 4.6 (2)`
    pub fn alloc_in_interrupt(&mut self, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        let world = self.world_ref();
        let priority = world.current().and_then(|t| world.priority(t));
        let context = Context {
            memalloc: false,
            realtime: priority == Some(Priority::Realtime),
            in_interrupt: true,
            oom_victim: false,
        };
        let begun = self.begin_request(&self.request(order, gfp).by(context))?;
        self.finish_now(begun)
    }

    /// Finishes an allocation that may not wait.
    fn finish_now(&mut self, begun: Begun) -> Result<Pfn, AllocError> {
        let mut allocation = match begun {
            Begun::Got(pfn) => return Ok(pfn),
            Begun::Allocation(allocation) => allocation,
        };
        let (order, gfp) = (allocation.order(), allocation.gfp());
        let cpu = self.cpu_id();
        match allocation.step(self.manager(), cpu, Answer::Go) {
            Step::Done(got) => {
                match got {
                    Ok(_) => self.owe_block(order, gfp),
                    Err(_) => self.report_alloc_failure(order.0, gfp),
                }
                got
            }
            Step::Need(need) => panic!("a request that cannot wait needs {need:?}"),
        }
    }

    /// Free pages (without those on per-CPU lists), and pages that the allocator manages.
    pub fn free_and_total(&mut self) -> (u64, u64) {
        let m = self.manager_ref().inspect();
        m.zones().fold((0, 0), |(free, total), z| {
            let v = m.zone(z);
            (free + v.free_pages, total + v.config.managed)
        })
    }

    /// Allocates an object from a cache, or from a new slab if free memory above the low watermark allows it.
    /// For callers that fall back to waiting ([`kmem_alloc`](Cx::kmem_alloc)).
    pub(crate) fn kmem_now(&mut self, cache: CacheId, gfp: Gfp) -> Option<Obj> {
        if let Some(obj) = self.kmem_take(cache) {
            return Some(obj);
        }
        let t = self.kernel_ref().kmem.tries(cache, gfp, 0, 0).1;
        let pfn = self.alloc_now(Who::KERNEL, t.order, t.gfp)?;
        self.kmem_grow(cache, pfn, t.order);
        self.kmem_take(cache)
    }

    /// Allocates an object without waiting, with the attempts that its cache makes.
    pub(crate) fn kmem_nowait(&mut self, cache: CacheId, gfp: Gfp) -> Option<Obj> {
        if let Some(obj) = self.kmem_take(cache) {
            return Some(obj);
        }
        let (free, total) = self.free_and_total();
        let gfp = gfp - Gfp::DIRECT_RECLAIM;
        let (first, last) = self.kernel_ref().kmem.tries(cache, gfp, free, total);
        for t in first.into_iter().chain([last]) {
            let got = if t.first_pass_only {
                self.alloc_first_pass(t.order, t.gfp)
            } else {
                let begun = self.begin(Who::KERNEL, t.order, t.gfp);
                begun.and_then(|begun| self.finish_now(begun))
            };
            if let Ok(pfn) = got {
                self.kmem_grow(cache, pfn, t.order);
                return self.kmem_take(cache);
            }
        }
        None
    }

    #[inline]
    pub(crate) fn kmem_take(&mut self, cache: CacheId) -> Option<Obj> {
        let world = self.world();
        let cpu = world.cpu();
        let kernel = &mut world.kernel;
        kernel.owed += kernel.config.costs.slab_fast;
        kernel.kmem.take(cpu, cache)
    }

    pub(crate) fn kmem_grow(&mut self, cache: CacheId, pfn: Pfn, order: u8) {
        let world = self.world();
        let cpu = world.cpu();
        world.kernel.owed += world.kernel.config.costs.slab_slow;
        world.kernel.frames.take(pfn, order, Use::Slab);
        world.kernel.kmem.add_slab(cpu, cache, pfn.0 as u32, order);
        self.free_pending();
    }

    /// Frees a slab object.
    #[inline]
    pub(crate) fn kmem_free(&mut self, obj: Obj) {
        let world = self.world();
        let cpu = world.cpu();
        let kernel = &mut world.kernel;
        kernel.owed += kernel.config.costs.slab_fast;
        kernel.kmem.give(cpu, obj);
        if kernel.kmem.has_freed() {
            self.free_pending();
        }
    }

    /// Frees an object after a grace period (RCU): open files and dentries, which are read without a lock.
    pub(crate) fn kmem_free_late(&mut self, obj: Obj) {
        let now = self.now();
        self.kernel().rcu.push_back((now + GRACE, obj));
        self.free_due();
    }

    /// Frees the objects whose grace period is over.
    pub(crate) fn free_due(&mut self) {
        let now = self.now();
        while let Some(&(due, obj)) = self.kernel_ref().rcu.front()
            && due <= now
        {
            self.kernel().rcu.pop_front();
            self.kmem_free(obj);
        }
    }

    /// The cache of a kind.
    #[inline]
    pub(crate) fn cache(&self, kind: CacheKind) -> CacheId {
        self.kernel_ref().caches.of(kind)
    }
}

impl Cx<'_> {
    /// Allocates a block, waiting and reclaiming as its flags and the era allow.
    ///
    /// # Errors
    /// [`Fail::NoMemory`] if none could be allocated.
    pub fn alloc_pages(&mut self, who: Who, order: u8, gfp: Gfp) -> Result<Pfn, Fail> {
        loop {
            let begun = self.with(|sim| sim.begin(who, order, gfp));
            let allocation = match begun {
                Ok(Begun::Got(pfn)) => return Ok(pfn),
                Ok(Begun::Allocation(allocation)) => allocation,
                Err(_) => return Err(Fail::NoMemory),
            };
            let was_victim = self.is_victim(who);
            let last = |sim: &Sim| was_victim || !sim.is_victim(who);
            if let Ok(pfn) = self.drive_allocation(who, allocation, last) {
                return Ok(pfn);
            }
            // Chosen by the OOM killer meanwhile: it may use the reserves now.
            if was_victim || !self.is_victim(who) {
                return Err(Fail::NoMemory);
            }
        }
    }

    pub(crate) fn is_victim(&mut self, who: Who) -> bool {
        self.with(|sim| sim.is_victim(who))
    }

    /// Drives an allocation to its end.
    pub(crate) fn finish(&mut self, who: Who, allocation: Allocation) -> Result<Pfn, Fail> {
        self.drive_allocation(who, allocation, |_| true)
    }

    /// Drives an allocation to its end for a caller that retries: a failure is not reported.
    pub(crate) fn try_to_finish(&mut self, who: Who, allocation: Allocation) -> Option<Pfn> {
        self.drive_allocation(who, allocation, |_| false).ok()
    }

    /// `last` says whether a failure is final and has to be reported.
    fn drive_allocation(
        &mut self,
        who: Who,
        mut allocation: Allocation,
        last: impl Fn(&Sim) -> bool,
    ) -> Result<Pfn, Fail> {
        let from = self.now();
        let (order, gfp) = (allocation.order(), allocation.gfp());
        let caller = Caller {
            who,
            gfp,
            order: order.0,
            daemon: None,
        };
        self.with(|sim| {
            let slow = sim.kernel_ref().config.costs.alloc_slow;
            sim.kernel().owe(slow);
        });
        let got = self.drive(caller, &mut allocation, |sim, got| match got {
            Ok(_) => sim.owe_block(order, gfp),
            Err(_) if last(sim) => sim.report_alloc_failure(order.0, gfp),
            Err(_) => {}
        });
        self.pay();
        let now = self.now();
        self.with(|sim| sim.kernel().counters.direct_reclaim += now - from);
        got.map_err(|_| Fail::NoMemory)
    }

    /// Allocates a slab object.
    ///
    /// # Errors
    /// [`Fail::NoMemory`] if a new slab is needed and could not be allocated.
    pub fn kmem_alloc(&mut self, who: Who, cache: CacheId, gfp: Gfp) -> Result<Obj, Fail> {
        loop {
            if let Some(obj) = self.with(|sim| sim.kmem_take(cache)) {
                return Ok(obj);
            }
            let (first, last) = self.with(|sim| {
                let (free, total) = sim.free_and_total();
                sim.kernel_ref().kmem.tries(cache, gfp, free, total)
            });
            if let Some(first) = first
                && self.try_grow(who, cache, first).is_ok()
            {
                continue;
            }
            self.try_grow(who, cache, last)?;
        }
    }

    fn try_grow(&mut self, who: Who, cache: CacheId, t: Try) -> Result<(), Fail> {
        let pfn = if t.first_pass_only {
            let got = self.with(|sim| sim.alloc_first_pass(t.order, t.gfp));
            got.map_err(|_| Fail::NoMemory)?
        } else {
            self.alloc_pages(who, t.order, t.gfp)?
        };
        self.with(|sim| sim.kmem_grow(cache, pfn, t.order));
        Ok(())
    }

    /// Allocates an object of one of the kernel's own caches (`GFP_KERNEL`).
    ///
    /// # Errors
    /// As [`kmem_alloc`](Cx::kmem_alloc).
    pub fn kmem_kind(&mut self, who: Who, kind: CacheKind) -> Result<Obj, Fail> {
        let cache = self.with(|sim| sim.cache(kind));
        self.kmem_alloc(who, cache, Gfp::KERNEL)
    }

    /// Allocates nodes of the page cache's index ahead of an insertion (`radix_tree_preload`). `gfp` is that
    /// of the page.
    ///
    /// # Errors
    /// As [`kmem_alloc`](Cx::kmem_alloc).
    pub(crate) fn preload(&mut self, who: Who, gfp: Gfp) -> Result<(), Fail> {
        while self.with(|sim| sim.kernel_ref().radix_stash.len()) < STASH {
            let cache = self.with(|sim| sim.cache(CacheKind::RadixTreeNode));
            let node = self.kmem_alloc(who, cache, gfp & (Gfp::KERNEL | Gfp::NORETRY))?;
            self.with(|sim| sim.kernel().radix_stash.push(node));
        }
        Ok(())
    }

    /// Allocates and frees an object that lives for a call only (`names_cache`, `journal_handle`).
    pub(crate) fn kmem_pass(&mut self, who: Who, kind: CacheKind) -> Result<(), Fail> {
        let obj = self.kmem_kind(who, kind)?;
        self.with(|sim| sim.kmem_free(obj));
        Ok(())
    }
}
