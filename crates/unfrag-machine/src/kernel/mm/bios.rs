//! The objects that a transfer holds while it is under way: its bio; a vector of pages, if there are more
//! than fit into the bio; and a bio and a record of the encrypting layer that it passes through.
//!
//! All come from mempools (`GFP_NOIO`). They are allocated from free memory if that works without waiting
//! and without the reserves, else lent by the pool. When the pool is empty, the submitter waits until an
//! object comes back, and tries free memory again every five seconds. Without this retry a loop device could
//! deadlock: its thread would wait for kswapd, which would wait for a bio queued behind that thread. The wait
//! also bounds the queue of a slow device when no memory is free.
//!
//! That a bio has a cache of its own is in source S2 (`bio-0`, `spec: 8.5`); sizes and names are those of
//! `/proc/slabinfo`; how many objects a pool keeps is assumed.
//!
//! Simplified: the transfer that found a pool empty is already under way while its submitter waits. Transfers
//! submitted in an interrupt wait for no pool.
//!
//! Invariant: no more tasks wait than objects were lent beyond what the pools keep.

use crate::engine::{MS, Nanos, TaskId};
use crate::kernel::Sim;
use crate::mm::bio_pool::HeldObjects;

/// Time that a task waits for a pool before it tries free memory again.
const RETRY: Nanos = 5_000 * MS;

impl Sim {
    /// Allocates the objects of the transfers that have just begun. Called before time passes.
    #[inline]
    pub(crate) fn fund_bios(&mut self) {
        if !self.kernel_ref().bios.begun.is_empty() {
            self.fund_begun();
        }
    }

    #[cold]
    fn fund_begun(&mut self) {
        let mut begun = std::mem::take(&mut self.kernel().bios.begun);
        for (token, demand, submitter) in begun.drain(..) {
            let held = HeldObjects {
                demand: Some(demand),
                pooled: demand.kinds().map(|kind| kind.is_some()),
                ..HeldObjects::default()
            };
            let bios = &mut self.kernel().bios;
            bios.held[token as usize] = held;
            for (lent, pooled) in std::iter::zip(&mut bios.lent, held.pooled) {
                *lent += u32::from(pooled);
            }
            let from_pools = self.fund_from_free(token);
            self.kernel().counters.mempool_used += from_pools;
            let bios = &mut self.kernel().bios;
            if from_pools > 0
                && bios.over() > bios.waiting.len()
                && let Some(task) = submitter
            {
                bios.waiting.push_back((task, token));
                self.sched().add_unsettled(task);
            }
        }
        // Keeps the vector's memory.
        self.kernel().bios.begun = begun;
    }

    /// Replaces the objects that a transfer has from the pools by objects from free memory. Returns how many
    /// remain.
    fn fund_from_free(&mut self, token: u32) -> u64 {
        let held = self.kernel().bios.held[token as usize];
        let Some(demand) = held.demand else { return 0 };
        let mut remain = 0;
        for (i, kind) in demand.kinds().into_iter().enumerate() {
            let Some(kind) = kind.filter(|_| held.pooled[i]) else {
                continue;
            };
            let cache = self.cache(kind);
            let got = self.kmem_nowait(cache, demand.gfp());
            let bios = &mut self.kernel().bios;
            let held = &mut bios.held[token as usize];
            held.objects[i] = got;
            held.pooled[i] = got.is_none();
            bios.lent[i] -= u32::from(got.is_some());
            remain += u64::from(got.is_none());
        }
        remain
    }

    /// Timeout of a task that waits until its transfers can begin, if it waits for a pool.
    pub(crate) fn bio_wait(&self, task: TaskId) -> Option<Nanos> {
        let waiting = &self.kernel_ref().bios.waiting;
        waiting.iter().any(|w| w.0 == task).then_some(RETRY)
    }

    /// A task's wait for a pool has timed out: it tries free memory again.
    pub(crate) fn bios_again(&mut self, task: TaskId) {
        let waiting = self.kernel_ref().bios.waiting.iter();
        let Some(&(_, token)) = waiting.clone().find(|w| w.0 == task) else {
            return;
        };
        if self.fund_from_free(token) == 0 {
            self.bio_settled(token);
        }
        self.settle_waiting();
    }

    /// A transfer has all its objects or has ended: it does not wait for a pool.
    fn bio_settled(&mut self, token: u32) {
        let waiting = &mut self.kernel().bios.waiting;
        if let Some(at) = waiting.iter().position(|w| w.1 == token)
            && let Some((task, _)) = waiting.remove(at)
        {
            self.world().settled(task);
        }
    }

    /// Wakes waiting tasks until no more wait than objects were lent beyond the pools.
    fn settle_waiting(&mut self) {
        while self.kernel().bios.waiting.len() > self.kernel().bios.over() {
            if let Some((task, _)) = self.kernel().bios.waiting.pop_front() {
                self.world().settled(task);
            }
        }
    }

