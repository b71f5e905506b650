//! Memory that many CPUs share, and what each of them has.

use crate::support::{add, full, started};
use unfrag::maps::GiveError::{
    self, InUse, NoFrames, NoMemory, NoTables, NotABlock, NotTaken, Present, TooManyHoles,
};
use unfrag::maps::{EngineLayout, Gigabyte};
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{AllocError, MigrateType, Order, Pfn, Request};
use unfrag::{
    Area, Barrier, Local, MAX_NODES, MAX_SHARDS, Marks, Memory, MemoryConfig, MemoryLayout, NodeId,
    StartError,
};

pub type Lock = spin::Mutex<()>;
const MOV: MigrateType = MigrateType::Movable;
const UNM: MigrateType = MigrateType::Unmovable;
/// Two shards; memory is in both, with a hole between them.
const BASE: u64 = 1 << 20;
const FRAMES: u64 = 2 << 18;
const SECOND: u64 = BASE + (1 << 18);

/// A block, its order, and what is wrong with it.
type Row = (u64, u8, fn(Pfn) -> GiveError);
/// A range, what is wrong with it, and where.
type AddRow = (u64, u64, fn(Pfn) -> GiveError, u64);

pub fn free(l: &mut Local<'_, '_, Lock>, p: u64, order: u8) -> Result<(), GiveError> {
    // SAFETY: nothing is at a frame, so nobody can use one.
    unsafe { l.free(Pfn(p), Order(order), MOV) }
}

pub fn free_without(s: &Memory<'_, Lock>, p: u64, order: u8) -> Result<(), GiveError> {
    // SAFETY: as above.
    unsafe { s.free(Pfn(p), Order(order), MOV) }
}

/// The barrier of locals that one thread has.
pub fn one_thread() -> Barrier {
    // SAFETY: none of them is in a call while another one is.
    unsafe { Barrier::new(|| true) }
}

fn config() -> MemoryConfig {
    MemoryConfig::new(Pfn(BASE), FRAMES)
        .with_shards(2)
        .with_locals(2)
}

fn two_parts() -> Memory<'static, Lock> {
    let s = started(config());
    add(&s, Pfn(BASE + 3), 4000).expect("new");
    add(&s, Pfn(SECOND), 4500).expect("new");
    s
}

fn state(s: &Memory<Lock>) -> (u64, u64, u64) {
    // Miri takes too long to look at every block.
    if !cfg!(miri) {
        s.validate().expect("a sound state");
    }
    (s.free_frames(), s.counts().free, s.counts().present)
}

/// Wrong whatever is in use: the block, its order, and the answer.
const NO_BLOCKS: [Row; 19] = [
    (BASE - 1, 0, NoMemory),
    (0, 0, NoMemory),
    (0, 9, NoMemory),
    (u64::MAX, 0, NoMemory),
    (BASE + FRAMES, 0, NoMemory),
    (BASE + FRAMES, 9, NoMemory),
    (BASE + (1 << 32), 0, NoMemory),
    (BASE + 512 + 3, 9, NotABlock),
    (BASE + 512 + 256, 9, NotABlock),
    (BASE + 513, 1, NotABlock),
    (BASE + 514, 2, NotABlock),
    (SECOND + 512, 10, NotABlock),
    // It would end beyond the memory.
    (BASE + FRAMES - 2, 2, NotABlock),
    (BASE, 19, NotABlock),
    (BASE, 32, NotABlock),
    (BASE, 33, NotABlock),
    (BASE, 64, NotABlock),
    (BASE, 73, NotABlock),
    (BASE, 255, NotABlock),
];

#[test]
#[cfg_attr(miri, ignore = "its memory has two shards, of more than a gigabyte")]
fn what_is_no_block_is_refused_by_every_free() {
    let s = two_parts();
    let mut l = s.local().expect("two of them");
    let before = state(&s);
    for (p, order, why) in NO_BLOCKS {
        let why = Err(why(Pfn(p)));
        assert_eq!(free(&mut l, p, order), why, "{p:#x} {order}");
        assert_eq!(free_without(&s, p, order), why, "{p:#x} {order}");
    }
    l.flush().expect("it keeps nothing");
    assert_eq!(state(&s), before);
    assert!(l.alloc(Order(9), MOV).is_ok_and(|p| p.0 % 512 == 0));
}

