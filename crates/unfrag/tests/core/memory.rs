//! Many CPUs on one memory: what each keeps, what is given back, and what happens when memory is short.

use super::chance::{Chance, setting};
use crate::support::{add, full, started};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use unfrag::maps::{Gigabyte, GiveError};
use unfrag::{AllocError, MigrateType, Order, Pfn, Request};
use unfrag::{Local, Marks, Memory, MemoryConfig, MemoryLayout, StartError};

type Lock = spin::Mutex<()>;
const BASE: Pfn = Pfn(1 << 18);
const MOV: MigrateType = MigrateType::Movable;
const TYPES: [MigrateType; 3] = [MOV, MigrateType::Unmovable, MigrateType::Reclaimable];

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

fn config(frames: u64, shards: usize, locals: usize) -> MemoryConfig {
    MemoryConfig::new(BASE, frames)
        .with_shards(shards)
        .with_locals(locals)
}

/// Everything of an order, as far as it goes.
fn take_all(l: &mut Local<'_, '_, Lock>, order: u8) -> Vec<Pfn> {
    std::iter::from_fn(|| l.alloc(Order(order), MOV).ok()).collect()
}

/// No frame belongs to two at a time, none is lost, and none is left when all have ended. The seed is printed.
#[test]
fn threads_never_share_a_frame() {
    let seed = setting("UNFRAG_SEED", 1);
    println!("seed {seed}");
    let frames: u64 = 3 << 17;
    for shards in [1, 2] {
        let memory: Memory<Lock> = full(config(frames, shards, 4));
        let owner: Vec<AtomicU32> = (0..frames).map(|_| AtomicU32::new(0)).collect();
        let stamp = |p: Pfn, order: u8, from: u32, to: u32| {
            for f in p.0 - BASE.0..p.0 - BASE.0 + (1 << order) {
                let was = owner[f as usize].swap(to, SeqCst);
                assert_eq!(was, from, "frame {f:#x}");
            }
        };
        std::thread::scope(|threads| {
            // Each thread frees what its neighbour sends it.
            let (to, from): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel()).unzip();
            for (t, from) in from.into_iter().enumerate() {
                let (to, memory, stamp) = (to[(t + 1) % 4].clone(), &memory, &stamp);
                threads.spawn(move || {
                    let mut c = Chance(seed + t as u64);
                    let mut local = memory.local().expect("four of them");
                    let mut held = Vec::new();
                    for step in 0..60_000 {
                        while let Ok((p, order, mt, by)) = from.try_recv() {
                            stamp(p, order, by, 0);
                            local.give(p, Order(order), mt).expect("in use");
                        }
                        let grows = step / 10_000 % 2 == 0;
                        if c.below(10) < if grows { 7 } else { 4 } {
                            let order = c.of(&[0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 7, 9, 10]);
                            let mt = c.of(&[MOV, MOV, MOV, TYPES[1], TYPES[2]]);
                            match local.alloc(Order(order), mt) {
                                Ok(p) => {
                                    assert_eq!(p.0 % (1 << order), 0);
                                    stamp(p, order, 0, t as u32 + 1);
                                    held.push((p, order, mt));
                                }
                                Err(AllocError::Short | AllocError::Fragmented) => {}
                                Err(why) => panic!("{why:?}"),
                            }
                        } else if !held.is_empty() {
                            let i = c.below(held.len() as u64) as usize;
                            let (p, order, mt) = held.swap_remove(i);
                            if c.one_in(3) {
                                to.send((p, order, mt, t as u32 + 1)).expect("a thread");
                            } else {
                                stamp(p, order, t as u32 + 1, 0);
                                local.give(p, Order(order), mt).expect("in use");
                            }
                        }
                    }
                    for (p, order, mt) in held {
                        stamp(p, order, t as u32 + 1, 0);
                        local.give(p, Order(order), mt).expect("in use");
                    }
                    drop(to);
                    while let Ok((p, order, mt, by)) = from.recv() {
                        stamp(p, order, by, 0);
                        local.give(p, Order(order), mt).expect("in use");
                    }
                });
            }
            drop(to);
        });
        memory.validate().expect("a sound state");
        assert_eq!(memory.free_frames(), frames);
        assert_eq!(memory.counts().free, frames);
        assert_eq!(memory.counts().holding, [0; 3]);
        assert_eq!(memory.refused(), 0);
    }
}

