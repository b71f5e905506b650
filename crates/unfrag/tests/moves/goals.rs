//! What each goal reaches, at what cost: the cheapest one, by an oracle that looks at everything.

use super::support::{add, started};
use super::world::{BLOCK, Chance, Lock, MOV, UNM, World, seeds};
use unfrag::moves::{Evacuator, Goal, Limits, Move, Outcome};
use unfrag::{Area, Memory, MemoryConfig, NodeId, Order, Pfn, Request};

/// Frames in use of each aligned run of `2^order` frames.
fn costs(world: &World, order: u8) -> Vec<u64> {
    let used = world.used();
    let runs = used.chunks_exact(1 << (order - 9));
    runs.map(|r| r.iter().sum()).collect()
}

/// For `k` blocks, of the order of any huge page, it copies at most 2 % more than the `k` cheapest hold.
#[test]
fn the_cheapest_blocks_are_emptied_whatever_a_huge_page_is() {
    for seed in seeds(6) {
        for (huge, wanted) in [(9, 16), (10, 20), (11, 10), (13, 3)] {
            let (mut world, mut c) = (World::new(256 * BLOCK, 1), Chance(seed));
            let levels: Vec<u64> = (0..256).map(|_| c.below(700)).collect();
            world.fill(&mut c, 1 + seed % 4, |i| levels[i as usize]);
            let (mut costs, pieces) = (costs(&world, huge), world.pieces.len());
            costs.sort_unstable();
            let limits = Limits::NONE.huge(Order(huge));
            let mut e = world.begin(Goal::Blocks(wanted), limits);
            world.run(&mut e, seed % 2 == 0);
            assert_eq!((e.gained(), e.outcome()), (wanted, Outcome::Reached));
            assert_eq!(pieces, world.pieces.len(), "nothing is lost");
            let whole = world.memory.whole_runs(Order(huge));
            let were = costs.iter().filter(|&&n| n == 0).count() as u32;
            assert_eq!(whole, were + wanted);
            let used = costs.iter().filter(|&&n| n > 0);
            let least: u64 = used.take(wanted as usize).sum();
            println!("order {huge}: {} copies of {least}", e.copied());
            assert!(e.copied() * 100 <= least * 102, "{} {least}", e.copied());
            drop(e);
            world.check_to_the_last();
        }
    }
}

/// Ahead of demand there are as many as are wanted, those that are free already among them, and not one more.
#[test]
fn as_many_are_made_ahead_as_are_missing() {
    for seed in seeds(4) {
        for huge in [9, 11] {
            let (mut world, mut c) = (World::new(128 * BLOCK, 1), Chance(seed));
            world.fill(&mut c, 2, |i| if i % 16 < 4 { 0 } else { 400 });
            let limits = Limits::NONE.huge(Order(huge));
            let has = world.memory.whole_runs(Order(huge));
            assert!(has > 0);
            for (blocks, reached) in [(has, has), (has + 3, has + 3), (1, has + 3)] {
                let mut e = world.begin(Goal::Ahead { blocks }, limits);
                world.run(&mut e, false);
                assert_eq!(e.outcome(), Outcome::Reached);
                assert_eq!(world.memory.whole_runs(Order(huge)), reached);
            }
            assert!(!world.memory.wants_blocks(has + 3, Order(huge)));
            assert!(world.memory.wants_blocks(has + 4, Order(huge)));
            world.check_to_the_last();
        }
    }
}

/// A run is the cheapest one there is, without a frame that cannot be moved, and is taken.
#[test]
fn a_run_is_the_cheapest_one() {
    for seed in seeds(8) {
        for order in 9..=14 {
            let (mut world, mut c) = (World::new(128 * BLOCK, 1), Chance(seed));
            for _ in 0..seed % 4 {
                world.take(0, UNM).expect("memory");
            }
            let levels: Vec<u64> = (0..128).map(|_| 100 + c.below(500)).collect();
            world.fill(&mut c, 10, |i| levels[i as usize]);
            let is_tainted = |run: u64| {
                let of = run << order..(run + 1) << order;
                world.pieces.range(of).any(|(_, p)| p.mt == UNM)
            };
            let all = (0..).zip(costs(&world, order));
            let least = all
                .filter(|&(run, _)| !is_tainted(run))
                .map(|(_, n)| n)
                .min();
            let least = least.expect("one that can be emptied");
            let mut e = world.begin(Goal::Run(Order(order)), Limits::NONE.mt(MOV));
            world.run(&mut e, seed % 2 == 0);
            assert_eq!(e.outcome(), Outcome::Reached, "order {order}");
            assert_eq!(e.copied(), least, "order {order}");
            let run = e.into_claimed().expect("taken");
            assert_eq!((run.frames(), run.pfn().0 % run.frames()), (1 << order, 0));
            world.check(1 << order);
            let of = run.pfn().0..run.pfn().0 + run.frames();
            assert!(of.clone().all(|p| world.holder(p).is_none()));
            if seed % 2 == 0 {
                drop(run);
            } else {
                let at = run.into_pfn();
                // SAFETY: nothing is at a frame, so nobody can use one.
                unsafe { world.memory.free_range(at, 1 << order, MOV) }.expect("in use");
            }
            world.check_to_the_last();
        }
    }
}