/// What a `Local` does not keep is judged at once; what it keeps, when it is given back. Each error names the frame.
#[test]
#[cfg_attr(miri, ignore = "its memory has two shards, of more than a gigabyte")]
fn what_is_not_in_use_is_refused() {
    let s = two_parts();
    let before = state(&s);
    let rows: [Row; 14] = [
        (BASE, 0, NoMemory),
        (BASE, 3, NoMemory),
        (BASE, 9, NoMemory),
        (BASE, 18, NoMemory),
        (BASE + 4003, 0, NoMemory),
        (BASE + 8192, 0, NoMemory),
        (SECOND - 512, 9, NoMemory),
        (SECOND + 4500, 0, NoMemory),
        (BASE + 3, 0, NotTaken),
        (BASE + 512, 1, NotTaken),
        (BASE + 512, 7, NotTaken),
        (BASE + 512, 9, NotTaken),
        (SECOND, 0, NotTaken),
        (SECOND, 10, NotTaken),
    ];
    for (p, order, why) in rows {
        let why = Err(why(Pfn(p)));
        assert_eq!(free_without(&s, p, order), why, "{p:#x} {order}");
        assert_eq!(state(&s), before);
        let mut l = s.local().expect("two of them");
        let given = free(&mut l, p, order).and_then(|()| l.flush());
        assert_eq!(given, why, "{p:#x} {order}");
        drop(l);
        assert_eq!(state(&s), before);
    }
    assert_eq!(s.refused(), 0, "each was said");
}

#[test]
#[cfg_attr(miri, ignore = "its memory has two shards, of more than a gigabyte")]
fn memory_is_added_once() {
    let s = two_parts();
    let before = state(&s);
    let mut l = s.local().expect("two of them");
    let used = l.alloc(Order(0), MOV).expect("memory").0;
    l.flush().expect("in use");
    drop(l);
    let rows: [AddRow; 13] = [
        (used, 1, Present, used),
        (BASE + 3, 1, Present, BASE + 3),
        (BASE, 4, Present, BASE),
        // Its first part is new: nothing of it is added.
        (BASE + 8192, (1 << 18) - 8192 + 1, Present, SECOND),
        (SECOND + 4499, 1, Present, SECOND + 4499),
        (BASE, 0, NoFrames, BASE),
        (BASE - 1, 1, NoMemory, BASE - 1),
        (0, u64::MAX, NoMemory, 0),
        (u64::MAX, 1, NoMemory, u64::MAX),
        (BASE, u64::MAX, NoMemory, BASE + FRAMES),
        (BASE + FRAMES, 1, NoMemory, BASE + FRAMES),
        (BASE + FRAMES - 1, 2, NoMemory, BASE + FRAMES),
        (BASE + (1 << 40), 1, NoMemory, BASE + (1 << 40)),
    ];
    for (p, n, why, at) in rows {
        assert_eq!(add(&s, Pfn(p), n), Err(why(Pfn(at))), "{p:#x} {n}");
        assert_eq!(state(&s).2, before.2);
    }
    free_without(&s, used, 0).expect("in use");
    assert_eq!(state(&s), before);
    add(&s, Pfn(BASE + 8192), (1 << 18) - 8192).expect("new");
}

