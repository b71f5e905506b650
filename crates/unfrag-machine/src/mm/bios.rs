//! What a transfer holds while it is under way: its bio; a vector of its pages, if there are more than
//! fit into that; and a bio and a record of the encrypting layer that it passes through.
//!
//! All come from mempools (`GFP_NOIO`): they are taken from free memory if that can be without waiting
//! and without the reserves, else from the few that the pool keeps. When those are lent too, who submits
//! waits until one comes back, and looks for free memory again every five seconds (without that, a loop
//! device whose thread waits for kswapd, which waits for a bio that stands in line there, waits for
//! ever); that bounds what stands in line before a slow device when nothing is free. The specification is silent on this; that a bio has a cache of its own is in source S2
//! (`bio-0`), sizes and names are those of `/proc/slabinfo`, and how many a pool keeps is assumed.
//!
//! Simplified: the transfer that found a pool empty is under way already while its submitter waits.
//! What an interrupt submits waits for no pool.
//!
//! Invariant: a token is given when a transfer begins and given back once, when it ends; no more wait
//! than were lent beyond what the pools have.

use super::Memory;
use crate::Sim;
use crate::block::Dir;
use crate::engine::{MS, Nanos, TaskId};
use crate::kmem::Obj;
use crate::kmem::caches::Kind;
use std::collections::VecDeque;
use unfrag::Gfp;

/// Pages that a bio has room for in itself.
const INLINE: usize = 4;

/// What a transfer asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// Pages that its bio has room for.
    room: usize,
    /// Whether the request may go deeper than others (`__GFP_HIGH`).
    high: bool,
    /// Whether it passes through an encrypting layer.
    encrypted: bool,
}

impl Want {
    /// What a transfer of so many pages asks for. A file system that writes a file in one go asks for
    /// `room` for as many as the queue takes at a time, before it knows how many there are, and may go
    /// deeper; others write page by page.
    pub fn of(dir: Dir, pages: usize, room: u8, encrypted: bool) -> Want {
        Want {
            room: match dir {
                Dir::Read => pages,
                Dir::Write => room.into(),
            },
            high: room > 0,
            encrypted,
        }
    }

    fn kinds(self) -> [Option<Kind>; 4] {
        let vector = match self.room {
            0..=INLINE => None,
            5..=16 => Some(Kind::BioVec16),
            _ => Some(Kind::BioVec64),
        };
        let layer = |kind| self.encrypted.then_some(kind);
        [
            Some(Kind::Bio),
            vector,
            layer(Kind::Bio),
            layer(Kind::CryptIo),
        ]
    }

    fn gfp(self) -> Gfp {
        let polite =
            (Gfp::KERNEL - Gfp::IO - Gfp::FS) | Gfp::NOMEMALLOC | Gfp::NORETRY | Gfp::NOWARN;
        if self.high {
            polite | Gfp::HIGH
        } else {
            polite
        }
    }
}

/// What the pools keep of each of [`Want::kinds`].
const POOL: [u32; 4] = [2, 2, 16, 16];

/// So long who waits for a pool waits before it tries free memory again.
const RETRY: Nanos = 5_000 * MS;

/// What a transfer holds.
#[derive(Clone, Copy, Default)]
struct Held {
    want: Option<Want>,
    objects: [Option<Obj>; 4],
    /// Which are of the pool's own.
    pooled: [bool; 4],
}

/// What the transfers under way hold.
#[derive(Default)]
pub(crate) struct Bios {
    held: Vec<Held>,
    vacant: Vec<u32>,
    /// Transfers that have begun and hold nothing yet.
    begun: Vec<(u32, Want, Option<TaskId>)>,
    /// How many the pools have lent.
    lent: [u32; 4],
    /// Who waits until a pool has one again, in order, and for which transfer.
    waiting: VecDeque<(TaskId, u32)>,
}

impl Bios {
    /// By how many more was lent than there are.
    fn over(&self) -> usize {
        let over = std::iter::zip(self.lent, POOL).map(|(lent, pool)| lent.saturating_sub(pool));
        over.max().unwrap_or(0) as usize
    }
}

impl Memory {
    /// A transfer begins; what it holds is taken as soon as the allocator can be asked. Returns the
    /// token by which it is known.
    pub(crate) fn bio_begins(&mut self, want: Want, submitter: Option<TaskId>) -> u32 {
        let b = &mut self.bios;
        let token = b.vacant.pop().unwrap_or_else(|| {
            b.held.push(Held::default());
            b.held.len() as u32 - 1
        });
        b.begun.push((token, want, submitter));
        token
    }
}

