//! Making whole free blocks while others allocate: which blocks go, what it costs, and what stays.

use super::chance::{Chance, setting};
use std::collections::{BTreeMap, BTreeSet};
use unfrag::maps::GiveError;
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{Local, Memory, MemoryConfig};
use unfrag::{MigrateType, Order, Pfn};

type Lock = spin::Mutex<()>;
const MOV: MigrateType = MigrateType::Movable;
const BLOCKS: u64 = 64;

/// Frees, where frames are only numbers: what is wrong with a number is what the tests look for.
trait Frees {
    fn give(&mut self, pfn: Pfn, order: Order, mt: MigrateType) -> Result<(), GiveError>;
}

impl Frees for Local<'_, '_, Lock> {
    fn give(&mut self, pfn: Pfn, order: Order, mt: MigrateType) -> Result<(), GiveError> {
        // SAFETY: nothing is at a frame, so nobody can use one.
        unsafe { self.free(pfn, order, mt) }
    }
}

/// What is in use: the order of each piece, by its first frame.
type Pieces = BTreeMap<u64, u8>;

fn memory() -> Memory<'static, Lock> {
    let config = MemoryConfig {
        locals: 2,
        ..MemoryConfig::new(Pfn(0), BLOCKS * 512)
    };
    crate::support::full(config)
}

/// Takes all of it in pieces of orders below `orders`, and frees all but about `i` parts of 64 of block `i`.
fn uneven(shared: &Memory<'static, Lock>, c: &mut Chance, orders: u64) -> Pieces {
    let mut local = shared.local().expect("two of them");
    let mut pieces = Pieces::new();
    while pieces.len() < 1 << 20 {
        let order = c.below(orders) as u8;
        let got = local.alloc(Order(order), MOV);
        let Some((p, order)) = got.ok().map(|p| (p, order)).or_else(|| {
            let p = local.alloc(Order(0), MOV).ok()?;
            Some((p, 0))
        }) else {
            break;
        };
        pieces.insert(p.0, order);
    }
    pieces.retain(|&at, &mut order| {
        let stays = c.below(BLOCKS) < at / 512;
        if !stays {
            local.give(Pfn(at), Order(order), MOV).expect("in use");
        }
        stays
    });
    pieces
}

/// Frames in use of each block, the fewest first.
fn costs(pieces: &Pieces) -> Vec<u32> {
    let mut used = vec![0; BLOCKS as usize];
    for (at, order) in pieces {
        used[(at / 512) as usize] += 1 << order;
    }
    used.sort_unstable();
    used.retain(|&n| n > 0);
    used
}

/// Runs an evacuator; what `stays` says of is not moved.
fn run(
    shared: &Memory<'static, Lock>,
    e: &mut Evacuator<'_, 'static, Lock>,
    pieces: &mut Pieces,
    mut stays: impl FnMut(u64) -> bool,
) {
    while let Move::Frame(from) = e.step() {
        shared.validate().expect("every invariant");
        let order = *pieces
            .get(&from.0)
            .expect("pieces are met at their first frame");
        if stays(from.0) {
            continue;
        }
        let Some(to) = e.place(Order(order)) else {
            continue;
        };
        let to = to.into_pfn();
        assert_ne!(to.0 / 512, from.0 / 512, "a place in another block");
        pieces.remove(&from.0);
        pieces.insert(to.0, order);
        // SAFETY: frames are only numbers here.
        unsafe { e.moved(from, Order(order)) }.expect("in use");
    }
}

/// Pieces do not overlap, and are all that is in use.
fn check(shared: &Memory<'static, Lock>, pieces: &Pieces) {
    let mut end = 0;
    for (&at, &order) in pieces {
        assert!(at >= end, "pieces overlap at {at:#x}");
        end = at + (1 << order);
    }
    let used: u64 = pieces.values().map(|o| 1 << o).sum();
    assert_eq!(shared.counts().free, BLOCKS * 512 - used);
    shared.validate().expect("every invariant");
}

/// The cheapest block goes first: for `k` blocks it copies at most 2 % more than the `k` cheapest hold. The
/// seed is printed.
#[test]
fn the_cheapest_blocks_are_emptied() {
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 10 {
        println!("seed {seed}");
        let (shared, mut c) = (memory(), Chance(seed));
        let orders = 1 + seed % 4;
        let mut pieces = uneven(&shared, &mut c, orders);
        let (costs, before) = (costs(&pieces), shared.whole_blocks());
        let mut e = Evacuator::new(&shared, Goal::Blocks(8), Limits::NONE);
        let had = pieces.len();
        run(&shared, &mut e, &mut pieces, |_| false);
        assert_eq!((e.gained(), shared.whole_blocks()), (8, before + 8));
        assert_eq!(pieces.len(), had, "nothing is lost");
        let cheapest: u32 = costs[..8].iter().sum();
        assert!(
            e.copied() <= u64::from(cheapest) * 102 / 100,
            "{} of {cheapest}",
            e.copied()
        );
        check(&shared, &pieces);
    }
}

