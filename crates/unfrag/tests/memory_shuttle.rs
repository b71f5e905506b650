//! Whole scenarios of several CPUs on one memory, with threads interleaved at every lock, at random. A program of its own,
//! since it is built with `--cfg shuttle`. Run by `checks/concurrency/run`.
#![cfg(shuttle)]

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
use shuttle::thread;
use unfrag::lock_api::{GuardSend, RawMutex};
use unfrag::maps::Gigabyte;
use unfrag::maps::GiveError;
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{AllocError, MigrateType, Order, Pfn};
use unfrag::{Barrier, Local, Marks, Memory, MemoryConfig, MemoryLayout};

/// A lock that spins, and lets others run meanwhile.
struct Spin(AtomicBool);

#[expect(clippy::declare_interior_mutable_const, reason = "`lock_api` wants it")]
unsafe impl RawMutex for Spin {
    const INIT: Spin = Spin(AtomicBool::new(false));
    type GuardMarker = GuardSend;

    fn lock(&self) {
        while !self.try_lock() {
            thread::yield_now();
        }
    }
    fn try_lock(&self) -> bool {
        !self.0.swap(true, SeqCst)
    }
    unsafe fn unlock(&self) {
        self.0.store(false, SeqCst);
    }
}

const MOV: MigrateType = MigrateType::Movable;
const UNM: MigrateType = MigrateType::Unmovable;
/// Few enough that the arrays of two CPUs hold a good part of them.
const FRAMES: u64 = 1024;
/// Frames that all but those who cannot wait leave.
const MIN: u64 = 32;

/// Frees, where frames are only numbers: what is wrong with a number is what the tests look for.
trait Frees {
    fn give(&mut self, pfn: Pfn, order: Order, mt: MigrateType) -> Result<(), GiveError>;
}

impl Frees for Local<'_, '_, Spin> {
    fn give(&mut self, pfn: Pfn, order: Order, mt: MigrateType) -> Result<(), GiveError> {
        // SAFETY: nothing is at a frame, so nobody can use one.
        unsafe { self.free(pfn, order, mt) }
    }
}

fn iterations() -> usize {
    let set = std::env::var("UNFRAG_ITERATIONS").ok();
    set.map_or(300, |n| n.parse().expect("a number"))
}

fn check(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 18;
    shuttle::Runner::new(scheduler, config).run(scenario);
}

/// Under random schedules, and under those that preempt seldom.
fn always(scenario: impl Fn() + Clone + Send + Sync + 'static) {
    check(RandomScheduler::new(iterations()), scenario.clone());
    check(PctScheduler::new(3, iterations()), scenario);
}

/// One thread runs at a time, so what each has written all see. Others go on before it returns.
fn others_go_on() -> bool {
    thread::yield_now();
    true
}

/// A memory, and who has each of its frames.
struct World {
    memory: Memory<'static, Spin>,
    taken: Mutex<Vec<bool>>,
}

impl World {
    /// Runs threads on a memory, who drain what others keep; then all of it must be free again.
    fn with(threads: &[fn(&World)]) {
        // SAFETY: as it says.
        World::with_barrier(Some(unsafe { Barrier::new(others_go_on) }), threads);
    }

    fn with_barrier(barrier: Option<Barrier>, threads: &[fn(&World)]) {
        let marks = Marks {
            min: MIN,
            ..Marks::NONE
        };
        let config = MemoryConfig {
            locals: threads.len(),
            marks,
            barrier,
            ..MemoryConfig::new(Pfn(0), FRAMES)
        };
        let words = vec![0; MemoryLayout::of(&config).words].into_boxed_slice();
        let words = Box::into_raw(words);
        let directory = Box::into_raw(Box::new([Gigabyte::NONE]));
        // The threads end before they go.
        let mut rest = unsafe { &mut *words };
        let memory = Memory::new(config);
        let started = memory.start(unsafe { &mut *directory }, &mut rest);
        started.expect("a memory");
        memory.add(Pfn(0), FRAMES, &mut rest).expect("new");
        let world = World {
            memory,
            taken: Mutex::new(vec![false; FRAMES as usize]),
        };
        thread::scope(|scope| {
            for run in threads {
                let world = &world;
                scope.spawn(move || run(world));
            }
        });
        world.memory.validate().expect("a sound state");
        assert_eq!(world.memory.free_frames(), FRAMES);
        assert_eq!(world.memory.counts().free, FRAMES);
        assert_eq!(world.memory.refused(), 0);
        drop(world);
        drop(unsafe { Box::from_raw(words) });
        drop(unsafe { Box::from_raw(directory) });
    }

