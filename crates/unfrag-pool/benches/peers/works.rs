//! The timed works, in nanoseconds an operation. Each starts with the allocator as the one before left it.
//!
//! - `bulk`: blocks are taken until there are no more, or a thread has its share.
//! - `random free`: half of them are given back, shuffled.
//! - `pair`: a block is taken and given back. An operation is both.
//! - `churn`: a random block of those held is given back, and another one is taken. An operation is both.
//! - `cross`: each of two threads takes blocks that the other gives back. An operation is both.
//!
//! With two threads, each does as much as one does, at the same time, and the mean counts.
//!
//! It is the CPU time of the thread, so that what else runs on the computer counts little. A wait in the kernel does not
//! count either, a spin does.

use crate::allocators::number_thread;
use crate::own::{Own, Visit};
use crate::random::Random;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};
use unfrag::MigrateType::Movable;

/// Names of the works, as they are done.
pub const WORKS: [&str; 5] = ["bulk", "random free", "pair", "churn", "cross"];

/// A slow allocator stops here.
const LIMIT: Duration = Duration::from_millis(200);

/// Operations between two looks at the clock.
const STRIDE: u32 = 1 << 13;

/// Does all works at one order.
pub struct Timed<'a> {
    pub frames: u32,
    pub order: u8,
    pub only: Option<&'a str>,
    /// For each work that was done, nanoseconds an operation.
    pub ns: Vec<(&'static str, f64)>,
}

impl Visit for Timed<'_> {
    fn visit<O: Own>(&mut self, owns: Vec<O>) {
        let threads = owns.len();
        let barrier = Barrier::new(threads);
        let bench = Bench {
            order: self.order,
            only: self.only,
            barrier: &barrier,
            passed: &Mutex::new(vec![Vec::new(); threads]),
            over: &AtomicBool::new(false),
            threads,
            share: (self.frames >> self.order) as usize / threads,
        };
        let each: Vec<Vec<(&str, f64)>> = std::thread::scope(|s| {
            let run = |(i, own)| s.spawn(move || bench.run(i, own));
            let all: Vec<_> = owns.into_iter().enumerate().map(run).collect();
            all.into_iter()
                .map(|t| t.join().expect("no panic"))
                .collect()
        });
        let of = |i: usize| each.iter().map(|t| t[i].1).sum::<f64>() / threads as f64;
        self.ns = (0..each[0].len()).map(|i| (each[0][i].0, of(i))).collect();
    }
}

/// Keeps a thread on a CPU, where there are as many.
pub fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    if let Err(e) = sched_setaffinity(None, &set) {
        eprintln!("a thread could not be kept on CPU {cpu}: {e}");
    }
}

#[derive(Clone, Copy)]
struct Bench<'a> {
    order: u8,
    only: Option<&'a str>,
    barrier: &'a Barrier,
    /// Blocks for each thread to give back.
    passed: &'a Mutex<Vec<Vec<u32>>>,
    /// `cross` has taken long enough.
    over: &'a AtomicBool,
    threads: usize,
    /// Blocks of memory for each thread.
    share: usize,
}

