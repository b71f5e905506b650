//! Wherever it ends, everything is there: dropped at each step, with a place, with what it claimed; and while others take and
//! free.

use super::support::{add, started};
use super::world::{BLOCK, Chance, Lock, MOV, World, seeds};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unfrag::moves::{Evacuator, Goal, Limits, Move, Outcome};
use unfrag::{Barrier, Memory, MemoryConfig, Order, Pfn, Request};

fn goals() -> [(Goal, Limits); 5] {
    let range = Goal::Range {
        start: Pfn(700),
        frames: 5000,
    };
    [
        (Goal::Blocks(3), Limits::NONE),
        (Goal::Blocks(1), Limits::NONE.huge(Order(11))),
        (Goal::Ahead { blocks: 5 }, Limits::NONE),
        (Goal::Run(Order(11)), Limits::NONE),
        (range, Limits::NONE),
    ]
}

/// Dropped at any step, all that was set apart is to be had again; so is a place, and what was claimed.
#[test]
#[cfg_attr(miri, ignore = "it runs many times")]
fn nothing_is_left_behind_at_any_step() {
    for (goal, limits) in goals() {
        let mut is_done = false;
        let mut steps = 0;
        while !is_done {
            let mut world = World::new(32 * BLOCK, 1);
            world.fill(&mut Chance(4), 4, |_| 200);
            let mut e = world.begin(goal, limits);
            let mut place = None;
            for n in 0..=steps {
                let Move::Frame(from) = world.step(&mut e, steps % 3 == 0) else {
                    is_done = true;
                    break;
                };
                if n < steps {
                    world.answer(&mut e, from);
                } else if steps % 2 == 0 {
                    place = Some(e.place(Order(0)).expect("a place"));
                }
            }
            drop(e);
            drop(place);
            world.check_to_the_last();
            steps += 1 + steps / 8;
        }
    }
}

/// While it works, the free frames that it has set apart are nobody's, and count for nobody.
#[test]
fn what_is_set_apart_counts_for_nobody() {
    for (goal, limits) in goals() {
        let mut world = World::new(32 * BLOCK, 1);
        world.fill(&mut Chance(4), 1, |_| 200);
        let mut e = world.begin(goal, limits);
        let Move::Frame(from) = e.step() else {
            panic!("{goal:?}: something is in the way");
        };
        let mut got = 0;
        let free = world.memory.free_frames();
        assert_eq!(free, world.memory.counts().free);
        while world.take(0, MOV).is_some() {
            got += 1;
        }
        assert_eq!(got, free);
        assert!(e.place(Order(0)).is_none());
        let next = e.after(from);
        assert!(next.is_none_or(|p| p > from));
        assert_eq!(world.memory.free_frames(), 0);
        world.memory.validate().expect("every invariant");
        drop(e);
        world.check_to_the_last();
    }
}

