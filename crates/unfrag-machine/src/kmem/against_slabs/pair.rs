//! A cache of this module and one of `unfrag-slab` that do the same operations.
#![allow(unsafe_code)]

use super::super::allocator::DesignState;
use super::super::records::SlabPlace;
use super::super::*;
use crate::engine::Rng;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Mutex;
use unfrag_eras::{Gfp, MigrateType, Pfn};
use unfrag_slab::{
    CacheFlags, CacheOptions, Cpu, Design, FrameEntry, KmemCache, PageRequest, Pages, Rules,
    SlabConfig, Slabs, Window,
};

/// Frames of the real caches' memory: more than 32 MiB, as SLAB's order depends on that.
pub(super) const FRAMES: usize = 32768;
pub(super) const FIRST: u64 = 1024;

/// The blocks that the source has given and got back.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) next: usize,
    pub(super) vacant: BTreeMap<u8, Vec<u64>>,
    /// Slabs out: order by first frame.
    pub(super) slabs: BTreeMap<u64, u8>,
    /// Slabs given and taken back since the last look.
    pub(super) given: Vec<(u64, u8)>,
    pub(super) returned: Vec<(u64, u8)>,
    /// Requests for slabs above their least order fail.
    pub(super) tight: bool,
}

/// A source of pages that separates slabs from the caches' own records: objects are asked for with
/// `THISNODE`, which requests for records drop.
pub(super) struct Source {
    pub(super) base: NonNull<u8>,
    pub(super) layout: Layout,
    pub(super) ledger: Mutex<Ledger>,
}

// SAFETY: the memory is reached by the caches alone, the ledger through its lock.
unsafe impl Sync for Source {}

// SAFETY: each block is carved once out of the memory, aligned to its order, and handed out again only
// when it is back.
unsafe impl Pages for Source {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        let mut l = self.ledger.lock().unwrap();
        let (order, slab) = (request.order, request.gfp.contains(Gfp::THISNODE));
        // SLUB's try for more than the least order is one without retries.
        if slab && l.tight && request.gfp.contains(Gfp::NORETRY) {
            return None;
        }
        let vacant = l.vacant.entry(order).or_default().pop();
        let pfn = vacant.or_else(|| {
            let at = l.next.next_multiple_of(1 << order);
            (at + (1 << order) <= FRAMES).then(|| {
                l.next = at + (1 << order);
                FIRST + at as u64
            })
        })?;
        if slab {
            l.slabs.insert(pfn, order);
            l.given.push((pfn, order));
        }
        Some(Pfn(pfn))
    }
    unsafe fn free(&self, first: Pfn, order: u8, _mt: MigrateType) {
        let mut l = self.ledger.lock().unwrap();
        l.vacant.entry(order).or_default().push(first.0);
        if l.slabs.remove(&first.0).is_some() {
            l.returned.push((first.0, order));
        }
    }
    fn window(&self) -> Window {
        Window {
            first: Pfn(FIRST),
            frames: FRAMES,
            base: self.base,
        }
    }
}

impl Source {
    pub(super) fn new() -> Source {
        let layout = Layout::from_size_align(FRAMES * 4096, 4 << 20).unwrap();
        // SAFETY: the size is not 0.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        Source {
            base,
            layout,
            ledger: Mutex::default(),
        }
    }
    /// First frame of the slab in which an object lies.
    pub(super) fn slab_of(&self, object: NonNull<u8>) -> u64 {
        let off = object.addr().get() - self.base.addr().get();
        let frame = FIRST + (off / 4096) as u64;
        *self
            .ledger
            .lock()
            .unwrap()
            .slabs
            .range(..=frame)
            .next_back()
            .unwrap()
            .0
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // SAFETY: allocated with that layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// How much must be equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Equal {
    /// Each object lies in the same slab, and the same slabs come and go at the same operations.
    Slabs,
    /// As many slabs come and go at the same operations.
    Counts,
    /// As many objects are in use; slabs are looked at by [`Pair::pages`] alone.
    Objects,
}

pub(super) struct Live {
    pub(super) cache: usize,
    pub(super) obj: Obj,
    pub(super) object: NonNull<u8>,
}

/// Both, side by side.
pub(super) struct Pair<'a> {
    pub(super) kmem: Kmem,
    pub(super) source: &'a Source,
    pub(super) slabs: &'a Slabs<'a>,
    pub(super) cpus: Vec<Cpu<'a>>,
    pub(super) caches: Vec<(CacheId, KmemCache<'a>)>,
    pub(super) live: Vec<Live>,
    /// Objects of each cache of [`Kmem`], by its number.
    pub(super) in_use: Vec<u64>,
    pub(super) equal: Equal,
    pub(super) log: Vec<String>,
}

