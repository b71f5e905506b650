//! Time of an object of 64 bytes in a slab cache, compared with `mimalloc` and the system's allocator.
//!
//! - `hot`: one object allocated and freed, on one CPU.
//! - `batch`: 1000 objects allocated, then all freed, the last first.
//! - `remote`: allocated on one CPU, freed on another, two threads at once; time of the pair.
//!
//! Each figure is the least of several rounds, which take turns, in nanoseconds for each object's
//! allocation and free.

#[path = "../tests/caches/support.rs"]
mod support;

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::Instant;
use support::{Eras, Memory};
use unfrag::Gfp;
use unfrag_slab::{CacheFlags, CacheOptions, Cpu, Design, KmemCache, SlabConfig, Slabs};

const SIZE: usize = 64;
const LAYOUT: Layout = match Layout::from_size_align(SIZE, 8) {
    Ok(l) => l,
    Err(_) => panic!("a layout"),
};
const ROUNDS: usize = 21;
const HOT: usize = 1_000_000;
const BATCH: usize = 1000;
const REMOTE: usize = 64 * 6000;

/// An allocator as one thread sees it.
trait Peer {
    fn take(&self) -> NonNull<u8>;
    fn give(&self, object: NonNull<u8>);
}

struct Global<A>(A);

impl<A: GlobalAlloc> Peer for Global<A> {
    #[inline]
    fn take(&self) -> NonNull<u8> {
        NonNull::new(unsafe { self.0.alloc(LAYOUT) }).expect("memory")
    }
    #[inline]
    fn give(&self, object: NonNull<u8>) {
        unsafe { self.0.dealloc(object.as_ptr(), LAYOUT) };
    }
}

struct Slab<'a> {
    cache: &'a KmemCache<'a>,
    cpu: Cpu<'a>,
}

impl Peer for Slab<'_> {
    #[inline]
    fn take(&self) -> NonNull<u8> {
        self.cache.alloc(&self.cpu, Gfp::KERNEL).expect("memory")
    }
    #[inline]
    fn give(&self, object: NonNull<u8>) {
        unsafe { self.cache.free(&self.cpu, object) }.expect("a sound object");
    }
}

fn hot(p: &impl Peer) -> f64 {
    let begin = Instant::now();
    for _ in 0..HOT {
        let object = p.take();
        unsafe { black_box(object.as_ptr()).write(1) };
        p.give(object);
    }
    begin.elapsed().as_nanos() as f64 / HOT as f64
}

fn batch(p: &impl Peer) -> f64 {
    let mut all = Vec::with_capacity(BATCH);
    let begin = Instant::now();
    for _ in 0..HOT / BATCH {
        for _ in 0..BATCH {
            let object = p.take();
            unsafe { black_box(object.as_ptr()).write(1) };
            all.push(object);
        }
        while let Some(object) = all.pop() {
            p.give(object);
        }
    }
    begin.elapsed().as_nanos() as f64 / HOT as f64
}

/// A ring between one producer and one consumer.
struct Ring {
    slots: Vec<AtomicPtr<u8>>,
    head: AtomicUsize,
    tail: AtomicUsize,
    go: AtomicBool,
}

const RING: usize = 4096;
const CHUNK: usize = 64;

impl Ring {
    fn new() -> Ring {
        Ring {
            slots: (0..RING).map(|_| AtomicPtr::default()).collect(),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            go: AtomicBool::new(false),
        }
    }
}

/// Both sides at once, in chunks, so that the ring itself costs little.
fn remote(producer: impl Peer + Send, consumer: impl Peer + Send) -> f64 {
    let ring = &Ring::new();
    std::thread::scope(|threads| {
        let freeing = threads.spawn(move || {
            let mut at = 0;
            while at < REMOTE {
                let end = ring.head.load(Ordering::Acquire);
                if end == at {
                    std::thread::yield_now();
                    continue;
                }
                for i in at..end {
                    let object = ring.slots[i % RING].load(Ordering::Relaxed);
                    consumer.give(NonNull::new(object).expect("an object"));
                }
                at = end;
                ring.tail.store(at, Ordering::Release);
            }
        });
        let allocating = threads.spawn(move || {
            while !ring.go.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            let begin = Instant::now();
            let mut at = 0;
            while at < REMOTE {
                while at + CHUNK - ring.tail.load(Ordering::Acquire) > RING {
                    std::thread::yield_now();
                }
                for i in at..at + CHUNK {
                    let object = producer.take();
                    unsafe { object.as_ptr().write(1) };
                    ring.slots[i % RING].store(object.as_ptr(), Ordering::Relaxed);
                }
                at += CHUNK;
                ring.head.store(at, Ordering::Release);
            }
            begin
        });
        ring.go.store(true, Ordering::Release);
        let begin = allocating.join().expect("no panic");
        freeing.join().expect("no panic");
        begin.elapsed().as_nanos() as f64 / REMOTE as f64
    })
}

fn main() {
    let memory: Memory<Eras> = Memory::new(1, 65536);
    let config = SlabConfig::new(2);
    memory.with(&config, |slabs: &Slabs| {
        let names = ["slub", "slqb", "slab", "mimalloc", "system"];
        let designs = [Design::Slub, Design::Slqb, Design::Slab];
        let caches: Vec<KmemCache> = designs
            .iter()
            .map(|d| {
                let options = CacheOptions::new(d.name(), SIZE)
                    .design(*d)
                    .flags(CacheFlags::NO_MERGE);
                slabs.create(&options).expect("a cache")
            })
            .collect();
        let mut least = [[f64::MAX; 3]; 5];
        for _ in 0..ROUNDS {
            for (i, row) in least.iter_mut().enumerate() {
                let round = match i {
                    0..3 => {
                        let side = |c| Slab {
                            cache: &caches[i],
                            cpu: slabs.cpu(c).expect("a token"),
                        };
                        let p = side(0);
                        let one = [hot(&p), batch(&p)];
                        [one[0], one[1], remote(p, side(1))]
                    }
                    3 => {
                        let p = Global(MiMalloc);
                        [
                            hot(&p),
                            batch(&p),
                            remote(Global(MiMalloc), Global(MiMalloc)),
                        ]
                    }
                    _ => {
                        let p = Global(System);
                        [hot(&p), batch(&p), remote(Global(System), Global(System))]
                    }
                };
                for (l, r) in row.iter_mut().zip(round) {
                    *l = l.min(r);
                }
            }
        }
        println!("ns for each {SIZE}-byte object's allocation and free, least of {ROUNDS} rounds");
        println!("{:<10} {:>8} {:>8} {:>8}", "", "hot", "batch", "remote");
        for (name, row) in names.iter().zip(least) {
            println!("{name:<10} {:>8.2} {:>8.2} {:>8.2}", row[0], row[1], row[2]);
        }
    });
}