/// Any range is had, whatever its ends, with as many copies as it holds frames in use; but for blocks that reach over its ends.
#[test]
fn a_range_is_emptied_and_taken() {
    for seed in seeds(30) {
        let mut c = Chance(seed);
        let mut world = World::new(64 * BLOCK, 1);
        world.fill(&mut c, 1 + seed % 10, |_| 300);
        let start = c.below(40 * BLOCK);
        let frames = 1 + c.below(16 * BLOCK);
        let end = start + frames;
        let mut copies = 0;
        for (&at, piece) in &world.pieces {
            let size = 1 << piece.order;
            copies += if at < end && at + size > start {
                size
            } else {
                0
            };
        }
        let range = Goal::Range {
            start: Pfn(start),
            frames,
        };
        let mut e = world.begin(range, Limits::NONE);
        world.run(&mut e, seed % 2 == 0);
        assert_eq!(e.outcome(), Outcome::Reached, "{start:#x} {frames:#x}");
        assert_eq!(e.copied(), copies);
        let claimed = e.into_claimed().expect("taken");
        assert_eq!((claimed.pfn(), claimed.frames()), (Pfn(start), frames));
        assert!((start..end).all(|p| world.holder(p).is_none()));
        world.check(frames);
        assert_eq!(world.memory.counts().holding[0] > 0, frames > 0);
        drop(claimed);
        assert_eq!(world.memory.counts().tainted, 0);
        world.check_to_the_last();
    }
}

/// Ranges over the ends of shards and gigabytes, and all that a memory has.
#[test]
#[cfg_attr(miri, ignore = "its memory has several gigabytes")]
fn a_range_may_lie_over_the_ends_of_shards() {
    let gigabyte = 1 << 18;
    let base = Pfn(5 << 18);
    for (start, frames) in [
        (gigabyte - 5, 10),
        (gigabyte / 2, 2 * gigabyte),
        (0, 3 * gigabyte + 777),
        (3 * gigabyte + 1, 776),
    ] {
        let mut world = World::at(base, 3 * gigabyte + 777, 3);
        let start = Pfn(base.0 + start);
        let goal = Goal::Range { start, frames };
        let mut e = world.begin(goal, Limits::NONE);
        world.run(&mut e, false);
        let claimed = e.into_claimed().expect("all free");
        world.check(frames);
        let mut other = world.begin(goal, Limits::NONE);
        world.run(&mut other, false);
        assert_eq!(other.outcome(), Outcome::Stays(start), "it is taken");
        drop((other, claimed));
        world.check(0);
        assert_eq!(world.memory.whole_runs(Order(18)), 3);
    }
}

/// Frames for a gigabyte page: the cheapest gigabyte of four, a third of all frames in use at random, and 5 % of those
/// cannot be moved, which stand together.
#[test]
#[cfg_attr(miri, ignore = "its memory has several gigabytes")]
fn a_gigabyte_is_had_from_fragmented_memory() {
    let (gigabyte, mut c) = (1 << 18, Chance(7));
    let mut world = World::new(4 * gigabyte, 2);
    for _ in 0..4 * gigabyte / 60 {
        world.take(0, UNM).expect("memory");
    }
    let full = |i: u64| [300, 400, 350, 320][(i / 512) as usize];
    while world.take(c.below(4) as u8, MOV).is_some() {}
    let all: Vec<u64> = world.pieces.keys().copied().collect();
    for at in all {
        let piece = world.pieces[&at];
        if piece.mt == MOV && c.below(1000) >= full(at / BLOCK) {
            world.free(at);
        }
    }
    assert_eq!(world.memory.counts().tainted_gigabytes, 1);
    let tainted = |run: u64| {
        let of = run * gigabyte..(run + 1) * gigabyte;
        world.pieces.range(of).any(|(_, p)| p.mt == UNM)
    };
    let clean = (0..)
        .zip(costs(&world, 18))
        .filter(|&(run, _)| !tainted(run));
    let least = clean.map(|(_, n)| n).min().expect("a clean one");
    let time = std::time::Instant::now();
    let mut e = world.begin(Goal::Run(Order(18)), Limits::NONE.mt(MOV));
    world.run(&mut e, false);
    let copied = e.copied();
    println!("{copied} copies of {least}, {:?}", time.elapsed());
    assert_eq!((e.outcome(), copied), (Outcome::Reached, least));
    let page = e.into_claimed().expect("taken");
    assert!(page.pfn().0 % gigabyte == 0);
    world.check(gigabyte);
    drop(page);
    assert_eq!(world.memory.whole_runs(Order(18)), 1);
    world.check(0);
}