    /// A transfer has ended.
    pub(crate) fn bio_ends(&mut self, token: u32) {
        let b = &mut self.kernel().bios;
        debug_assert!(
            !b.begun.iter().any(|x| x.0 == token),
            "ends before it began"
        );
        let held = std::mem::take(&mut b.held[token as usize]);
        b.vacant.push(token);
        for (lent, pooled) in std::iter::zip(&mut b.lent, held.pooled) {
            *lent -= u32::from(pooled);
        }
        for obj in held.objects.into_iter().flatten() {
            self.kmem_free(obj);
        }
        self.bio_settled(token);
        self.settle_waiting();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::block::Dir;
    use crate::kernel::mm::Who;
    use crate::kmem::caches::CacheKind;
    use crate::mm::bio_pool::{BioDemand, POOL};
    use crate::test_support::machine_config;
    use unfrag_eras::Gfp;

    fn machine(frames: u64) -> Engine {
        let mut config = machine_config("2.6.32", frames, 2);
        config.mem.slab = unfrag_slab::Rules::S2;
        Engine::new(&config).unwrap()
    }

    fn in_use(sim: &Sim, kind: CacheKind) -> u64 {
        let view = sim.kernel_ref().kmem.view(sim.cache(kind));
        view.map_or(0, |v| v.in_use)
    }

    fn begin(sim: &mut Sim, demand: BioDemand) -> u32 {
        let token = sim.kernel().bios.begin(demand, None);
        sim.fund_bios();
        token
    }

    #[test]
    fn transfer_holds_its_objects_until_its_end() {
        let mut e = machine(16 << 8);
        let sim = e.sim();
        let read = begin(sim, BioDemand::of(Dir::Read, 12, 0, false));
        let page = begin(sim, BioDemand::of(Dir::Write, 32, 0, true));
        let file = begin(sim, BioDemand::of(Dir::Write, 1, 32, false));
        use CacheKind::{Bio, BioVec16, BioVec64, CryptIo};
        let count = |sim: &Sim| [Bio, BioVec16, BioVec64, CryptIo].map(|k| in_use(sim, k));
        assert_eq!(count(sim), [4, 1, 1, 1]);
        for token in [file, read, page] {
            sim.bio_ends(token);
        }
        assert_eq!(count(sim), [0; 4]);
        assert_eq!(sim.kernel().counters.mempool_used, 0);
        sim.check(0).unwrap();
    }

    #[test]
    fn submitter_waits_for_an_empty_pool() {
        let mut e = machine(16 << 8);
        while e.sim().alloc_now(Who::KERNEL, 0, Gfp::ATOMIC).is_some() {}
        // The caches have some left, which go first.
        let demand = BioDemand::of(Dir::Write, 1, 0, false);
        while e.sim().kernel_ref().bios.lent[0] < POOL[0] {
            begin(e.sim(), demand);
        }
        let tokens = std::rc::Rc::new(std::cell::RefCell::new(vec![]));
        for _ in 0..2 {
            let tokens = tokens.clone();
            e.spawn(crate::Spec::new("writer"), move |cx| {
                let task = cx.task_id();
                let token = cx.with(|sim| sim.kernel().bios.begin(demand, Some(task)));
                tokens.borrow_mut().push(token);
                cx.settle();
            });
        }
        let waiting = |e: &mut Engine| e.sim().kernel_ref().bios.waiting.len();
        e.run_to(1_000_000);
        assert_eq!((waiting(&mut e), tokens.borrow().len()), (2, 2));
        for left in [1, 0] {
            let token = tokens.borrow_mut().remove(0);
            e.sim().bio_ends(token);
            assert_eq!(waiting(&mut e), left);
        }
    }

    #[test]
    fn waiting_submitter_retries_free_memory() {
        let mut e = machine(16 << 8);
        let mut last = vec![];
        while let Some(pfn) = e.sim().alloc_now(Who::KERNEL, 0, Gfp::ATOMIC) {
            last.push(pfn);
        }
        let demand = BioDemand::of(Dir::Write, 1, 0, false);
        while e.sim().kernel_ref().bios.lent[0] < POOL[0] {
            begin(e.sim(), demand);
        }
        let done = std::rc::Rc::new(std::cell::Cell::new(0));
        let at = done.clone();
        e.spawn(crate::Spec::new("writer"), move |cx| {
            let task = cx.task_id();
            cx.with(|sim| sim.kernel().bios.begin(demand, Some(task)));
            cx.settle();
            at.set(cx.now());
        });
        e.run_to(RETRY - 1);
        assert_eq!(
            (done.get(), e.sim().kernel_ref().bios.lent[0]),
            (0, POOL[0] + 1)
        );
        for pfn in last {
            e.sim().give_frame(pfn, 0);
        }
        e.run_to(3 * RETRY);
        assert!((RETRY..2 * RETRY).contains(&done.get()), "{}", done.get());
        // Its own was found elsewhere, so the pool has lent no more than it has.
        assert_eq!(e.sim().kernel_ref().bios.lent[0], POOL[0]);
    }

    #[test]
    fn pool_serves_without_free_memory_or_reserves() {
        let mut e = machine(16 << 8);
        let sim = e.sim();
        let mut blocks = vec![];
        while let Some(pfn) = sim.alloc_now(Who::KERNEL, 0, Gfp::ATOMIC) {
            blocks.push(pfn);
        }
        let free = sim.free_and_total().0;
        let demand = BioDemand::of(Dir::Write, 1, 0, false);
        let tokens: Vec<u32> = (0..10_000).map(|_| begin(sim, demand)).collect();
        assert!(sim.kernel().counters.mempool_used > 0);
        assert!(sim.free_and_total().0 > free / 4);
        for token in tokens {
            sim.bio_ends(token);
        }
        assert_eq!(in_use(sim, CacheKind::Bio), 0);
        for pfn in blocks {
            sim.give_frame(pfn, 0);
        }
    }
}
