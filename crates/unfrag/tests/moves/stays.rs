//! Frames that nobody moves: they hide nothing, cost no copies where that is known in advance, and are seldom asked for.

use super::world::{BLOCK, Chance, MOV, World, seeds};
use unfrag::moves::{Goal, Limits, Move, Outcome};
use unfrag::{Order, Pfn};

/// A world of which the first `pinned` blocks are the cheapest to empty by far, but that a frame of each stays.
fn with_pinned(blocks: u64, pinned: u64, c: &mut Chance) -> World {
    let mut world = World::new(blocks * BLOCK, 1);
    world.fill(c, 1, |i| if i < pinned { 30 } else { 300 });
    for i in 0..pinned {
        let of = i * BLOCK..(i + 1) * BLOCK;
        let at: Vec<u64> = world.pieces.range(of).map(|(&at, _)| at).collect();
        let Some(&at) = at.get(c.below(at.len().max(1) as u64) as usize) else {
            continue;
        };
        world.pieces.get_mut(&at).expect("in use").is_pinned = true;
    }
    world
}

fn pinned(world: &World) -> u64 {
    world.pieces.values().filter(|p| p.is_pinned).count() as u64
}

/// 200 blocks that cannot be emptied hide none of 100 others, and each owner who says no is asked once.
#[test]
#[cfg_attr(miri, ignore = "it moves many frames")]
fn what_stays_hides_nothing() {
    for seed in seeds(4) {
        for check in [false, true] {
            let mut world = with_pinned(300, 200, &mut Chance(seed));
            let pinned = pinned(&world);
            // Nobody else takes frames: what moves goes to the blocks that cannot be emptied.
            let mut e = world.begin(Goal::Blocks(60), Limits::NONE);
            world.run(&mut e, check);
            assert_eq!((e.gained(), e.outcome()), (60, Outcome::Reached), "{e:?}");
            let noes = world.asked - (e.copied());
            assert_eq!(noes, if check { 0 } else { pinned });
            assert_eq!(u64::from(e.left()), pinned);
            drop(e);
            world.check_to_the_last();
        }
    }
}

/// Where it is known in advance what stays, not one frame is copied in vain.
#[test]
fn no_copy_is_made_in_vain() {
    for seed in seeds(6) {
        let mut world = with_pinned(64, 20, &mut Chance(seed));
        let mut used: Vec<u64> = world.used();
        let mut e = world.begin(Goal::Blocks(9), Limits::NONE);
        world.run(&mut e, true);
        used.drain(..20);
        used.sort_unstable();
        assert_eq!(e.gained(), 9);
        assert_eq!(e.copied(), used[..9].iter().sum());
        drop(e);
        for goal in [
            Goal::Run(Order(15)),
            Goal::Range {
                start: Pfn(3 * BLOCK),
                frames: 30 * BLOCK,
            },
        ] {
            let mut e = world.begin(goal, Limits::NONE);
            world.run(&mut e, true);
            let Outcome::Stays(at) = e.outcome() else {
                panic!("{e:?}");
            };
            assert!(world.pieces[&at.0].is_pinned, "the frame is named");
            assert_eq!(e.copied(), 0);
        }
        world.check_to_the_last();
    }
}

/// Runs around a frame that stays are tried, and one that can be emptied is found.
#[test]
fn a_run_that_cannot_be_emptied_is_left_for_another_one() {
    for seed in seeds(6) {
        for check in [false, true] {
            // Runs of 16 blocks: four cannot be emptied, and the other four cost more.
            let mut world = with_pinned(128, 64, &mut Chance(seed));
            let mut e = world.begin(Goal::Run(Order(13)), Limits::NONE);
            world.run(&mut e, check);
            assert_eq!((e.outcome(), e.left()), (Outcome::Reached, 4));
            let run = e.into_claimed().expect("taken");
            assert!(run.pfn().0 >= 64 * BLOCK);
            drop(run);
            world.check_to_the_last();
        }
    }
}

/// Of 2000 evacuations in vain, an owner who says no is asked in 2 and 4 and 8 and then each 62nd.
#[test]
#[cfg_attr(miri, ignore = "it takes long")]
fn who_says_no_is_asked_ever_more_seldom() {
    let mut world = with_pinned(32, 32, &mut Chance(1));
    let pinned = pinned(&world);
    let rounds = 2000;
    for _ in 0..rounds {
        let mut e = world.begin(Goal::Blocks(1), Limits::NONE);
        world.run(&mut e, true);
        assert_eq!(e.gained(), 0);
    }
    assert_eq!(world.asked, 0, "what is known in advance is not named");
    // It is tried at once, when the frame that stayed has gone.
    let of = world.pieces.iter().find(|(_, p)| p.is_pinned);
    let at = *of.expect("some").0;
    world.free(at);
    let mut e = world.begin(Goal::Blocks(1), Limits::NONE);
    world.run(&mut e, true);
    assert_eq!(e.gained(), 1);
    drop(e);
    // Without a word in advance, each block was left alone for 62 rounds at the end.
    let mut asked = 0;
    for _ in 0..rounds {
        let mut e = world.begin(Goal::Blocks(1), Limits::NONE);
        while let Move::Frame(_) = e.step() {
            asked += 1;
        }
    }
    let most = pinned * (rounds / 62 + 1);
    assert!(asked <= most && asked > 0, "{asked} of {most}");
    world.check_to_the_last();
}