/// Threads empty blocks, take runs and ranges, and take and free, all at once: no frame is two owners', and none is lost.
#[test]
#[cfg_attr(miri, ignore = "it takes long")]
fn it_works_while_others_take_and_free() {
    const BLOCKS: u64 = 96;
    for seed in seeds(3) {
        let world = World::new(BLOCKS * BLOCK, 1);
        let memory = world.memory;
        // Who has a frame: 0, nobody; 1, somebody who moves it if he is asked; 2, somebody else.
        let owners: Vec<AtomicU64> = (0..BLOCKS * BLOCK).map(|_| AtomicU64::new(0)).collect();
        let one = Mutex::new(());
        let take = |p: u64, frames: u64, who: u64| {
            for owner in &owners[p as usize..(p + frames) as usize] {
                assert_eq!(owner.swap(who, Relaxed), 0, "{p:#x} is somebody's");
            }
        };
        let give = |p: u64, frames: u64| {
            for owner in &owners[p as usize..(p + frames) as usize] {
                assert_ne!(owner.swap(0, Relaxed), 0, "{p:#x} is nobody's");
            }
        };
        std::thread::scope(|s| {
            for t in 0..2 {
                let (take, give, owners, one) = (&take, &give, &owners, &one);
                s.spawn(move || {
                    let mut c = Chance(seed * 100 + t);
                    for _ in 0..60_000 {
                        let p = c.below(BLOCKS * BLOCK);
                        let _held = one.lock().expect("no panic");
                        if owners[p as usize].load(Relaxed) == 1 {
                            give(p, 1);
                            // SAFETY: nothing is at a frame.
                            unsafe { memory.free(Pfn(p), Order(0), MOV) }.expect("in use");
                        } else if memory.free_frames() > 8 * BLOCK
                            && let Ok(p) = memory.alloc(&Request::new(Order(0), MOV))
                        {
                            take(p.0, 1, 1);
                        }
                    }
                });
            }
            for t in 0..2 {
                let (take, give, owners, one) = (&take, &give, &owners, &one);
                s.spawn(move || {
                    let mut c = Chance(seed * 1000 + t);
                    for _ in 0..150 {
                        let start = Pfn(c.below(BLOCKS * BLOCK - 3000));
                        let frames = 1 + c.below(3000);
                        let goal = match c.below(4) {
                            0 => Goal::Blocks(2),
                            1 => Goal::Ahead { blocks: 8 },
                            2 => Goal::Run(Order(9 + c.below(3) as u8)),
                            _ => Goal::Range { start, frames },
                        };
                        let limits = Limits::NONE.mt(MOV);
                        let mut e: Evacuator<'_, '_, Lock> = Evacuator::new(memory, goal, limits);
                        while let Move::Frame(from) = e.step() {
                            let _held = one.lock().expect("no panic");
                            if owners[from.0 as usize].load(Relaxed) != 1 || c.below(500) == 0 {
                                continue;
                            }
                            let Some(to) = e.place(Order(0)) else {
                                continue;
                            };
                            take(to.into_pfn().0, 1, 1);
                            give(from.0, 1);
                            // SAFETY: as above.
                            unsafe { e.moved(from, Order(0)) }.expect("in use");
                        }
                        assert_ne!(e.outcome(), Outcome::Open);
                        if let Ok(claimed) = e.into_claimed() {
                            let (p, n) = (claimed.pfn().0, claimed.frames());
                            take(p, n, 2);
                            give(p, n);
                        }
                    }
                });
            }
        });
        memory.validate().expect("every invariant");
        let left = owners.iter().filter(|o| o.load(Relaxed) != 0).count() as u64;
        assert_eq!(memory.free_frames() + left, BLOCKS * BLOCK);
        assert_eq!(memory.counts().free + left, BLOCKS * BLOCK);
    }
}

/// A barrier that panics, while what CPUs keep is had back, leaves nothing set apart.
#[test]
fn a_barrier_that_panics_leaves_nothing_behind() {
    for (goal, limits) in goals() {
        let config = MemoryConfig {
            // SAFETY: one thread has all locals.
            barrier: Some(unsafe { Barrier::new(|| std::panic::resume_unwind(Box::new(()))) }),
            ..MemoryConfig::new(Pfn(0), 32 * BLOCK)
        };
        let memory: Memory<Lock> = started(config);
        add(&memory, Pfn(0), 32 * BLOCK).expect("new");
        let mut local = memory.local().expect("a local");
        // In each block one, so that something is in the way of each goal.
        let all: Vec<Pfn> = (0..32 * BLOCK)
            .map(|_| memory.alloc(&Request::new(Order(0), MOV)).expect("memory"))
            .collect();
        for p in all {
            // SAFETY: nothing is at a frame, so nobody can use one.
            let freed = match p.0 % BLOCK {
                0 => unsafe { local.free(p, Order(0), MOV) },
                _ => unsafe { memory.free(p, Order(0), MOV) },
            };
            freed.expect("in use");
        }
        let ends = std::panic::AssertUnwindSafe(|| {
            let mut e = Evacuator::new(&memory, goal, limits);
            while e.step() != Move::Done {}
        });
        let ended: std::thread::Result<()> = std::panic::catch_unwind(ends);
        assert!(ended.is_err(), "{goal:?}: it was called");
        memory.validate().expect("every invariant");
        drop(local);
        assert_eq!(memory.counts().free, 32 * BLOCK, "{goal:?}");
        assert_eq!(memory.whole_blocks(), 32);
    }
}