/// A block with a frame that stays is left alone until all others have been tried.
#[test]
fn what_stays_costs_one_try() {
    let (shared, mut c) = (memory(), Chance(3));
    let mut pieces = uneven(&shared, &mut c, 1);
    let pinned: BTreeSet<u64> = pieces.keys().copied().step_by(300).collect();
    let mut e = Evacuator::new(&shared, Goal::Blocks(u32::MAX), Limits::NONE);
    let mut met = BTreeSet::new();
    run(&shared, &mut e, &mut pieces, |f| {
        pinned.contains(&f) && assert_once(met.insert(f))
    });
    assert!(e.left() > 0 && e.gained() > 0);
    assert!(pinned.iter().all(|f| pieces.contains_key(f)), "they stayed");
    check(&shared, &pieces);
}

fn assert_once(first: bool) -> bool {
    assert!(first, "asked twice");
    true
}

/// It ends: the room of a whole free block is never taken to make another one.
#[test]
fn all_that_can_be_made_is_made_and_then_it_ends() {
    let (shared, mut c) = (memory(), Chance(11));
    let mut pieces = uneven(&shared, &mut c, 1);
    let mut e = Evacuator::new(&shared, Goal::Blocks(u32::MAX), Limits::NONE);
    run(&shared, &mut e, &mut pieces, |_| false);
    assert_eq!(u64::from(shared.whole_blocks()), shared.counts().free / 512);
    check(&shared, &pieces);
}

/// Nobody gets a frame of a block that is being emptied; what is freed in it helps. A budget of copies holds, and an
/// evacuation that is stopped leaves a block that can be used.
#[test]
fn a_block_that_is_set_apart_is_nobodys_room() {
    let (shared, mut c) = (memory(), Chance(5));
    let mut pieces = uneven(&shared, &mut c, 1);
    let mut e = Evacuator::new(&shared, Goal::Blocks(1), Limits::NONE.copies(1000));
    let Move::Frame(from) = e.step() else {
        panic!("there is something to move");
    };
    let block = from.0 / 512;
    let mut local = shared.local().expect("two of them");
    let others: Vec<Pfn> = std::iter::from_fn(|| local.alloc(Order(0), MOV).ok()).collect();
    assert!(others.iter().all(|p| p.0 / 512 != block));
    for p in others {
        local.give(p, Order(0), MOV).expect("in use");
    }
    // Its owner frees all that the block holds: the block is empty without a copy.
    for at in block * 512..(block + 1) * 512 {
        if pieces.remove(&at).is_some() {
            local.give(Pfn(at), Order(0), MOV).expect("in use");
        }
    }
    drop(local);
    let before = shared.whole_blocks();
    drop(e);
    assert_eq!(shared.whole_blocks(), before + 1);

    let mut e = Evacuator::new(&shared, Goal::Blocks(u32::MAX), Limits::NONE.copies(1000));
    run(&shared, &mut e, &mut pieces, |_| false);
    assert!(e.copied() <= 1000 && e.gained() > 0, "{e:?}");
    let mut e = Evacuator::new(&shared, Goal::Blocks(1), Limits::NONE.copies(1000));
    assert_ne!(e.step(), Move::Done);
    drop(e);
    check(&shared, &pieces);
    let free = shared.counts().free;
    let mut local: Local<Lock> = shared.local().expect("two of them");
    let all = std::iter::from_fn(|| local.alloc(Order(0), MOV).ok()).count();
    assert_eq!(all as u64, free, "every free frame can be had");
}