#[test]
fn a_frame_that_is_freed_twice_is_refused_with_its_batch() {
    let memory: Memory<Lock> = full(config(4096, 1, 2));
    let mut one = memory.local().expect("a local");
    let mut other = memory.local().expect("a local");
    assert!(memory.local().is_none(), "two of them");
    let p = one.alloc(Order(0), MOV).expect("memory");
    one.give(p, Order(0), MOV).expect("in use");
    one.flush().expect("all were in use");
    // The other one cannot know.
    other.give(p, Order(0), MOV).expect("it is kept");
    assert_eq!(other.flush(), Err(GiveError::NotTaken(p)));
    other.give(p, Order(0), MOV).expect("it is kept");
    drop(other);
    assert_eq!(memory.refused(), 1);
    assert_eq!(memory.free_frames(), 4096);
    let foreign = one.give(Pfn(BASE.0 + (1 << 18)), Order(0), MOV);
    assert!(foreign.is_err());
    let whole = one.give(BASE, Order(10), MOV);
    assert_eq!(whole, Err(GiveError::NotTaken(BASE)));
    memory.validate().expect("a sound state");
}

/// What one keeps is called home when another finds nothing: it comes at its next free.
#[test]
fn frames_are_called_home_when_memory_is_short() {
    let keeps = 128;
    let memory: Memory<Lock> = full(MemoryConfig {
        keeps,
        ..config(4096, 1, 2)
    });
    let mut keeper = memory.local().expect("a local");
    let mut other = memory.local().expect("a local");
    let kept: Vec<Pfn> = (0..200)
        .map(|_| keeper.alloc(Order(0), MOV).expect("memory"))
        .collect();
    for &p in &kept[..150] {
        keeper.give(p, Order(0), MOV).expect("in use");
    }
    let mut taken = take_all(&mut other, 0).len();
    let keeps = 4096 - 50 - taken as u64;
    assert!((64..=128).contains(&keeps), "it keeps {keeps}");
    let lag = memory.free_frames().abs_diff(keeps);
    assert!(lag <= 64, "what is kept is known as of the last batch");
    assert_eq!(other.alloc(Order(0), MOV), Err(AllocError::Short));
    keeper.give(kept[150], Order(0), MOV).expect("in use");
    taken += take_all(&mut other, 0).len();
    assert_eq!(taken, 4096 - 50, "but for the one that it has freed since");
    keeper.give(kept[151], Order(0), MOV).expect("in use");
    drop(keeper);
    assert_eq!(
        take_all(&mut other, 0).len(),
        2,
        "a thread that ends keeps nothing"
    );
}

#[test]
fn watermarks_are_kept_by_whole_batches() {
    let (min, low, high) = (100, 500, 600);
    let memory: Memory<Lock> = full(config(4096, 1, 1).with_marks(Marks { min, low, high }));
    let mut l = memory.local().expect("a local");
    while memory.free_frames() > 600 {
        l.alloc(Order(0), MOV).expect("memory");
    }
    assert!(!memory.take_short());
    let rest = take_all(&mut l, 0).len();
    assert!(memory.take_short() && !memory.take_short(), "once");
    assert_eq!(memory.free_frames(), 100);
    assert!((400..600).contains(&rest), "{rest}");
    assert_eq!(l.alloc(Order(3), MOV), Err(AllocError::Short));
    let too_large = l.alloc(Order(19), MOV);
    assert_eq!(too_large, Err(AllocError::OrderTooLarge));
}

/// Whoever cannot wait gets the frames below the min watermark, one by one; nothing of them is kept for others.
#[test]
fn the_reserve_is_for_those_who_cannot_wait() {
    let min = 100;
    let marks = Marks { min, ..Marks::NONE };
    let memory: Memory<Lock> = full(config(4096, 1, 2).with_marks(marks));
    let mut other = memory.local().expect("a local");
    let mut l = memory.local().expect("a local");
    take_all(&mut other, 0);
    assert_eq!(memory.counts().free, 100);
    for left in (0..100).rev() {
        l.alloc_atomic(Order(0), MOV).expect("of the reserve");
        assert_eq!(memory.counts().free, left);
        assert_eq!(l.alloc(Order(0), MOV), Err(AllocError::Short));
    }
    let none = l.alloc_atomic(Order(0), MOV);
    assert_eq!(none, Err(AllocError::Short));
    let too_large = l.alloc_atomic(Order(19), MOV);
    assert_eq!(too_large, Err(AllocError::OrderTooLarge));
    memory.validate().expect("a sound state");
}

#[test]
fn memory_comes_at_any_time_and_a_part_of_a_block_goes_back_by_itself() {
    let memory: Memory<Lock> = started(config(1 << 20, 4, 1));
    let mut l = memory.local().expect("a local");
    assert_eq!(l.alloc(Order(0), MOV), Err(AllocError::Short));
    add(&memory, Pfn(BASE.0 + 100_000), 300_000).expect("new");
    assert!(
        add(&memory, Pfn(BASE.0 + 399_999), 1).is_err(),
        "it is there"
    );
    assert!(add(&memory, Pfn(BASE.0 - 1), 1).is_err());
    assert!(add(&memory, BASE, u64::MAX).is_err());
    let huge = l.alloc(Order(9), MOV).expect("memory");
    for i in (0..512).rev().step_by(2) {
        l.give(Pfn(huge.0 + i), Order(0), MOV).expect("a part");
    }
    for i in (0..512).step_by(2) {
        l.give(Pfn(huge.0 + i), Order(0), MOV).expect("a part");
    }
    l.flush().expect("all were in use");
    assert_eq!(memory.free_frames(), 300_000);
    add(&memory, BASE, 100_000).expect("new");
    add(&memory, Pfn(BASE.0 + 400_000), (1 << 20) - 400_000).expect("new");
    let gigabytes = take_all(&mut l, 18);
    assert_eq!(gigabytes.len(), 4, "all of it in four pieces");
    memory.validate().expect("a sound state");
}