    fn stamp(&self, p: Pfn, order: u8, taken: bool) {
        let mut all = self.taken.lock().expect("no panic");
        for f in &mut all[p.0 as usize..p.0 as usize + (1 << order)] {
            assert_ne!(std::mem::replace(f, taken), taken, "{p:?}");
        }
    }

    fn take(
        &self,
        l: &mut Local<'_, '_, Spin>,
        order: u8,
        mt: MigrateType,
    ) -> Result<Pfn, AllocError> {
        let p = l.alloc(Order(order), mt)?;
        self.stamp(p, order, true);
        Ok(p)
    }

    fn give(&self, l: &mut Local<'_, '_, Spin>, p: Pfn, order: u8, mt: MigrateType) {
        self.stamp(p, order, false);
        l.give(p, Order(order), mt).expect("in use");
    }
}

/// Takes some, and gives them back, so that arrays are refilled and drained.
fn comes_and_goes(w: &World) {
    let mut l = w.memory.local().expect("a local");
    for round in 0..2 {
        let mt = if round == 0 { MOV } else { UNM };
        let held: Vec<Pfn> = (0..150).map_while(|_| w.take(&mut l, 0, mt).ok()).collect();
        let block = w.take(&mut l, 4, mt).ok();
        held.into_iter().for_each(|p| w.give(&mut l, p, 0, mt));
        block.into_iter().for_each(|p| w.give(&mut l, p, 4, mt));
    }
}

/// Takes all that there is, and finds nothing more.
fn takes_all(w: &World) {
    let mut l = w.memory.local().expect("a local");
    let mut held = Vec::new();
    for _ in 0..2 {
        while let Ok(p) = w.take(&mut l, 0, MOV) {
            held.push(p);
        }
        thread::yield_now();
    }
    held.into_iter().for_each(|p| w.give(&mut l, p, 0, MOV));
}

/// Drains what others keep, whatever they do.
fn drains(w: &World) {
    for _ in 0..6 {
        w.memory.drain_locals();
        thread::yield_now();
    }
}

/// Takes what is there and gives it back, flushes, and ends, again and again.
fn flushes_and_ends(w: &World) {
    for order in [0, 3, 9] {
        let mut l = w.memory.local().expect("a local");
        let held: Vec<Pfn> = (0..20)
            .map_while(|_| w.take(&mut l, order, MOV).ok())
            .collect();
        let mut held = held.into_iter();
        held.by_ref()
            .take(10)
            .for_each(|p| w.give(&mut l, p, order, MOV));
        l.flush().expect("in use");
        held.for_each(|p| w.give(&mut l, p, order, MOV));
    }
}

/// Takes down to the last frame, as an interrupt handler does.
fn takes_the_reserve(w: &World) {
    let mut l = w.memory.local().expect("a local");
    for _ in 0..2 {
        let one = || l.alloc_atomic(Order(0), UNM).ok();
        let held: Vec<Pfn> = std::iter::from_fn(one)
            .inspect(|&p| w.stamp(p, 0, true))
            .take(300)
            .collect();
        held.into_iter().for_each(|p| w.give(&mut l, p, 0, UNM));
    }
}

/// Reports what is free: nobody has a frame of it meanwhile.
fn reports(w: &World) {
    for n in 0..8 {
        let Some(report) = w.memory.report(Order(9)) else {
            thread::yield_now();
            continue;
        };
        let mark = |taken| {
            for p in report
                .stretches()
                .flat_map(|(first, n)| first.0..first.0 + u64::from(n))
            {
                w.stamp(Pfn(p), 0, taken);
            }
        };
        mark(true);
        thread::yield_now();
        mark(false);
        report.acknowledge(n % 2 == 0).expect("in use");
    }
}