impl Bench<'_> {
    fn wants(&self, work: &str) -> bool {
        self.only.is_none_or(|only| only == work)
    }

    fn run<O: Own>(&self, thread: usize, mut own: O) -> Vec<(&'static str, f64)> {
        pin(thread);
        number_thread(thread);
        let mut random = Random::new(thread as u64 + 1);
        let mut ns = Vec::new();
        let mut held = Vec::with_capacity(1 << 22);
        let mut note = |work, time: f64| {
            if self.wants(work) {
                ns.push((work, time));
            }
            self.barrier.wait();
        };
        self.barrier.wait();
        note("bulk", self.bulk(&mut own, &mut held));
        random.shuffle(&mut held);
        let half = held.split_off(held.len() / 2);
        self.barrier.wait();
        note("random free", self.random_free(&mut own, &half));
        if self.wants("pair") {
            note("pair", self.pair(&mut own));
        }
        if self.wants("churn") {
            note("churn", self.churn(&mut own, &mut held, &mut random));
        }
        if self.threads == 2 && self.wants("cross") {
            note("cross", self.cross(&mut own, thread));
        }
        for frame in held {
            own.give(frame, self.order, Movable);
        }
        ns
    }

    fn bulk<O: Own>(&self, own: &mut O, held: &mut Vec<u32>) -> f64 {
        // Blocks of a higher order are few: they are taken again and again.
        let rounds = if self.order == 0 { 1 } else { 40 };
        let (mut time, mut n) = (Duration::ZERO, 0);
        for round in 0..rounds {
            let start = Cpu::now();
            while held.len() < self.share
                && let Some(frame) = own.take(black_box(self.order), Movable)
            {
                held.push(frame);
            }
            time += start.elapsed();
            n += held.len();
            self.barrier.wait();
            if round + 1 < rounds {
                for frame in held.drain(..) {
                    own.give(frame, self.order, Movable);
                }
            }
            self.barrier.wait();
        }
        nanos(time) / n.max(1) as f64
    }

    fn random_free<O: Own>(&self, own: &mut O, half: &[u32]) -> f64 {
        let rounds = if self.order == 0 { 1 } else { 40 };
        let (mut time, mut n) = (Duration::ZERO, 0);
        let mut half = half.to_vec();
        for round in 0..rounds {
            let start = Cpu::now();
            for &frame in &half {
                own.give(frame, black_box(self.order), Movable);
            }
            time += start.elapsed();
            n += half.len();
            self.barrier.wait();
            if round + 1 < rounds {
                // The other thread may have cached some.
                let wanted = half.len();
                half.clear();
                let taken = std::iter::from_fn(|| own.take(self.order, Movable));
                half.extend(taken.take(wanted));
                let mut random = Random::new(round + 7);
                random.shuffle(&mut half);
            }
            self.barrier.wait();
        }
        nanos(time) / n.max(1) as f64
    }

    fn pair<O: Own>(&self, own: &mut O) -> f64 {
        timed(10_000_000, || {
            for _ in 0..STRIDE {
                let frame = own.take(black_box(self.order), Movable).expect("memory");
                own.give(black_box(frame), self.order, Movable);
            }
        })
    }

    fn churn<O: Own>(&self, own: &mut O, held: &mut [u32], random: &mut Random) -> f64 {
        timed(4_000_000, || {
            for _ in 0..STRIDE {
                let victim = &mut held[random.below(held.len())];
                own.give(*victim, black_box(self.order), Movable);
                *victim = own.take(self.order, Movable).expect("just freed");
            }
        })
    }

    fn cross<O: Own>(&self, own: &mut O, thread: usize) -> f64 {
        let most = if self.order == 0 { 4096 } else { 256 };
        // Half of the share is held.
        let batch = most.min(self.share / 4);
        let rounds = 200;
        let mut time = Duration::ZERO;
        let mut n = 0;
        let mut blocks = Vec::with_capacity(batch);
        let begin = Instant::now();
        for _ in 0..rounds {
            let start = Cpu::now();
            for _ in 0..batch {
                blocks.push(own.take(black_box(self.order), Movable).expect("memory"));
            }
            time += start.elapsed();
            self.passed.lock().expect("no panic")[1 - thread] = std::mem::take(&mut blocks);
            self.barrier.wait();
            blocks = std::mem::take(&mut self.passed.lock().expect("no panic")[thread]);
            let start = Cpu::now();
            for frame in blocks.drain(..) {
                own.give(frame, black_box(self.order), Movable);
            }
            time += start.elapsed();
            n += batch;
            // One of them decides for both.
            if thread == 0 && begin.elapsed() > LIMIT * 2 {
                self.over.store(true, Relaxed);
            }
            self.barrier.wait();
            if self.over.load(Relaxed) {
                break;
            }
        }
        nanos(time) / f64::from(n as u32)
    }
}

/// Nanoseconds an operation, of `n` operations, or of so many as the limit allows.
fn timed(n: u32, mut stride: impl FnMut()) -> f64 {
    let start = Cpu::now();
    let mut done = 0;
    while done < n && (done == 0 || start.elapsed() < LIMIT) {
        stride();
        done += STRIDE;
    }
    nanos(start.elapsed()) / f64::from(done)
}

/// A moment of the thread's CPU time.
struct Cpu(Duration);

impl Cpu {
    fn now() -> Cpu {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Cpu(now.try_into().expect("a time"))
    }

    fn elapsed(&self) -> Duration {
        Cpu::now().0.saturating_sub(self.0)
    }
}

fn nanos(time: Duration) -> f64 {
    time.as_nanos() as f64
}