/// Whatever ends an evacuation early: its block is used again, and a place that was taken in vain is free.
#[test]
fn an_evacuator_that_goes_leaves_nothing_behind() {
    type E<'s> = Evacuator<'s, 'static, Lock>;
    type Ends = (&'static str, fn(E<'_>, Pfn) -> Result<(), GiveError>);
    let ends: [Ends; 5] = [
        ("dropped", |_, _| Ok(())),
        ("dropped with its place", |mut e, _| {
            let place = e.place(Order(0)).expect("a place");
            assert_eq!(place.order(), Order(0));
            drop(e);
            Ok(())
        }),
        ("its place outlives it", |mut e, _| {
            let place = e.place(Order(0)).expect("a place");
            drop(e);
            drop(place);
            Ok(())
        }),
        ("an error of what is not in use", |mut e, from| {
            let _place = e.place(Order(0)).expect("a place");
            // SAFETY: frames are only numbers here.
            unsafe { e.moved(Pfn(from.0 + 1), Order(0)) }
        }),
        ("an owner that panics", |mut e, _| {
            let panics = std::panic::AssertUnwindSafe(|| {
                let _place = e.place(Order(0)).expect("a place");
                let _ = e.step();
                std::panic::resume_unwind(Box::new("an owner"))
            });
            let ended: std::thread::Result<()> = std::panic::catch_unwind(panics);
            assert!(ended.is_err());
            Ok(())
        }),
    ];
    for (what, end) in ends {
        let (shared, mut c) = (memory(), Chance(7));
        let pieces = uneven(&shared, &mut c, 1);
        for _ in 0..3 {
            let mut e = Evacuator::new(&shared, Goal::Blocks(1), Limits::NONE.copies(1000));
            let Move::Frame(from) = e.step() else {
                panic!("there is something to move");
            };
            let ended = end(e, from);
            assert_eq!(ended.is_err(), what.starts_with("an error"), "{what}");
            check(&shared, &pieces);
        }
        let mut local = shared.local().expect("two of them");
        let all = std::iter::from_fn(|| local.alloc(Order(0), MOV).ok()).count();
        let free = BLOCKS as usize * 512 - pieces.len();
        assert_eq!(all, free, "{what}: every free frame can be had");
        assert_eq!(shared.refused(), 0);
    }
}

/// What has not moved, or cannot have, is refused, and the evacuator goes on.
#[test]
fn an_evacuator_believes_no_wrong_answer() {
    let (shared, mut c) = (memory(), Chance(9));
    let pieces = uneven(&shared, &mut c, 1);
    let mut e = Evacuator::new(&shared, Goal::Blocks(1), Limits::NONE.copies(1000));
    // SAFETY: frames are only numbers here.
    let moved = |e: &mut Evacuator<'_, 'static, Lock>, f, o| unsafe { e.moved(Pfn(f), Order(o)) };
    let first = *pieces.keys().next().expect("some");
    assert!(moved(&mut e, first, 0).is_err(), "nothing was named");
    assert!(e.place(Order(0)).is_none() && e.after(Pfn(first)).is_none());
    let Move::Frame(from) = e.step() else {
        panic!("there is something to move");
    };
    let other = pieces.keys().find(|&&p| p != from.0).expect("another");
    for (frame, order) in [
        (*other, 0),
        (from.0 + 1, 0),
        (u64::MAX, 0),
        (BLOCKS * 512, 0),
        (from.0, 19),
        (from.0, 32),
        (from.0, 64),
        (from.0, 255),
    ] {
        assert!(moved(&mut e, frame, order).is_err(), "{frame:#x} {order}");
        shared.validate().expect("every invariant");
    }
    for order in [9, 10, 18, 19, 32, 64, 255] {
        assert!(e.place(Order(order)).is_none(), "{order}");
    }
    for frame in [0, from.0.wrapping_sub(600), u64::MAX, BLOCKS * 512] {
        assert_eq!(e.after(Pfn(frame)), None);
    }
    assert!(moved(&mut e, from.0 & !511, 9).is_err());
    drop(e);
    check(&shared, &pieces);
}

/// A report that goes before its host has answered leaves its frames free, and they are reported again.
#[test]
fn a_report_that_goes_leaves_its_frames_free() {
    let shared = memory();
    for _ in 0..3 {
        let report = shared.report(Order(9)).expect("free memory");
        let stretches: Vec<(Pfn, u64)> = report.stretches().collect();
        assert_eq!(stretches, [(Pfn(0), 512)], "the first one, again");
        assert_eq!(shared.counts().free, (BLOCKS - 1) * 512);
        drop(report);
        assert_eq!(shared.free_frames(), BLOCKS * 512);
        assert_eq!(shared.counts().free, BLOCKS * 512);
    }
    let report = shared.report(Order(9)).expect("free memory");
    report.acknowledge(true).expect("in use until now");
    let next = shared.report(Order(9)).expect("free memory");
    assert_eq!(next.stretches().next(), Some((Pfn(512), 512)));
}
