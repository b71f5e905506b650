//! Time of an allocation and a free, compared with other allocators and a plain stack of frame numbers.
//!
//! - `hot`: one block allocated and freed, of order 0 and of order 9 (a huge page).
//! - `fill`: all of 1 GiB, frame by frame.
//! - `random free`: the same frames back, in random order.
//!
//! Peers: `buddy_system_allocator` (trees of free blocks), `bitmap-allocator` (a tree of bitmaps), and
//! a vector of frame numbers, which neither merges nor checks.

use bitmap_allocator::{BitAlloc, BitAlloc1M};
use buddy_system_allocator::FrameAllocator;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::{Duration, Instant};
use unfrag::{Builder, CpuId, Gfp, Manager, NullHost, Order, Pfn, Request};

const PAGES: u64 = 1 << 18;
const HUGE: u8 = 9;

/// An allocator under test.
trait Peer {
    fn take(&mut self, order: u8) -> Option<u64>;
    fn give(&mut self, frame: u64, order: u8);
}

impl Peer for Manager<'_, NullHost> {
    #[inline]
    fn take(&mut self, order: u8) -> Option<u64> {
        let request = Request::new(Order(order), Gfp::HIGHUSER_MOVABLE);
        self.alloc(&request).ok().map(|p| p.0)
    }
    #[inline]
    fn give(&mut self, frame: u64, order: u8) {
        assert!(self.free(CpuId(0), Pfn(frame), Order(order)).is_ok());
    }
}

impl Peer for FrameAllocator<32> {
    #[inline]
    fn take(&mut self, order: u8) -> Option<u64> {
        self.alloc(1 << order).map(|f| f as u64)
    }
    #[inline]
    fn give(&mut self, frame: u64, order: u8) {
        self.dealloc(frame as usize, 1 << order);
    }
}

struct Bitmap(Box<BitAlloc1M>);

impl Peer for Bitmap {
    #[inline]
    fn take(&mut self, order: u8) -> Option<u64> {
        let got = match order {
            0 => self.0.alloc(),
            _ => self.0.alloc_contiguous(None, 1 << order, order.into()),
        };
        got.map(|f| f as u64)
    }
    #[inline]
    fn give(&mut self, frame: u64, order: u8) {
        let freed = match order {
            0 => self.0.dealloc(frame as usize),
            _ => self.0.dealloc_contiguous(frame as usize, 1 << order),
        };
        assert!(freed);
    }
}

/// A stack of frame numbers, as the lower bound. It has no orders.
struct Lifo(Vec<u32>);

impl Peer for Lifo {
    #[inline]
    fn take(&mut self, _: u8) -> Option<u64> {
        self.0.pop().map(u64::from)
    }
    #[inline]
    fn give(&mut self, frame: u64, _: u8) {
        self.0.push(frame as u32);
    }
}

/// A fresh manager of an era, lent to `f`.
fn with_manager<T>(era: &str, f: impl FnOnce(&mut Manager<NullHost>) -> T) -> T {
    let config = Builder::new().region(Pfn(0), PAGES).era(era);
    let mut memory = vec![0; config.layout().expect("an era").words];
    f(&mut config.boot(NullHost, &mut memory).expect("a manager"))
}

fn buddy() -> FrameAllocator<32> {
    let mut b = FrameAllocator::new();
    b.add_frame(0, PAGES as usize);
    b
}

fn bitmap() -> Bitmap {
    let mut b = Bitmap(Box::new(BitAlloc1M::DEFAULT));
    b.0.insert(0..PAGES as usize);
    b
}

fn lifo() -> Lifo {
    Lifo((0..PAGES as u32).rev().collect())
}

fn hot<P: Peer>(p: &mut P, order: u8, rounds: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..rounds {
        let frame = p.take(black_box(order)).expect("memory");
        p.give(black_box(frame), order);
    }
    start.elapsed()
}

/// Time to take everything there is, and to give it back in random order.
fn fill_and_free<P: Peer>(p: &mut P) -> (Duration, Duration) {
    let mut held = Vec::with_capacity(PAGES as usize);
    let start = Instant::now();
    while let Some(frame) = p.take(0) {
        held.push(frame);
    }
    let fill = start.elapsed();
    assert!(held.len() as u64 > PAGES * 9 / 10, "{} frames", held.len());
    let mut x = 1u64;
    for i in (1..held.len()).rev() {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        held.swap(i, (x >> 33) as usize % (i + 1));
    }
    let start = Instant::now();
    for frame in held {
        p.give(frame, 0);
    }
    (fill, start.elapsed())
}

fn bench(c: &mut Criterion) {
    for order in [0, HUGE] {
        let mut g = c.benchmark_group(format!("hot, order {order}"));
        for era in ["6.1", "6.18"] {
            g.bench_function(format!("unfrag {era}"), |b| {
                with_manager(era, |m| b.iter_custom(|n| hot(m, order, n)));
            });
        }
        g.bench_function("buddy_system_allocator", |b| {
            let mut p = buddy();
            b.iter_custom(|n| hot(&mut p, order, n));
        });
        g.bench_function("bitmap-allocator", |b| {
            let mut p = bitmap();
            b.iter_custom(|n| hot(&mut p, order, n));
        });
        g.bench_function("bare LIFO", |b| {
            let mut p = lifo();
            b.iter_custom(|n| hot(&mut p, order, n));
        });
        g.finish();
    }
    for (name, which) in [("fill", 0), ("random free", 1)] {
        let mut g = c.benchmark_group(name);
        g.throughput(Throughput::Elements(PAGES)).sample_size(10);
        let pick = |both: (Duration, Duration)| if which == 0 { both.0 } else { both.1 };
        for era in ["6.1", "6.18"] {
            g.bench_function(format!("unfrag {era}"), |b| {
                b.iter_custom(|n| {
                    (0..n)
                        .map(|_| pick(with_manager(era, |m| fill_and_free(m))))
                        .sum()
                });
            });
        }
        g.bench_function("buddy_system_allocator", |b| {
            b.iter_custom(|n| (0..n).map(|_| pick(fill_and_free(&mut buddy()))).sum());
        });
        g.bench_function("bitmap-allocator", |b| {
            b.iter_custom(|n| (0..n).map(|_| pick(fill_and_free(&mut bitmap()))).sum());
        });
        g.bench_function("bare LIFO", |b| {
            b.iter_custom(|n| (0..n).map(|_| pick(fill_and_free(&mut lifo()))).sum());
        });
        g.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
