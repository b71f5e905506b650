//! Ten million random operations on each design over an era, and a tenth of them over the engine, compared with a model: a bitmap of the memory in use, and
//! what was written into each object. No object overlaps another, none changes by itself, and after
//! `shrink` of empty caches every page is back. `UNFRAG_OPERATIONS` sets another number.

use super::support::{Memory, OPERATIONS};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::ptr::NonNull;
use unfrag::Gfp;
use unfrag_slab::{
    CacheFlags, CacheOptions, Cpu, Design, Due, KmemCache, Rules, SlabConfig, Slabs,
};

const CPUS: u16 = 4;
const NODES: u8 = 2;
const SIZES: [usize; 16] = [
    1, 8, 24, 40, 64, 96, 104, 168, 192, 256, 520, 700, 1024, 2200, 4096, 9000,
];
/// How often all invariants are checked.
const CHECKS: u64 = if cfg!(miri) { 4 } else { 100 };
/// Most objects at a time.
const MOST: usize = if cfg!(miri) { 200 } else { 4000 };

fn operations() -> u64 {
    let set = std::env::var("UNFRAG_OPERATIONS").ok();
    let standard = if cfg!(miri) { 400 } else { OPERATIONS };
    set.map_or(standard, |n| n.parse().expect("a number"))
}

/// Which words of memory are in use.
struct Bitmap {
    base: usize,
    bits: Vec<u64>,
}

impl Bitmap {
    fn mark(&mut self, at: usize, bytes: usize, used: bool) {
        for word in (at - self.base) / 8..(at + bytes - self.base).div_ceil(8) {
            let (i, bit) = (word / 64, 1u64 << (word % 64));
            assert_eq!(self.bits[i] & bit != 0, !used, "an object overlaps another");
            self.bits[i] ^= bit;
        }
    }
}

struct Live {
    object: NonNull<u8>,
    cache: u8,
    tag: u8,
}

/// The caches and the model.
struct Run<'a> {
    caches: Vec<KmemCache<'a>>,
    cpus: Vec<Cpu<'a>>,
    bitmap: Bitmap,
    live: Vec<Live>,
    rng: TestRng,
    tag: u8,
}

impl<'a> Run<'a> {
    fn new(slabs: &'a Slabs<'a>, memory: &Memory, design: Design, checked: CacheFlags) -> Self {
        let cache = |size: &usize| {
            let options = CacheOptions::new("model", *size)
                .design(design)
                .align(1 << (size % 5 + 3))
                .flags(checked | CacheFlags::NO_MERGE);
            slabs.create(&options).unwrap()
        };
        let window = unfrag_slab::Pages::window(&memory.pages);
        let seed = std::env::var("UNFRAG_SEED").map_or(7, |s| s.parse().expect("a number"));
        println!("seed {seed}: set UNFRAG_SEED for another");
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&u64::to_le_bytes(seed));
        Run {
            caches: SIZES.iter().map(cache).collect(),
            cpus: (0..CPUS).map(|c| slabs.cpu(c).unwrap()).collect(),
            bitmap: Bitmap {
                base: window.base.as_ptr() as usize,
                bits: vec![0; window.frames * 8],
            },
            live: vec![],
            rng: TestRng::from_seed(RngAlgorithm::ChaCha, &bytes),
            tag: 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.rng.next_u32()) * n as u64) >> 32) as usize
    }

    fn got(&mut self, cache: usize, object: NonNull<u8>) {
        let size = SIZES[cache];
        let at = object.as_ptr() as usize;
        assert_eq!(at % self.caches[cache].align(), 0, "misaligned");
        self.bitmap.mark(at, size, true);
        self.tag = self.tag.wrapping_add(1);
        unsafe {
            object.as_ptr().write(self.tag);
            object.as_ptr().add(size - 1).write(self.tag);
        }
        self.live.push(Live {
            object,
            cache: cache as u8,
            tag: self.tag,
        });
    }

    fn alloc(&mut self) {
        let (cache, cpu) = (self.below(SIZES.len()), self.below(CPUS.into()));
        let c = &self.caches[cache];
        let choice = self.rng.next_u32() % 32;
        let got = match choice {
            0 => c.alloc_on(&self.cpus[cpu], Gfp::KERNEL, (cpu & 1) as u8),
            1 => c.alloc_on(&self.cpus[cpu], Gfp::KERNEL, (cpu & 1 ^ 1) as u8),
            2 => {
                let mut many = [NonNull::dangling(); 20];
                if c.alloc_bulk(&self.cpus[cpu], Gfp::KERNEL, &mut many)
                    .is_ok()
                {
                    many.into_iter().for_each(|o| self.got(cache, o));
                }
                return;
            }
            3 => c.alloc_without_cpu(Gfp::KERNEL),
            4 => {
                let mut some = [NonNull::dangling(); 20];
                let count = c.alloc_some_without_cpu(Gfp::KERNEL, &mut some);
                some[..count].iter().for_each(|o| self.got(cache, *o));
                return;
            }
            _ => c.alloc(&self.cpus[cpu], Gfp::KERNEL),
        };
        if let Ok(object) = got {
            self.got(cache, object);
        }
    }

    /// Forgets an object that is about to be freed: itself, and its cache.
    fn give(&mut self, i: usize) -> (NonNull<u8>, usize) {
        let Live { object, cache, tag } = self.live.swap_remove(i);
        let size = SIZES[usize::from(cache)];
        let (first, last) = unsafe { (object.read(), object.add(size - 1).read()) };
        assert!(size == 1 || first == tag, "an object changed by itself");
        assert_eq!(last, tag, "an object changed by itself");
        self.bitmap.mark(object.as_ptr() as usize, size, false);
        (object, cache.into())
    }

    /// Frees up to 20 objects of one cache at a time, as they come.
    fn free_some(&mut self) {
        let cache = self.live.last().map(|l| l.cache);
        let mut some = vec![];
        while some.len() < 20
            && let Some(i) = self
                .live
                .iter()
                .rev()
                .take(100)
                .position(|l| Some(l.cache) == cache)
        {
            some.push(self.give(self.live.len() - 1 - i).0);
        }
        if let Some(cache) = cache {
            let c = &self.caches[usize::from(cache)];
            unsafe { c.free_bulk_without_cpu(&some) }.unwrap();
        }
    }

    fn free(&mut self, i: usize) {
        let (object, cache) = self.give(i);
        let c = &self.caches[cache];
        let cpu = (self.rng.next_u32() as usize >> 8) % usize::from(CPUS);
        let freed = match self.rng.next_u32() % 64 {
            0 => unsafe { c.free_without_cpu(object) },
            _ => unsafe { c.free(&self.cpus[cpu], object) },
        };
        freed.unwrap();
    }

    fn step(&mut self, memory: &Memory) {
        // It fills and empties in long waves, so that slabs come and go.
        let full = self.below(2 * MOST) < self.live.len();
        match self.rng.next_u32() % 1_000_000 {
            0..20 => {
                let (cache, cpu) = (self.below(SIZES.len()), self.below(CPUS.into()));
                self.caches[cache].shrink(&self.cpus[cpu]);
            }
            20..60 => {
                let cpu = self.below(CPUS.into());
                self.cpus[cpu].reap(Due::ALL);
            }
            60..80 => {
                // The page allocator runs dry for a while.
                let n = u64::from(self.rng.next_u32() % 8);
                memory
                    .pages
                    .budget
                    .store(n, std::sync::atomic::Ordering::Relaxed);
            }
            80..180 => memory
                .pages
                .budget
                .store(u64::MAX, std::sync::atomic::Ordering::Relaxed),
            180..200 => {
                while !self.live.is_empty() {
                    self.free(self.live.len() - 1);
                }
            }
            _ if full && self.rng.next_u32().is_multiple_of(64) => self.free_some(),
            _ if full => {
                let i = self.below(self.live.len());
                self.free(i);
            }
            _ => self.alloc(),
        }
    }
}

