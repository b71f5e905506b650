//! Wrong calls, and the answer that each must get.

use super::world::{BLOCK, Chance, MOV, UNM, World};
use crate::support::{add, started};
use unfrag::maps::GiveError::{self, InUse, NoFrames, NoMemory, NotABlock, NotTaken};
use unfrag::moves::{Goal, Limits, Move, Outcome};
use unfrag::{Order, Pfn};

const BASE: u64 = 1 << 18;
/// The end of the area.
const END: u64 = BASE + (1 << 18);
const FRAMES: u64 = 20 * BLOCK + 100;

/// Memory at [`BASE`], half of it in use.
fn world() -> World {
    let mut world = World::at(Pfn(BASE), FRAMES, 1);
    let mut c = Chance(2);
    while world.take(0, MOV).is_some() {}
    for at in BASE..BASE + FRAMES {
        if c.below(2) == 0 {
            world.free(at);
        }
    }
    world
}

#[test]
fn a_goal_that_cannot_be_says_why() {
    let mut world = world();
    let (behind, end) = (BASE + FRAMES, END);
    let range = |start, frames| Goal::Range {
        start: Pfn(start),
        frames,
    };
    let rows: [(Goal, GiveError); 19] = [
        (range(BASE, 0), NoFrames(Pfn(BASE))),
        (range(0, 0), NoFrames(Pfn(0))),
        (range(0, 1), NoMemory(Pfn(0))),
        (range(BASE - 1, 2), NoMemory(Pfn(BASE - 1))),
        (range(behind, 1), NoMemory(Pfn(behind))),
        (range(end - 1, 2), NoMemory(Pfn(end))),
        (range(end, 1), NoMemory(Pfn(end))),
        (range(BASE, u64::MAX), NoMemory(Pfn(end))),
        (range(BASE, 1 << 40), NoMemory(Pfn(end))),
        (range(u64::MAX, 1), NoMemory(Pfn(u64::MAX))),
        (range(u64::MAX, u64::MAX), NoMemory(Pfn(u64::MAX))),
        (Goal::Run(Order(0)), NotABlock(Pfn(0))),
        (Goal::Run(Order(8)), NotABlock(Pfn(0))),
        (Goal::Run(Order(19)), NotABlock(Pfn(0))),
        (Goal::Run(Order(32)), NotABlock(Pfn(0))),
        (Goal::Run(Order(64)), NotABlock(Pfn(0))),
        (Goal::Run(Order(255)), NotABlock(Pfn(0))),
        (Goal::Blocks(1), NotABlock(Pfn(0))),
        (Goal::Ahead { blocks: 1 }, NotABlock(Pfn(0))),
    ];
    for (goal, why) in rows {
        for huge in [0, 8, 19, 64, 255] {
            let mut e = world.begin(goal, Limits::NONE.huge(Order(huge)));
            assert_eq!(e.outcome(), Outcome::Open);
            for _ in 0..3 {
                assert_eq!(e.step(), Move::Done, "{goal:?}");
                assert_eq!(e.outcome(), Outcome::Wrong(why), "{goal:?}");
            }
            assert!(!e.outcome().to_string().is_empty());
            assert_eq!(e.into_claimed().err(), Some(Outcome::Wrong(why)));
            assert_eq!(world.memory.whole_runs(Order(huge)), 0);
            assert!(!world.memory.wants_blocks(0, Order(huge)));
        }
    }
    // No run is as large as that.
    let mut e = world.begin(Goal::Run(Order(18)), Limits::NONE);
    world.run(&mut e, false);
    assert_eq!(e.outcome(), Outcome::Nothing);
    for goal in [Goal::Blocks(0), Goal::Ahead { blocks: 0 }] {
        let mut e = world.begin(goal, Limits::NONE);
        world.run(&mut e, false);
        assert_eq!(e.outcome(), Outcome::Reached);
        assert_eq!(e.into_claimed().err(), Some(Outcome::Reached));
    }
    assert_eq!(world.asked, 0);
    world.check(0);
}