impl Pair<'_> {
    pub(super) fn fail(&self, what: String) -> ! {
        let tail = self.log.len().saturating_sub(40);
        let last = self.log[tail..].join("\n  ");
        panic!(
            "operation {}: {what}; the last were\n  {last}",
            self.log.len()
        );
    }

    pub(super) fn alloc(&mut self, cpu: usize, cache: usize) {
        self.log.push(format!("alloc cpu {cpu} cache {cache}"));
        let id = self.caches[cache].0;
        let real = &self.caches[cache].1;
        let object = real.alloc(&self.cpus[cpu], Gfp::KERNEL | Gfp::THISNODE);
        let object = object.expect("memory for an object");
        let given = std::mem::take(&mut self.source.ledger.lock().unwrap().given);
        let took = self.kmem.take(cpu, id);
        let grew = usize::from(took.is_none());
        if grew != given.len() && self.equal != Equal::Objects {
            self.fail(format!("{grew} new slab here, {} there", given.len()));
        }
        let obj = took.unwrap_or_else(|| {
            let (first, last) = self.kmem.tries(id, Gfp::KERNEL, 1, 1);
            let tight = self.source.ledger.lock().unwrap().tight;
            let order = first.filter(|_| !tight).map_or(last.order, |t| t.order);
            let (pfn, there) = given.first().copied().unwrap_or((0, order));
            if order != there {
                self.fail(format!("a slab of order {order} here, {there} there"));
            }
            self.kmem.add_slab(cpu, id, pfn as u32, order);
            self.kmem.take(cpu, id).expect("a new slab has an object")
        });
        self.in_use[usize::from(id.0)] += 1;
        self.live.push(Live { cache, obj, object });
        if self.equal == Equal::Slabs {
            let here = u64::from(self.kmem.arena.slabs[obj.raw() as usize].pfn);
            let there = self.source.slab_of(object);
            if here != there {
                self.fail(format!("an object of slab {here} here, of {there} there"));
            }
        }
        self.compare(Some(cache));
    }

    pub(super) fn free(&mut self, cpu: usize, n: usize) {
        let Live { cache, obj, object } = self.live.swap_remove(n);
        self.log
            .push(format!("free cpu {cpu} cache {cache} (live {n})"));
        self.kmem.give(cpu, obj);
        self.in_use[usize::from(self.caches[cache].0.0)] -= 1;
        // SAFETY: it came from this cache, and is forgotten here.
        unsafe { self.caches[cache].1.free(&self.cpus[cpu], object) }.expect("a good object");
        self.compare(Some(cache));
    }

    pub(super) fn reap(&mut self, cpu: usize) {
        self.log.push(format!("reap cpu {cpu}"));
        self.kmem.reap(cpu, unfrag_slab::Due::ALL);
        self.cpus[cpu].reap(unfrag_slab::Due::ALL);
        self.compare(None);
    }

    /// Pages here and there.
    pub(super) fn pages(&self) -> (u64, u64) {
        (self.kmem.pages(), self.slabs.slab_pages())
    }

    /// Whether freeing this object on this CPU makes too many partial slabs of it.
    pub(super) fn overflows(&self, cpu: usize, n: usize) -> bool {
        let slab = self.kmem.arena.slabs[self.live[n].obj.raw() as usize];
        let DesignState::Slub(slub) = &self.kmem.caches[usize::from(slab.cache)].state else {
            return false;
        };
        slab.place == SlabPlace::Full && slub.has_no_room_for_partial(cpu)
    }

    pub(super) fn compare(&mut self, cache: Option<usize>) {
        let mut here: Vec<(u64, u8)> = std::iter::from_fn(|| self.kmem.freed())
            .map(|(pfn, order)| (pfn.into(), order))
            .collect();
        let mut there = std::mem::take(&mut self.source.ledger.lock().unwrap().returned);
        if self.equal == Equal::Objects {
            return;
        }
        here.sort_unstable();
        there.sort_unstable();
        if self.equal == Equal::Counts {
            let orders = |all: &[(u64, u8)]| all.iter().map(|b| (0, b.1)).collect::<Vec<_>>();
            (here, there) = (orders(&here), orders(&there));
            here.sort_unstable();
            there.sort_unstable();
        }
        if here != there {
            self.fail(format!("slabs gone: {here:?} here, {there:?} there"));
        }
        if self.kmem.pages() != self.slabs.slab_pages() {
            let there = self.slabs.slab_pages();
            self.fail(format!("{} pages here, {there} there", self.kmem.pages()));
        }
        let Some(cache) = cache else { return };
        let (id, real) = &self.caches[cache];
        let (view, info) = (self.kmem.view(*id).unwrap(), real.info());
        let live = self.in_use[usize::from(id.0)];
        let stat = view.stat;
        let here = [
            view.slabs,
            view.pages,
            view.order.into(),
            view.size.into(),
            view.in_use,
            stat.fallbacks,
            stat.alloc_fast + stat.alloc_slow,
            stat.free_fast + stat.free_slow,
        ];
        let there = [
            info.total_slabs,
            info.pages(),
            info.order.into(),
            info.size.into(),
            live,
            info.order_fallbacks,
            info.allocs(),
            info.frees(),
        ];
        if here != there {
            self.fail(format!("{here:?} here, {there:?} there"));
        }
        if self.equal == Equal::Slabs {
            // `slub_hit_count_differs`.
            let made = if info.design == Design::Slub {
                stat.grown
            } else {
                0
            };
            let here = [stat.alloc_fast - made, stat.free_fast];
            let there = [info.alloc_fast, info.free_fast];
            if here != there {
                self.fail(format!("fast: {here:?} here, {there:?} there"));
            }
        }
    }
}