fn run(design: Design, rules: Rules, checked: CacheFlags, operations: u64) {
    let memory = Memory::new(NODES, if cfg!(miri) { 256 } else { 16384 });
    let config = SlabConfig::new(CPUS)
        .nodes(NODES, |c| (c & 1) as u8)
        .rules(rules);
    memory.with(&config, |slabs| {
        let mut r = Run::new(slabs, &memory, design, checked);
        for i in 0..operations {
            r.step(&memory);
            if i % (operations / CHECKS).max(1) == 0 {
                slabs.validate().unwrap();
                // The counts agree with the model.
                for (c, size) in r.caches.iter().zip(SIZES) {
                    let live = r
                        .live
                        .iter()
                        .filter(|l| SIZES[usize::from(l.cache)] == size);
                    let (live, info) = (live.count() as u64, c.info());
                    assert!(info.active_objects >= live && info.total_objects >= live);
                    assert_eq!(info.faults, 0);
                }
            }
        }
        while !r.live.is_empty() {
            r.free(r.live.len() - 1);
        }
        let Run { caches, cpus, .. } = r;
        let own = cpus.into_iter().next().unwrap();
        for cache in &caches {
            let shrunk = cache.shrink(&own);
            assert_eq!(shrunk.asked, 0, "all other tokens are back");
            let info = cache.info();
            assert_eq!(
                (info.pages(), info.total_slabs),
                (0, 0),
                "{design}: {info:?}"
            );
            assert_eq!((info.active_objects, info.total_objects), (0, 0));
        }
        assert_eq!(memory.held(), slabs.record_pages(), "only records are left");
        for cache in caches {
            cache.destroy().unwrap();
        }
        drop(own);
    });
}

/// `spec: 6.2`
#[test]
fn slub_as_of_today_agrees_with_the_model() {
    run(
        Design::Slub,
        Rules::MODERN,
        CacheFlags::empty(),
        operations(),
    );
}

/// `spec: 6.2`
#[test]
fn slub_of_2_6_28_agrees_with_the_model() {
    run(Design::Slub, Rules::S2, CacheFlags::empty(), operations());
}

/// `spec: 6.3`
#[test]
fn slqb_agrees_with_the_model() {
    run(Design::Slqb, Rules::S2, CacheFlags::empty(), operations());
}

/// `spec: 6.1`
#[test]
fn slab_agrees_with_the_model() {
    run(Design::Slab, Rules::S2, CacheFlags::empty(), operations());
}

#[test]
fn checked_caches_agree_with_the_model_and_find_nothing() {
    for design in Design::ALL {
        let operations = operations() / 20;
        run(design, Rules::MODERN, CacheFlags::DEBUG, operations);
    }
}