impl Sim {
    /// Takes what the transfers hold that have just begun. Called before time passes.
    #[inline]
    pub(crate) fn fund_bios(&mut self) {
        if !self.mem_ref().bios.begun.is_empty() {
            self.fund_begun();
        }
    }

    #[cold]
    fn fund_begun(&mut self) {
        let mut begun = std::mem::take(&mut self.mem().bios.begun);
        for (token, want, submitter) in begun.drain(..) {
            let held = Held {
                want: Some(want),
                pooled: want.kinds().map(|kind| kind.is_some()),
                ..Held::default()
            };
            let bios = &mut self.mem().bios;
            bios.held[token as usize] = held;
            for (lent, pooled) in std::iter::zip(&mut bios.lent, held.pooled) {
                *lent += u32::from(pooled);
            }
            let from_pools = self.fund_from_free(token);
            self.mem().counters.mempool_used += from_pools;
            let bios = &mut self.mem().bios;
            if from_pools > 0
                && bios.over() > bios.waiting.len()
                && let Some(task) = submitter
            {
                bios.waiting.push_back((task, token));
                self.sched().add_unsettled(task);
            }
        }
        // Its memory serves the next ones.
        self.mem().bios.begun = begun;
    }

    /// Replaces what a transfer has from the pools by what can be had of free memory. Returns how many
    /// remain.
    fn fund_from_free(&mut self, token: u32) -> u64 {
        let held = self.mem().bios.held[token as usize];
        let Some(want) = held.want else { return 0 };
        let mut remain = 0;
        for (i, kind) in want.kinds().into_iter().enumerate() {
            let Some(kind) = kind.filter(|_| held.pooled[i]) else {
                continue;
            };
            let cache = self.cache(kind);
            let got = self.kmem_nowait(cache, want.gfp());
            let bios = &mut self.mem().bios;
            let held = &mut bios.held[token as usize];
            held.objects[i] = got;
            held.pooled[i] = got.is_none();
            bios.lent[i] -= u32::from(got.is_some());
            remain += u64::from(got.is_none());
        }
        remain
    }

    /// So long a task that waits until its transfers can begin waits at most, if it is for a pool.
    pub(crate) fn bio_wait(&self, task: TaskId) -> Option<Nanos> {
        let waiting = &self.mem_ref().bios.waiting;
        waiting.iter().any(|w| w.0 == task).then_some(RETRY)
    }

    /// A task has waited for a pool that long, and tries once more to do without.
    pub(crate) fn bios_again(&mut self, task: TaskId) {
        let waiting = self.mem_ref().bios.waiting.iter();
        let Some(&(_, token)) = waiting.clone().find(|w| w.0 == task) else {
            return;
        };
        if self.fund_from_free(token) == 0 {
            self.bio_settled(token);
        }
        self.settle_waiting();
    }

    /// A transfer waits for no pool any more.
    fn bio_settled(&mut self, token: u32) {
        let waiting = &mut self.mem().bios.waiting;
        if let Some(at) = waiting.iter().position(|w| w.1 == token)
            && let Some((task, _)) = waiting.remove(at)
        {
            self.world().settled(task);
        }
    }

    /// No more wait than were lent beyond what the pools have.
    fn settle_waiting(&mut self) {
        while self.mem().bios.waiting.len() > self.mem().bios.over() {
            if let Some((task, _)) = self.mem().bios.waiting.pop_front() {
                self.world().settled(task);
            }
        }
    }