#[test]
#[cfg_attr(miri, ignore = "its memory has two shards, of more than a gigabyte")]
fn a_request_that_cannot_be_served_says_why() {
    let s = two_parts();
    let before = state(&s);
    let mut l = s.local().expect("two of them");
    for order in [19, 30, 32, 40, 64, 255] {
        for mt in MigrateType::ALL {
            let too_large = Err(AllocError::OrderTooLarge);
            assert_eq!(l.alloc(Order(order), mt), too_large, "{order}");
            assert_eq!(l.alloc_atomic(Order(order), mt), too_large, "{order}");
            assert_eq!(
                s.alloc(&Request::new(Order(order), mt)),
                too_large,
                "{order}"
            );
        }
        assert!(s.report(Order(order)).is_none());
    }
    for order in [0, 8, 13, 18] {
        assert!(s.report(Order(order)).is_none());
    }
    // 8,500 frames are free, and 4,096 of them together.
    for (order, why) in [(13, AllocError::Fragmented), (14, AllocError::Short)] {
        assert_eq!(l.alloc(Order(order), MOV), Err(why), "{order}");
        assert_eq!(l.alloc_atomic(Order(order), MOV), Err(why), "{order}");
        assert_eq!(
            s.alloc(&Request::new(Order(order), MOV)),
            Err(why),
            "{order}"
        );
    }
    drop(l);
    assert_eq!(state(&s), before);
}

/// Whoever cannot wait is served by what his own CPU keeps, whatever its type and order, before he hears that nothing is
/// left.
#[test]
#[cfg_attr(miri, ignore = "it takes all frames, many times")]
fn what_the_cpu_keeps_is_asked_before_a_request_fails() {
    for kept in [0, 1, 2, 3, 9] {
        for atomic in [false, true] {
            let s = started(MemoryConfig {
                keeps: 128,
                ..MemoryConfig::new(Pfn(0), 1 << 14)
            });
            add(&s, Pfn(0), 1 << 14).expect("new");
            let mut l = s.local().expect("a local");
            let all: Vec<Pfn> = std::iter::from_fn(|| l.alloc(Order(kept), MOV).ok()).collect();
            let half = all.len().min(8);
            for p in &all[..half] {
                free(&mut l, p.0, kept).expect("in use");
            }
            assert_eq!(s.counts().free, 0, "the CPU keeps all that is free");
            for _ in 0..half << kept {
                let got = if atomic {
                    l.alloc_atomic(Order(0), UNM)
                } else {
                    l.alloc(Order(0), UNM)
                };
                assert!(got.is_ok(), "order {kept}, atomic {atomic}: {got:?}");
            }
            assert_eq!(l.alloc_atomic(Order(0), UNM), Err(AllocError::Short));
            s.validate().expect("a sound state");
        }
    }
}