/// A daemon that looks 2335 times in vain tries 42 times; and at each look again, once something was gained.
#[test]
fn ahead_of_demand_it_backs_off() {
    let mut world = with_pinned(64, 64, &mut Chance(3));
    for at in world.pieces.keys().copied().collect::<Vec<u64>>() {
        world.pieces.get_mut(&at).expect("in use").is_pinned = true;
    }
    let blocks = world.memory.whole_blocks() + 4;
    let mut tries = 0;
    for _ in 0..2335 {
        if world.memory.wants_blocks(blocks, Order::HUGE) {
            tries += 1;
            let mut e = world.begin(Goal::Ahead { blocks }, Limits::NONE);
            world.run(&mut e, false);
        }
    }
    assert!(tries <= 7 + 2335 / 64 && tries > 7, "{tries} tries");
    for piece in world.pieces.values_mut() {
        piece.is_pinned = false;
    }
    let mut looks = 0;
    while world.memory.whole_blocks() < blocks {
        looks += 1;
        assert!(looks <= 64 + 64, "it is tried again");
        if world.memory.wants_blocks(blocks, Order::HUGE) {
            let mut e = world.begin(Goal::Ahead { blocks }, Limits::NONE);
            world.run(&mut e, false);
        }
    }
    assert!(
        world.memory.wants_blocks(blocks + 1, Order::HUGE),
        "at once"
    );
    world.check_to_the_last();
}

/// A frame of a range that is busy is asked for again; one that stays is named, and all is as it was but for what has moved.
#[test]
fn a_busy_frame_of_a_range_is_asked_for_again() {
    for busy in [1, 2, 3, 4] {
        let mut world = World::new(16 * BLOCK, 1);
        world.fill(&mut Chance(5), 1, |_| 300);
        let (&at, _) = world.pieces.range(1000..).next().expect("some");
        let goal = Goal::Range {
            start: Pfn(700),
            frames: 3000,
        };
        let mut e = world.begin(goal, Limits::NONE);
        let mut asked = 0;
        while let Move::Frame(from) = e.step() {
            asked += u32::from(from.0 == at);
            if from.0 != at || asked > busy {
                world.answer(&mut e, from);
            }
        }
        if busy < 3 {
            assert_eq!(e.outcome(), Outcome::Reached);
            drop(e.into_claimed().expect("taken"));
        } else {
            assert_eq!((e.outcome(), asked), (Outcome::Stays(Pfn(at)), 3));
        }
        world.check_to_the_last();
    }
}

/// What somebody frees while it is asked for does not stay.
#[test]
fn what_is_freed_meanwhile_does_not_stay() {
    let mut world = World::new(16 * BLOCK, 1);
    world.fill(&mut Chance(9), 3, |_| 300);
    let mut e = world.begin(Goal::Blocks(2), Limits::NONE);
    while let Move::Frame(from) = e.step() {
        world.free(from.0);
    }
    assert_eq!((e.gained(), e.copied(), e.left()), (2, 0, 0));
    drop(e);
    world.check_to_the_last();
}

/// Where there is no room, that is said, and nobody is blamed: the block is tried again at once when there is.
#[test]
fn no_room_is_nobodys_fault() {
    let mut world = World::new(4 * BLOCK, 1);
    while world.take(0, MOV).is_some() {}
    for at in 0..BLOCK {
        world.free(at);
    }
    world.free(BLOCK);
    let mut e = world.begin(Goal::Blocks(1), Limits::NONE);
    world.run(&mut e, false);
    assert_eq!((e.outcome(), e.copied()), (Outcome::NoRoom, 0));
    let goal = Goal::Range {
        start: Pfn(BLOCK),
        frames: 2 * BLOCK,
    };
    let mut e = world.begin(goal, Limits::NONE);
    world.run(&mut e, false);
    assert_eq!(e.outcome(), Outcome::NoRoom);
    drop(e);
    for at in BLOCK + 1..2 * BLOCK {
        if world.holder(at).is_some() && at % 3 > 0 {
            world.free(at);
        }
    }
    world.check(0);
    let mut e = world.begin(Goal::Run(Order(9)), Limits::NONE);
    world.run(&mut e, false);
    assert_eq!(e.outcome(), Outcome::Reached);
    drop(e);
    world.check_to_the_last();
}

/// What a CPU keeps looks as if it were in use. It is given back before anybody is asked for it.
#[test]
fn what_a_cpu_keeps_is_in_nobodys_way() {
    let goals = [
        Goal::Range {
            start: Pfn(0),
            frames: 8 * BLOCK,
        },
        Goal::Run(Order(12)),
        Goal::Blocks(1),
    ];
    for goal in goals {
        for check in [false, true] {
            let world = World::new(8 * BLOCK, 1);
            let mut local = world.memory.local().expect("two of them");
            let kept: Vec<Pfn> = (0..60)
                .map(|_| local.alloc(Order(0), MOV).expect("memory"))
                .collect();
            for p in kept {
                // SAFETY: nothing is at a frame, so nobody can use one.
                unsafe { local.free(p, Order(0), MOV) }.expect("in use");
            }
            assert!(world.memory.counts().free < 8 * BLOCK, "some are kept");
            let mut e = world.begin(goal, Limits::NONE);
            while let Move::Frame(from) = world.step(&mut e, check) {
                assert!(
                    matches!(goal, Goal::Blocks(_)),
                    "{goal:?} asks for {from:?}"
                );
            }
            assert_eq!(e.outcome(), Outcome::Reached, "{goal:?}");
            drop(e);
            drop(local);
            world.check_to_the_last();
        }
    }
}