/// A budget of copies is kept, and is the reason that is named; so is how full a block may be.
#[test]
fn limits_are_kept() {
    for seed in seeds(5) {
        let (mut world, mut c) = (World::new(64 * BLOCK, 1), Chance(seed));
        world.fill(&mut c, 1, |i| 100 + i * 8);
        let mut used = world.used();
        used.sort_unstable();
        let all = Goal::Blocks(u32::MAX);
        for budget in [0, used[0] - 1, used[0], used[0] + used[1], 1000] {
            let mut e = world.begin(all, Limits::NONE.copies(budget));
            world.run(&mut e, false);
            assert!(
                e.copied() <= budget && e.outcome() == Outcome::Copies,
                "{e:?}"
            );
        }
        let most = 150;
        let mut e = world.begin(all, Limits::NONE.most(most));
        world.run(&mut e, false);
        assert_eq!(e.outcome(), Outcome::Nothing);
        let left = world.used().into_iter().filter(|&n| n > 0);
        assert!(left.min() > Some(most.into()), "fuller ones are left");
        let range = Goal::Range {
            start: Pfn(0),
            frames: 64 * BLOCK,
        };
        for goal in [Goal::Run(Order(14)), range] {
            let mut e = world.begin(goal, Limits::NONE.copies(20));
            world.run(&mut e, false);
            assert_eq!((e.outcome(), e.copied()), (Outcome::Copies, 0));
        }
        world.check_to_the_last();
    }
}

/// A node without room does not end it: the blocks of another one are emptied, if no node was named. What moves stays on its
/// node.
#[test]
fn a_node_without_room_is_left_for_another_one() {
    let area = |node: u8| Area {
        start: Pfn(u64::from(node) << 18),
        frames: 1 << 18,
        node: NodeId(node),
        shards: 1,
        is_low: false,
    };
    let memory: Memory<Lock> = started(MemoryConfig::of(area(0)).and(area(1)));
    let blocks = 16;
    for node in [0, 1] {
        add(&memory, area(node).start, blocks * BLOCK).expect("new");
    }
    let mut used = std::collections::BTreeSet::new();
    while let Ok(p) = memory.alloc(&Request::new(Order(0), MOV)) {
        used.insert(p.0);
    }
    // On node 0 a block has 9 frames in use, and all others are full; on node 1 each has 100.
    used.retain(|&p| {
        let (block, at) = (p / BLOCK, p % BLOCK);
        let stays = match block {
            0 => at < 9,
            1..512 => true,
            _ => at < 100,
        };
        if !stays {
            // SAFETY: nothing is at a frame, so nobody can use one.
            unsafe { memory.free(Pfn(p), Order(0), MOV) }.expect("in use");
        }
        stays
    });
    let mut run = |goal, limits| {
        let mut e = Evacuator::new(&memory, goal, limits);
        while let Move::Frame(from) = e.step() {
            let Some(to) = e.place(Order(0)) else {
                continue;
            };
            assert_eq!(memory.node_of(to.pfn()), memory.node_of(from));
            used.remove(&from.0);
            assert!(used.insert(to.into_pfn().0));
            // SAFETY: as above.
            unsafe { e.moved(from, Order(0)) }.expect("in use");
        }
        memory.validate().expect("every invariant");
        (e.gained(), e.outcome())
    };
    let on = |node| Limits::NONE.node(NodeId(node));
    let two = Goal::Blocks(2);
    assert_eq!(run(two, on(0)), (0, Outcome::NoRoom));
    assert_eq!(run(two, on(7)), (0, Outcome::Nothing));
    assert_eq!(run(two, on(255)), (0, Outcome::Nothing));
    assert_eq!(run(two, Limits::NONE), (2, Outcome::Reached));
    assert_eq!(run(two, on(1)), (2, Outcome::Reached));
    assert_eq!(run(Goal::Ahead { blocks: 6 }, on(1)).1, Outcome::Reached);
    assert_eq!(run(Goal::Ahead { blocks: 1 }, on(0)).1, Outcome::NoRoom);
    assert_eq!(memory.whole_blocks(), 6);
}