/// Threads take what can be moved from their own shards, and what cannot from the same.
#[test]
fn what_cannot_be_moved_stays_in_one_shard() {
    let memory: Memory<Lock> = full(config(4 << 18, 4, 4));
    let mut locals: Vec<_> = (0..4).map(|_| memory.local().expect("a local")).collect();
    let mut homes = Vec::new();
    for l in &mut locals {
        let p = l.alloc(Order(0), MOV).expect("memory");
        homes.push((p.0 - BASE.0) >> 18);
        for mt in &TYPES[1..] {
            let p = l.alloc(Order(0), *mt).expect("memory");
            assert_eq!((p.0 - BASE.0) >> 18, 3);
        }
    }
    assert_eq!(homes, [0, 1, 2, 3]);
    assert_eq!(memory.counts().tainted_gigabytes, 1);
}

/// A memory that has not been started, or not rightly, has nothing, and says what is wrong.
#[test]
fn what_is_no_memory_is_refused() {
    let ok = config(4096, 1, 1);
    let memory: Memory<Lock> = Memory::new(ok);
    assert!(memory.local().is_none());
    assert_eq!(
        memory.alloc(&Request::new(Order(0), MOV)),
        Err(AllocError::Short)
    );
    assert_eq!(add(&memory, BASE, 4096), Err(GiveError::NoMemory(BASE)));
    let room = MemoryLayout::of(&ok);
    let few = memory.start(&mut [], &mut vec![0; room.locals].leak());
    assert_eq!(few, Err(StartError::Directory(1)));
    let one = || Vec::leak(vec![Gigabyte::NONE]);
    let few = memory.start(one(), &mut vec![0; room.locals - 1].leak());
    assert_eq!(few, Err(StartError::Words(room.locals)));
    memory
        .start(one(), &mut vec![0; room.locals].leak())
        .expect("enough");
    let again = memory.start(one(), &mut vec![0; room.locals].leak());
    assert_eq!(again, Err(StartError::Started));
}

/// Who takes frames one by one takes those first whose buddies are in use, or are no memory: so larger blocks are left.
#[test]
fn a_frame_that_is_taken_singly_leaves_pairs_whole() {
    let memory: Memory<Lock> = started(config(1 << 18, 1, 0));
    add(&memory, BASE, 3).expect("it is new");
    let at = |n: u64| Ok(Pfn(BASE.0 + n));
    assert_eq!(memory.alloc(&Request::new(Order(0), MOV)), at(2));
    assert_eq!(memory.alloc(&Request::new(Order(1), MOV)), at(0));
    assert_eq!(memory.free_frames(), 0);
    // Of a block with a frame in use in each second of its first pairs.
    let memory: Memory<Lock> = full(config(1 << 18, 1, 0));
    for n in [1, 5, 9] {
        assert_eq!(memory.alloc_at(Pfn(BASE.0 + n), 1, MOV), Ok(()));
    }
    for n in [0, 4, 8] {
        assert_eq!(memory.alloc(&Request::new(Order(0), MOV)), at(n));
    }
    assert_eq!(
        memory.alloc(&Request::new(Order(0), MOV)),
        at(2),
        "no frame is alone"
    );
}

/// An array that is full gives back in one batch all but those that came last: a quarter, of order 9 an eighth.
#[test]
fn a_full_array_keeps_those_that_came_last() {
    for (order, room, stay) in [(0, 128, 32), (1, 32, 8), (3, 32, 8), (9, 16, 2)] {
        let memory: Memory<Lock> = full(config(1 << 18, 1, 1));
        let mut local = memory.local().expect("one");
        let taken: Vec<Pfn> = (0..2 * room)
            .map(|_| local.alloc(Order(order), MOV).expect("memory"))
            .collect();
        local.flush().expect("taken once");
        let kept = |memory: &Memory<Lock>| memory.free_frames() - memory.counts().free;
        let mut most = 0;
        for &block in &taken[..room as usize + 1] {
            most = most.max(kept(&memory) >> order);
            local.give(block, Order(order), MOV).expect("in use");
        }
        assert_eq!((most, kept(&memory) >> order), (room, stay + 1));
        // The last one first.
        for &block in taken[..room as usize + 1]
            .iter()
            .rev()
            .take(stay as usize + 1)
        {
            assert_eq!(local.alloc(Order(order), MOV), Ok(block), "order {order}");
        }
        assert_eq!(kept(&memory), 0);
    }
}