/// What is wrong with a configuration is said, and nothing is started.
#[test]
#[cfg_attr(miri, ignore = "it takes all frames, many times")]
fn a_memory_that_cannot_be_is_not_started() {
    let area = Area {
        start: Pfn(BASE),
        frames: FRAMES,
        node: NodeId(0),
        shards: 1,
        is_low: false,
    };
    let later = |frames| Area {
        start: Pfn(BASE + frames),
        ..area
    };
    let at = |start, frames| Area {
        start: Pfn(start),
        frames,
        ..area
    };
    let good = MemoryConfig::of(area);
    let shards = |shards| Area { shards, ..area };
    let node = |node| Area {
        node: NodeId(node),
        ..area
    };
    let none = shards(0);
    let three = shards(3);
    let all = shards(usize::MAX);
    let (empty, odd) = (at(BASE, 0), at(512, FRAMES));
    let (last, long) = (at(u64::MAX << 19, FRAMES), at(0, u64::MAX));
    let many = (0..MAX_SHARDS as u64).fold(good, |c, i| c.and(later((i + 1) << 19)));
    let rows = [
        (MemoryConfig::of(none), StartError::Area(none)),
        (MemoryConfig::of(three), StartError::Area(three)),
        (MemoryConfig::of(all), StartError::Area(all)),
        (MemoryConfig::of(empty), StartError::Area(empty)),
        (MemoryConfig::of(odd), StartError::Area(odd)),
        (MemoryConfig::of(last), StartError::Overlap(last)),
        (MemoryConfig::of(long), StartError::Overlap(long)),
        (good.and(area), StartError::Overlap(area)),
        (
            good.and(later(1 << 18)),
            StartError::Overlap(later(1 << 18)),
        ),
        (
            MemoryConfig::of(node(MAX_NODES as u8)),
            StartError::Node(NodeId(MAX_NODES as u8)),
        ),
        (MemoryConfig::of(node(255)), StartError::Node(NodeId(255))),
        (many, StartError::TooManyShards(MAX_SHARDS + 1)),
        (
            good.with_locals(1 << 40),
            StartError::Words(MemoryLayout::of(&good.with_locals(1 << 40)).locals),
        ),
        (good.with_locals(usize::MAX), StartError::Words(usize::MAX)),
        (
            good.with_locals(usize::MAX / 16),
            StartError::Words(usize::MAX),
        ),
    ];
    for (bad, why) in rows {
        let memory: Memory<Lock> = Memory::new(bad);
        let directory = (0..1 << 14).map(|_| Gigabyte::NONE).collect();
        let mut words = vec![0; 1 << 16].leak();
        let before = words.len();
        assert_eq!(memory.start(Vec::leak(directory), &mut words), Err(why));
        assert!(!why.to_string().is_empty());
        assert_eq!(words.len(), before, "nothing was taken");
        assert!(memory.local().is_none());
    }
    let memory = started::<Lock>(good.and(later(1 << 19)));
    let few = memory.add(
        Pfn(BASE),
        FRAMES,
        &mut vec![0; EngineLayout::of(Pfn(BASE), FRAMES).words - 8].leak(),
    );
    assert_eq!(few, Err(NoTables(Pfn(BASE))));
    assert_eq!(state(&memory), (0, 0, 0));
    // Marks beyond all memory: nobody gets a frame but who cannot wait; and what is kept has bounds.
    for keeps in [0, 1, 1000, u32::MAX] {
        let (min, low, high) = (u64::MAX, u64::MAX, u64::MAX);
        let s = started(MemoryConfig {
            keeps,
            marks: Marks { min, low, high },
            ..MemoryConfig::new(Pfn(0), 4096)
        });
        add(&s, Pfn(0), 4096).expect("new");
        let mut l = s.local().expect("a local");
        assert!(s.local().is_none(), "one of them");
        assert_eq!(l.alloc(Order(0), MOV), Err(AllocError::Short));
        assert_eq!(
            s.alloc(&Request::new(Order(9), MOV)),
            Err(AllocError::Short)
        );
        assert!(s.report(Order(9)).is_none());
        let p = l.alloc_atomic(Order(9), MOV).expect("memory").0;
        for i in 0..512 {
            free(&mut l, p + i, 0).expect("in use");
        }
        l.flush().expect("in use");
        assert_eq!(state(&s), (4096, 4096, 4096));
    }
}

/// A frame that was freed twice: the error names it, and nobody gets it again after that.
#[test]
#[cfg_attr(miri, ignore = "it takes all frames, many times")]
fn a_double_free_that_is_found_is_the_last_one() {
    for (first, second) in [(0, 0), (3, 3), (9, 9), (9, 0), (3, 0), (0, 3)] {
        let s = two_parts();
        let (mut one, mut other) = (s.local().expect("a local"), s.local().expect("a local"));
        let p = one.alloc(Order(first.max(second)), MOV).expect("memory").0;
        one.flush().expect("in use");
        free(&mut one, p, first).expect("in use");
        one.flush().expect("in use");
        let twice = free(&mut other, p, second).and_then(|()| other.flush());
        assert_eq!(twice, Err(NotTaken(Pfn(p))), "{first} {second}");
        s.validate().expect("a sound state");
        drop((one, other));
        let free = s.free_frames();
        let mut l = s.local().expect("a local");
        let got: std::collections::BTreeSet<u64> =
            std::iter::from_fn(|| l.alloc(Order(0), MOV).ok().map(|p| p.0)).collect();
        assert_eq!(got.len() as u64, free, "each frame once");
    }
}