/// Holes, what cannot be moved, and what another one empties: the frame is named, and nothing has changed.
#[test]
fn a_range_that_is_not_to_be_had_is_left_as_it_is() {
    let mut world = World::new(16 * BLOCK, 1);
    world.fill(&mut Chance(6), 1, |_| 500);
    let table = world.take(0, UNM).expect("memory");
    let block = table / BLOCK * BLOCK;
    let range = |start, frames| Goal::Range {
        start: Pfn(start),
        frames,
    };
    let first = world.pieces.range(block..).next().expect("some");
    let first = *first.0;
    let mut e = world.begin(range(block, BLOCK), Limits::NONE);
    world.run(&mut e, false);
    assert_eq!(e.outcome(), Outcome::Stays(Pfn(first)));
    assert_eq!(e.copied(), 0);
    // Only a part of the block: its frames may all be movable, and they are.
    let beside = if table == block { block + 9 } else { block };
    let mut e = world.begin(range(beside, 1), Limits::NONE);
    world.run(&mut e, false);
    let one = e.into_claimed().expect("beside what cannot be moved");
    world.check(1);
    // Another one is there, or was.
    let far = (block + 8 * BLOCK) % (16 * BLOCK);
    let mut first = world.begin(range(far + 3, 700), Limits::NONE);
    assert_ne!(first.step(), Move::Done);
    for (start, frames) in [(far, 1), (far + 900, 1), (far + 512, 512), (far + 703, 5)] {
        let mut e = world.begin(range(start, frames), Limits::NONE);
        world.run(&mut e, false);
        let at = Pfn(start / BLOCK * BLOCK);
        assert_eq!(e.outcome(), Outcome::Wrong(InUse(at)), "{start:#x}");
    }
    let mut e = world.begin(Goal::Blocks(u32::MAX), Limits::NONE);
    while let Move::Frame(from) = e.step() {
        assert!(!(far..far + 2 * BLOCK).contains(&from.0));
    }
    drop((e, first, one));
    world.check_to_the_last();

    let config = unfrag::MemoryConfig::new(Pfn(0), 1 << 14);
    let memory: unfrag::Memory<super::world::Lock> = started(config);
    add(&memory, Pfn(10), 2000).expect("new");
    add(&memory, Pfn(4000), 1000).expect("new");
    for (start, frames, hole) in [
        (0, 20, 0),
        (9, 2, 9),
        (10, 2001, 2010),
        (1500, 3000, 2010),
        (2048, 512, 2048),
        (4000, 1001, 5000),
    ] {
        let mut e = unfrag::moves::Evacuator::new(&memory, range(start, frames), Limits::NONE);
        assert_eq!(e.step(), Move::Done);
        let Outcome::Wrong(NoMemory(at)) = e.outcome() else {
            panic!("{e:?}");
        };
        // The first aligned part that has a hole.
        assert!(at.0 >= start && at.0 <= hole && at.0 + 512 > hole, "{at:?}");
    }
    for (start, frames) in [(10, 2000), (11, 3), (4000, 1000)] {
        let mut e = unfrag::moves::Evacuator::new(&memory, range(start, frames), Limits::NONE);
        assert_eq!((e.step(), e.outcome()), (Move::Done, Outcome::Reached));
        assert_eq!(memory.free_frames(), 3000 - frames);
        drop(e);
        assert_eq!(memory.free_frames(), 3000);
    }
}