/// Runs `f` on a pair whose caches have objects of these sizes, every third to be shrunk.
pub(super) fn pair(
    rules: Rules,
    cpus: u16,
    sizes: &[u32],
    equal: Equal,
    f: impl FnOnce(&mut Pair),
) {
    let source = Source::new();
    let mut table: Vec<FrameEntry> = (0..FRAMES).map(|_| FrameEntry::new()).collect();
    let config = SlabConfig::new(cpus).rules(rules);
    let slabs = Slabs::new(&source, &mut table, &config).unwrap();
    let mut kmem = Kmem::new(rules, cpus.into());
    let make = |(i, size): (usize, &u32)| {
        let flags = match i % 3 == 2 {
            true => CacheFlags::RECLAIM_ACCOUNT,
            false => CacheFlags::empty(),
        };
        let options = CacheOptions::new("cache", *size as usize).flags(flags);
        (
            kmem.create("cache", *size, i % 3 == 2),
            slabs.create(&options).unwrap(),
        )
    };
    let caches = sizes.iter().enumerate().map(make).collect();
    let mut pair = Pair {
        kmem,
        source: &source,
        slabs: &slabs,
        cpus: (0..cpus).map(|c| slabs.cpu(c).unwrap()).collect(),
        caches,
        live: vec![],
        in_use: vec![0; sizes.len()],
        equal,
        log: vec![],
    };
    f(&mut pair);
    pair.kmem.validate().unwrap();
    while let Some(live) = pair.live.pop() {
        // SAFETY: it came from this cache, and is forgotten here.
        let freed = unsafe { pair.caches[live.cache].1.free(&pair.cpus[0], live.object) };
        freed.expect("a good object");
    }
}

pub(super) const SIZES: [u32; 10] = [24, 64, 104, 192, 256, 760, 1024, 2112, 4096, 9000];

/// Sizes of which a slab of SLAB has at most 16 objects.
pub(super) const FEW_A_SLAB: [u32; 6] = [256, 760, 1024, 2112, 4096, 9000];

pub(super) fn every(mut f: impl FnMut(Rules, u16, u64)) {
    for seed in 0..3 {
        for rules in [Rules::S2, Rules::MODERN] {
            for cpus in [1, 3] {
                f(rules, cpus, seed);
            }
        }
    }
}

pub(super) fn churn(p: &mut Pair, rng: &mut Rng, cpus: u16, steps: u32, most: usize, reap: bool) {
    let caches = p.caches.len() as u64;
    for step in 0..steps {
        let cpu = rng.below(cpus.into()) as usize;
        let percent = if (step / 1000) % 2 == 0 { 65 } else { 35 };
        if p.live.is_empty() || (p.live.len() < most && rng.below(100) < percent) {
            p.alloc(cpu, rng.below(caches) as usize);
        } else {
            let n = rng.below(p.live.len() as u64) as usize;
            if p.equal == Equal::Slabs && p.overflows(cpu, n) {
                return;
            }
            p.free(cpu, n);
        }
        if reap && step % 500 == 499 {
            p.reap(cpu);
        }
    }
}