/// Two free one frame, each through its own `Local`, and somebody drains both: it is counted, and there once.
#[test]
#[cfg_attr(miri, ignore = "it takes all frames, many times")]
fn a_double_free_that_a_drain_finds_is_counted() {
    for order in [0, 1, 3, 9] {
        let s = started::<Lock>(MemoryConfig {
            barrier: Some(one_thread()),
            ..config()
        });
        add(&s, Pfn(SECOND), 4500).expect("new");
        let (mut one, mut other) = (s.local().expect("a local"), s.local().expect("a local"));
        let p = one.alloc(Order(order), MOV).expect("memory").0;
        one.flush().expect("in use");
        free(&mut one, p, order).expect("in use");
        free(&mut other, p, order).expect("it cannot know");
        assert_eq!((s.drain_locals(), s.refused()), (2 << order, 1), "{order}");
        assert_eq!((s.free_frames(), s.counts().free), (4500, 4500), "{order}");
        drop((one, other));
        let mut l = s.local().expect("a local");
        let got: std::collections::BTreeSet<u64> =
            std::iter::from_fn(|| l.alloc(Order(0), MOV).ok().map(|p| p.0)).collect();
        assert_eq!(got.len(), 4500, "each frame once");
    }
}

/// An evacuator of one memory has nothing to do with another one, and says no to what it did not ask.
#[test]
#[cfg_attr(miri, ignore = "its memory has two shards, of more than a gigabyte")]
fn an_evacuator_frees_only_what_it_asked_for() {
    let s = two_parts();
    let mut l = s.local().expect("a local");
    let all: Vec<Pfn> = (0..1000)
        .map(|_| l.alloc(Order(0), MOV).expect("memory"))
        .collect();
    for p in all.iter().filter(|p| p.0 % 4 != 0) {
        free(&mut l, p.0, 0).expect("in use");
    }
    drop(l);
    let before = state(&s);
    let mut e = Evacuator::new(&s, Goal::Blocks(1), Limits::NONE.copies(1000));
    let Move::Frame(from) = e.step() else {
        panic!("there is something to move");
    };
    for (p, order, why) in NO_BLOCKS {
        // SAFETY: nothing is at a frame, so nobody can use one.
        let moved = unsafe { e.moved(Pfn(p), Order(order)) };
        assert_eq!(moved, Err(why(Pfn(p))), "{p:#x} {order}");
    }
    // SAFETY: as above.
    let mut moved = |p, o| unsafe { e.moved(Pfn(p), Order(o)) };
    assert_eq!(
        moved(from.0 + 4, 0),
        Err(NotABlock(Pfn(from.0 + 4))),
        "in use, but not asked for"
    );
    assert_eq!(
        moved(from.0, 1),
        Err(NotTaken(from)),
        "its second half is free"
    );
    assert!(
        matches!(e.step(), Move::Frame(p) if p != from),
        "it goes on"
    );
    drop(e);
    assert_eq!(state(&s), before);
}

/// Texts of all errors name the frame, and what helps.
#[test]
fn errors_name_the_frame_and_the_way_out() {
    let all: [fn(Pfn) -> GiveError; 8] = [
        NotTaken,
        NotABlock,
        NoMemory,
        InUse,
        Present,
        NoFrames,
        TooManyHoles,
        NoTables,
    ];
    for why in all {
        let why = why(Pfn(0xabcde));
        assert_eq!(why.frame(), Pfn(0xabcde));
        assert!(why.to_string().contains("0xabcde"), "{why}");
    }
}

fn busy() -> Memory<'static, Lock> {
    let s = started(MemoryConfig {
        keeps: 128,
        ..MemoryConfig::new(Pfn(0), 1 << 15)
    });
    add(&s, Pfn(0), 1 << 15).expect("new");
    s
}