/// Takes batches until the min watermark, where others do as well: it holds whenever somebody looks.
fn keeps_the_mark(w: &World) {
    let mut l = w.memory.local().expect("a local");
    let mut held = Vec::new();
    for order in [0, 9, 3, 1, 0] {
        for _ in 0..40 {
            let Ok(p) = w.take(&mut l, order, MOV) else {
                break;
            };
            held.push((p, order));
            let left = w.memory.counts().free;
            assert!(left >= MIN, "{left} are left");
        }
    }
    held.into_iter()
        .for_each(|(p, order)| w.give(&mut l, p, order, MOV));
}

/// Ends, and begins anew, with frames in its arrays.
fn ends_early(w: &World) {
    for _ in 0..3 {
        let mut l = w.memory.local().expect("a local");
        if let Ok(p) = w.take(&mut l, 0, MOV) {
            w.give(&mut l, p, 0, MOV);
        }
    }
}

#[test]
fn one_refills_while_another_drains() {
    always(|| World::with(&[comes_and_goes, comes_and_goes]));
}

#[test]
fn frames_are_called_home_while_others_run() {
    always(|| World::with_barrier(None, &[takes_all, comes_and_goes]));
}

#[test]
fn what_two_keep_is_drained_by_a_third_that_finds_nothing() {
    always(|| World::with(&[takes_all, comes_and_goes, comes_and_goes]));
}

#[test]
fn two_drain_while_a_third_takes_and_gives() {
    always(|| World::with(&[drains, comes_and_goes, drains]));
}

#[test]
fn those_who_flush_and_end_are_drained_meanwhile() {
    always(|| World::with(&[flushes_and_ends, drains, flushes_and_ends]));
}

#[test]
fn a_thread_ends_while_others_run() {
    always(|| World::with(&[ends_early, comes_and_goes, takes_all]));
}

#[test]
fn the_reserve_is_taken_while_others_run() {
    always(|| World::with(&[takes_the_reserve, takes_all]));
}

#[test]
fn the_min_mark_holds_for_all_who_take_at_once() {
    always(|| World::with(&[keeps_the_mark, keeps_the_mark, keeps_the_mark]));
}

#[test]
fn the_min_mark_holds_while_blocks_are_reported() {
    always(|| World::with(&[keeps_the_mark, reports, keeps_the_mark]));
}

#[test]
fn free_blocks_are_reported_while_others_run() {
    always(|| World::with(&[reports, comes_and_goes, reports]));
}

/// Claims ranges and runs, and makes whole blocks, of what happens to be free: nobody moves. Nobody has a frame of what was
/// claimed, and all that is set apart is to be had again.
fn claims(w: &World) {
    let range = |start, frames| Goal::Range {
        start: Pfn(start),
        frames,
    };
    let goals = [
        range(300, 400),
        Goal::Blocks(1),
        range(0, 5),
        Goal::Run(Order(9)),
        Goal::Ahead { blocks: 2 },
        range(700, 324),
    ];
    for goal in goals {
        let mut e = Evacuator::new(&w.memory, goal, Limits::NONE.mt(MOV));
        for _ in 0..3 {
            if e.step() == Move::Done {
                break;
            }
            thread::yield_now();
        }
        let Ok(claimed) = e.into_claimed() else {
            continue;
        };
        let frames = || (claimed.pfn().0..).take(claimed.frames() as usize);
        frames().for_each(|p| w.stamp(Pfn(p), 0, true));
        thread::yield_now();
        frames().for_each(|p| w.stamp(Pfn(p), 0, false));
    }
}

#[test]
fn ranges_are_claimed_while_others_run() {
    always(|| World::with(&[claims, comes_and_goes, claims]));
}

#[test]
fn ranges_are_claimed_while_blocks_are_reported() {
    always(|| World::with(&[claims, reports, claims]));
}

#[test]
fn the_min_mark_holds_while_ranges_are_claimed() {
    always(|| World::with(&[claims, keeps_the_mark, keeps_the_mark]));
}