/// Who says that something moved which was not asked for, or twice, or of another size, is told so; it goes on, and what was
/// not in use stays as it is.
#[test]
fn what_has_not_moved_is_not_believed() {
    for goal in [
        Goal::Blocks(3),
        Goal::Run(Order(10)),
        Goal::Range {
            start: Pfn(BASE + 100),
            frames: 2000,
        },
    ] {
        let mut world = world();
        let mut e = world.begin(goal, Limits::NONE);
        // SAFETY: nothing is at a frame, so nobody can use one.
        let moved = |e: &mut unfrag::moves::Evacuator<'_, 'static, super::world::Lock>, p, o| unsafe {
            e.moved(Pfn(p), Order(o))
        };
        assert_eq!(
            moved(&mut e, BASE, 0),
            Err(NotABlock(Pfn(BASE))),
            "nothing was asked for"
        );
        assert!(e.place(Order(0)).is_none() && e.after(Pfn(BASE)).is_none());
        let mut n = 0;
        while let Move::Frame(from) = e.step() {
            n += 1;
            let from = from.0;
            if n % 7 == 0 {
                for (p, o, why) in [
                    (from + 1, 0, NotABlock(Pfn(from + 1))),
                    (from - 1, 0, NotABlock(Pfn(from - 1))),
                    (from, 19, NotABlock(Pfn(from))),
                    (from, 64, NotABlock(Pfn(from))),
                    (from, 255, NotABlock(Pfn(from))),
                    (0, 0, NoMemory(Pfn(0))),
                    (u64::MAX, 0, NoMemory(Pfn(u64::MAX))),
                    (END, 18, NoMemory(Pfn(END))),
                ] {
                    assert_eq!(moved(&mut e, p, o), Err(why), "{p:#x} {o}");
                }
            }
            if n % 29 == 0 {
                // Of an order that it has not: half of the block is free, or it is not aligned.
                let p = from & !511;
                let why = moved(&mut e, p, 9).expect_err("it is not in use as a whole");
                assert!(matches!(why, NotTaken(_) | NoMemory(_)), "{why}");
                continue;
            }
            if world.answer(&mut e, Pfn(from)) {
                let twice = moved(&mut e, from, 0);
                assert_eq!(twice, Err(NotABlock(Pfn(from))), "it has moved already");
            }
        }
        assert_ne!(e.outcome(), Outcome::Open);
        drop(e);
        world.check(0);
    }
}

/// Giving a range back: each frame once, and nothing beyond the memory.
#[test]
fn a_range_is_given_back_once() {
    let world = World::at(Pfn(BASE), FRAMES, 1);
    let give = |p, n| {
        // SAFETY: nothing is at a frame, so nobody can use one.
        unsafe { world.memory.free_range(Pfn(p), n, UNM) }
    };
    let end = END;
    for (p, n, why) in [
        (BASE, 0, NoFrames(Pfn(BASE))),
        (0, 1, NoMemory(Pfn(0))),
        (BASE - 1, 2, NoMemory(Pfn(BASE - 1))),
        (BASE, (1 << 18) + 1, NoMemory(Pfn(end))),
        (BASE, u64::MAX, NoMemory(Pfn(end))),
        (end, 1, NoMemory(Pfn(end))),
        (u64::MAX, u64::MAX, NoMemory(Pfn(u64::MAX))),
        (BASE + 3, 1, NotTaken(Pfn(BASE + 3))),
        (BASE + 512, 512, NotTaken(Pfn(BASE + 512))),
    ] {
        assert_eq!(give(p, n), Err(why), "{p:#x} {n:#x}");
        world.check(0);
    }
    let goal = Goal::Range {
        start: Pfn(BASE + 5),
        frames: 3000,
    };
    let mut e = world.begin(goal, Limits::NONE);
    assert_eq!(e.step(), Move::Done);
    let at = e.into_claimed().expect("all free").into_pfn().0;
    give(at, 1000).expect("a part of it");
    assert!(give(at, 3000).is_err(), "some of it is free already");
    // An aligned part of which some was free stayed as it was.
    let left = (at..at + 3000).filter(|&p| give(p, 1).is_ok()).count();
    assert!(left < 512, "{left}");
    world.check(0);
}