/// A block that one CPU frees twice in a row is refused at once; of the orders 1 to 3 whatever else it has freed since.
#[test]
fn a_double_free_on_one_cpu_is_found_at_once() {
    for order in [0, 1, 2, 3, 9] {
        let s = busy();
        let mut l = s.local().expect("a local");
        let all: Vec<u64> = (0..14)
            .map(|_| l.alloc(Order(order), MOV).expect("memory").0)
            .collect();
        l.flush().expect("in use");
        for (i, &p) in all.iter().enumerate() {
            free(&mut l, p, order).expect("in use");
            let from = if (1..=3).contains(&order) { 0 } else { i };
            for &q in &all[from..=i] {
                let twice = Err(NotTaken(Pfn(q)));
                assert_eq!(free(&mut l, q, order), twice, "{order}");
            }
        }
        let again: Vec<u64> = (0..14)
            .map(|_| l.alloc(Order(order), MOV).expect("memory").0)
            .collect();
        let mut sorted = [again.clone(), all];
        sorted.iter_mut().for_each(|v| v.sort_unstable());
        assert_eq!(sorted[0], sorted[1], "each of them once");
        for p in again {
            free(&mut l, p, order).expect("in use again");
        }
        l.flush().expect("in use");
        assert_eq!(s.counts().free, 1 << 15);
        assert_eq!(s.refused(), 0);
    }
}

/// One that was not found at once is when a batch with it is given back, be it with both of its copies or with one; then
/// nobody gets it for the other one.
#[test]
#[cfg_attr(miri, ignore = "it takes all frames, many times")]
fn a_double_free_on_one_cpu_is_found_with_its_batch() {
    for (order, keeps) in [(0, 128), (9, 16)] {
        for twice_at in [2, keeps / 2 - 2, keeps / 2 + 2, keeps - 2] {
            for flushes in [false, true] {
                let s = busy();
                let mut l = s.local().expect("a local");
                let all: Vec<u64> = (0..=keeps)
                    .map(|_| l.alloc(Order(order), MOV).expect("memory").0)
                    .collect();
                l.flush().expect("in use");
                let mut errors = Vec::new();
                for (i, &p) in all.iter().enumerate() {
                    errors.extend(free(&mut l, p, order).err());
                    if i == twice_at {
                        errors.extend(free(&mut l, all[0], order).err());
                    }
                }
                if flushes {
                    errors.extend(l.flush().err());
                }
                assert_eq!(errors, [NotTaken(Pfn(all[0]))], "{order} {twice_at}");
                let got: Vec<Pfn> =
                    std::iter::from_fn(|| l.alloc(Order(order), MOV).ok()).collect();
                let each: std::collections::BTreeSet<u64> = got.iter().map(|p| p.0).collect();
                assert_eq!(each.len(), got.len(), "{order} {twice_at}: each once");
                assert_eq!(got.len(), 1 << (15 - order));
                s.validate().expect("a sound state");
            }
        }
    }
}

/// A frame of a block that is in use as a whole is not taken for one that was freed before, though the block's map, which nobody
/// has touched, says so.
#[test]
fn a_part_of_a_whole_block_is_freed_once_and_no_more() {
    let s: Memory<Lock> = full(MemoryConfig::new(Pfn(0), 1 << 18).with_locals(1));
    let mut l = s.local().expect("a local");
    let all: Vec<u64> = (0..300)
        .map(|_| l.alloc(Order(9), MOV).expect("memory").0)
        .collect();
    for p in &all {
        assert_eq!(free(&mut l, p + 7, 0), Ok(()));
    }
    // The second copy of one stays in the array when the batch with the first one is given back.
    let twice = all[290] + 7;
    let again = all.iter().map(|p| p + 8).chain([twice]);
    let errors: Vec<GiveError> = again.filter_map(|p| free(&mut l, p, 0).err()).collect();
    let errors: Vec<GiveError> = errors.into_iter().chain(l.flush().err()).collect();
    assert_eq!(errors, [NotTaken(Pfn(twice))]);
    assert_eq!(s.counts().free, (1 << 18) - 300 * 510);
    s.validate().expect("a sound state");
}