    /// A transfer has ended.
    pub(crate) fn bio_ends(&mut self, token: u32) {
        let b = &mut self.mem().bios;
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
    use crate::mm::alloc::Who;
    use crate::{Engine, MachineConfig};
    use unfrag::preset;

    fn machine(frames: u64) -> Engine {
        let mut config = MachineConfig::flat(frames, 2, preset("2.6.32").unwrap().rules);
        config.mem.slab = unfrag_slab::Rules::S2;
        Engine::new(&config).unwrap()
    }

    fn in_use(sim: &Sim, kind: Kind) -> u64 {
        let view = sim.mem_ref().kmem.view(sim.cache(kind));
        view.map_or(0, |v| v.in_use)
    }

    fn begin(sim: &mut Sim, want: Want) -> u32 {
        let token = sim.mem().bio_begins(want, None);
        sim.fund_bios();
        token
    }

    #[test]
    fn a_transfer_holds_its_bio_and_vector_until_it_ends() {
        let mut e = machine(16 << 8);
        let sim = e.sim();
        let read = begin(sim, Want::of(Dir::Read, 12, 0, false));
        let page = begin(sim, Want::of(Dir::Write, 32, 0, true));
        let file = begin(sim, Want::of(Dir::Write, 1, 32, false));
        use Kind::{Bio, BioVec16, BioVec64, CryptIo};
        let count = |sim: &Sim| [Bio, BioVec16, BioVec64, CryptIo].map(|k| in_use(sim, k));
        assert_eq!(count(sim), [4, 1, 1, 1]);
        for token in [file, read, page] {
            sim.bio_ends(token);
        }
        assert_eq!(count(sim), [0; 4]);
        assert_eq!(sim.mem().counters.mempool_used, 0);
        sim.check(0).unwrap();
    }

    #[test]
    fn with_nothing_free_who_submits_waits_until_a_pool_has_one_again() {
        let mut e = machine(16 << 8);
        while e.sim().alloc_now(Who::KERNEL, 0, Gfp::ATOMIC).is_some() {}
        // The caches have some left, which go first.
        let want = Want::of(Dir::Write, 1, 0, false);
        while e.sim().mem_ref().bios.lent[0] < POOL[0] {
            begin(e.sim(), want);
        }
        let tokens = std::rc::Rc::new(std::cell::RefCell::new(vec![]));
        for _ in 0..2 {
            let tokens = tokens.clone();
            e.spawn(crate::Spec::new("writer"), move |cx| {
                let task = cx.task_id();
                let token = cx.with(|sim| sim.mem().bio_begins(want, Some(task)));
                tokens.borrow_mut().push(token);
                cx.settle();
            });
        }
        let waiting = |e: &mut Engine| e.sim().mem_ref().bios.waiting.len();
        e.run_to(1_000_000);
        assert_eq!((waiting(&mut e), tokens.borrow().len()), (2, 2));
        for left in [1, 0] {
            let token = tokens.borrow_mut().remove(0);
            e.sim().bio_ends(token);
            assert_eq!(waiting(&mut e), left);
        }
    }

    #[test]
    fn who_waits_for_a_pool_tries_free_memory_again_after_five_seconds() {
        let mut e = machine(16 << 8);
        let mut last = vec![];
        while let Some(pfn) = e.sim().alloc_now(Who::KERNEL, 0, Gfp::ATOMIC) {
            last.push(pfn);
        }
        let want = Want::of(Dir::Write, 1, 0, false);
        while e.sim().mem_ref().bios.lent[0] < POOL[0] {
            begin(e.sim(), want);
        }
        let done = std::rc::Rc::new(std::cell::Cell::new(0));
        let at = done.clone();
        e.spawn(crate::Spec::new("writer"), move |cx| {
            let task = cx.task_id();
            cx.with(|sim| sim.mem().bio_begins(want, Some(task)));
            cx.settle();
            at.set(cx.now());
        });
        e.run_to(RETRY - 1);
        assert_eq!(
            (done.get(), e.sim().mem_ref().bios.lent[0]),
            (0, POOL[0] + 1)
        );
        for pfn in last {
            e.sim().give_frame(pfn, 0);
        }
        e.run_to(3 * RETRY);
        assert!((RETRY..2 * RETRY).contains(&done.get()), "{}", done.get());
        // Its own was found elsewhere, so the pool has lent no more than it has.
        assert_eq!(e.sim().mem_ref().bios.lent[0], POOL[0]);
    }

    #[test]
    fn with_nothing_free_the_pool_gives_and_the_reserves_are_left_alone() {
        let mut e = machine(16 << 8);
        let sim = e.sim();
        let mut blocks = vec![];
        while let Some(pfn) = sim.alloc_now(Who::KERNEL, 0, Gfp::ATOMIC) {
            blocks.push(pfn);
        }
        let free = sim.free_and_total().0;
        let want = Want::of(Dir::Write, 1, 0, false);
        let tokens: Vec<u32> = (0..10_000).map(|_| begin(sim, want)).collect();
        assert!(sim.mem().counters.mempool_used > 0);
        assert!(sim.free_and_total().0 > free / 4);
        for token in tokens {
            sim.bio_ends(token);
        }
        assert_eq!(in_use(sim, Kind::Bio), 0);
        for pfn in blocks {
            sim.give_frame(pfn, 0);
        }
    }
}
