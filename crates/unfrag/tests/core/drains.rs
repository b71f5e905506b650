//! What CPUs keep is everybody's when memory is short: it is drained by whoever finds nothing, and nothing of it is lost.

use crate::chance::{Chance, setting};
use crate::support::{add, started};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use unfrag::lock_api::{GuardSend, RawMutex};
use unfrag::maps::GiveError;
use unfrag::{AllocError, MigrateType, Order, Pfn, Request};
use unfrag::{Barrier, Local, Memory, MemoryConfig};

type Lock = spin::Mutex<()>;
const BASE: Pfn = Pfn(1 << 18);
const MOV: MigrateType = MigrateType::Movable;
const UNM: MigrateType = MigrateType::Unmovable;
const TYPES: [MigrateType; 3] = [MOV, UNM, MigrateType::Reclaimable];
const FRAMES: u64 = 1 << 14;

thread_local! {
    static FENCES: Cell<u32> = const { Cell::new(0) };
    static CAN: Cell<bool> = const { Cell::new(true) };
}

/// All owners are of this thread, so none is inside while it is called.
fn fence() -> bool {
    FENCES.set(FENCES.get() + 1);
    CAN.get()
}

fn barrier(everywhere: fn() -> bool) -> Option<Barrier> {
    // SAFETY: one thread has all locals.
    Some(unsafe { Barrier::new(everywhere) })
}

fn config(locals: usize) -> MemoryConfig {
    MemoryConfig {
        locals,
        keeps: 128,
        barrier: barrier(fence),
        ..MemoryConfig::new(BASE, FRAMES)
    }
}

fn memory<R: RawMutex>(config: MemoryConfig) -> Memory<'static, R> {
    let memory = started(config);
    add(&memory, BASE, FRAMES).expect("it is new");
    memory
}

fn free<R: RawMutex>(
    l: &mut Local<'_, '_, R>,
    pfn: Pfn,
    order: u8,
    mt: MigrateType,
) -> Result<(), GiveError> {
    // SAFETY: nothing is at a frame, so nobody can use one.
    unsafe { l.free(pfn, Order(order), mt) }
}

/// Has it keep blocks of an order, and nothing else. Returns how many frames.
fn keep<R: RawMutex>(l: &mut Local<'_, '_, R>, order: u8, mt: MigrateType) -> u64 {
    let all: Vec<Pfn> = (0..8)
        .map(|_| l.alloc(Order(order), mt).expect("memory"))
        .collect();
    l.flush().expect("in use");
    for &p in &all {
        free(l, p, order, mt).expect("in use");
    }
    8 << order
}

#[test]
fn what_idle_cpus_keep_is_had_by_whoever_finds_nothing() {
    type Ask = fn(&Memory<'static, Lock>, &mut Local<'_, '_, Lock>) -> Result<Pfn, AllocError>;
    let asks: [Ask; 3] = [
        |_, l| l.alloc(Order(0), UNM),
        |_, l| l.alloc_atomic(Order(0), UNM),
        |m, _| m.alloc(&Request::new(Order(0), UNM)),
    ];
    for order in [0, 1, 2, 3, 9] {
        for ask in asks {
            let memory = memory(config(4));
            let mut locals: Vec<_> = (0..4).map(|_| memory.local().expect("a local")).collect();
            let kept: u64 = (1..4)
                .map(|i| keep(&mut locals[i], order, TYPES[i - 1]))
                .sum();
            let l = &mut locals[0];
            let mut taken = 0;
            while memory.counts().free > 0 && l.alloc(Order(0), UNM).is_ok() {
                taken += 1;
            }
            while taken + kept < FRAMES && l.alloc(Order(0), UNM).is_ok() {
                taken += 1;
            }
            assert_eq!(memory.free_frames(), kept, "they keep all that is free");
            for left in (0..kept).rev() {
                assert!(ask(&memory, l).is_ok(), "order {order}: {left} are left");
                assert_eq!(memory.free_frames(), left);
            }
            assert_eq!(ask(&memory, l), Err(AllocError::Short));
            memory.validate().expect("a sound state");
        }
    }
}

/// A huge page is whole once the frames of it that others keep have come back.
#[test]
fn a_frame_that_is_kept_breaks_no_block() {
    let memory: Memory<Lock> = memory(config(3));
    let mut locals: Vec<_> = (0..3).map(|_| memory.local().expect("a local")).collect();
    let [one, two, asks] = &mut locals[..] else {
        panic!("three of them");
    };
    keep(one, 0, MOV);
    keep(two, 2, UNM);
    assert!(u64::from(memory.whole_blocks()) < FRAMES / 512);
    let all = (0..).map_while(|_| asks.alloc(Order(9), MOV).ok());
    assert_eq!(all.count() as u64, FRAMES / 512);
}

/// One barrier serves many, and none is asked for where nobody keeps anything.
#[test]
fn a_drain_asks_for_as_few_barriers_as_it_can() {
    let memory: Memory<Lock> = memory(config(130));
    FENCES.set(0);
    assert_eq!(memory.drain_locals(), 0);
    let mut locals: Vec<_> = (0..130).map(|_| memory.local().expect("a local")).collect();
    assert_eq!((memory.drain_locals(), FENCES.get()), (0, 0));
    let kept: u64 = locals.iter_mut().map(|l| keep(l, 0, MOV)).sum();
    assert_eq!((memory.drain_locals(), FENCES.get()), (kept, 3));
    assert_eq!(memory.counts().free, FRAMES);
    assert_eq!((memory.drain_locals(), FENCES.get()), (0, 3));
}

/// Without a barrier, at all or now, nobody else touches what a CPU keeps: it gives it back itself, at its next free.
#[test]
fn where_no_barrier_can_be_had_frames_are_called_home() {
    for has in [false, true] {
        let mut c = config(2);
        c.barrier = c.barrier.filter(|_| has);
        let memory: Memory<Lock> = memory(c);
        let (mut one, mut other) = (memory.local().expect("two"), memory.local().expect("two"));
        let p = one.alloc(Order(0), UNM).expect("memory");
        let kept = keep(&mut one, 0, MOV);
        CAN.set(false);
        assert_eq!(memory.drain_locals(), 0);
        assert_eq!(memory.counts().free, FRAMES - 1 - kept);
        let all = (0..).map_while(|_| other.alloc(Order(0), MOV).ok()).count();
        assert_eq!(all as u64, FRAMES - 1 - kept);
        free(&mut one, p, 0, UNM).expect("in use");
        let now = (0..).map_while(|_| other.alloc(Order(0), MOV).ok()).count();
        assert_eq!(now as u64, kept, "but for the one that it has freed since");
        CAN.set(true);
        assert_eq!(memory.free_frames(), 1);
        one.flush().expect("in use");
        assert_eq!(memory.counts().free, 1);
    }
}

/// A barrier that panics leaves everything as it was.
#[test]
fn no_gate_stays_shut_when_a_barrier_panics() {
    let memory: Memory<Lock> = memory(MemoryConfig {
        barrier: barrier(|| panic!("no barrier")),
        ..config(2)
    });
    let (mut one, mut other) = (memory.local().expect("two"), memory.local().expect("two"));
    let kept = keep(&mut one, 0, MOV) + keep(&mut other, 3, UNM);
    assert!(catch_unwind(AssertUnwindSafe(|| memory.drain_locals())).is_err());
    assert_eq!(memory.free_frames(), FRAMES);
    assert_eq!(memory.counts().free, FRAMES - kept);
    let p = one.alloc(Order(0), MOV).expect("it is kept");
    assert_eq!(memory.counts().free, FRAMES - kept, "and no shard is asked");
    free(&mut one, p, 0, MOV).expect("in use");
    drop(one);
    other.flush().expect("in use");
    assert_eq!(memory.counts().free, FRAMES);
}

/// A lock that panics once.
struct Trap(AtomicBool);

static ARMED: AtomicU32 = AtomicU32::new(0);

// SAFETY: one at a time has it.
unsafe impl RawMutex for Trap {
    const INIT: Trap = Trap(AtomicBool::new(false));
    type GuardMarker = GuardSend;

    fn lock(&self) {
        let armed = ARMED.load(SeqCst);
        if armed > 0 {
            ARMED.store(armed - 1, SeqCst);
            assert!(armed > 1, "a lock that breaks");
        }
        assert!(self.try_lock(), "one thread");
    }
    fn try_lock(&self) -> bool {
        !self.0.swap(true, SeqCst)
    }
    unsafe fn unlock(&self) {
        self.0.store(false, SeqCst);
    }
}

/// Whoever drains and dies leaves no gate shut; what it had in its hands is lost, and nothing is there twice.
#[test]
fn who_dies_while_it_drains_takes_one_batch_with_it() {
    for at in 1..8 {
        let memory: Memory<Trap> = memory(config(3));
        let mut locals: Vec<_> = (0..3).map(|_| memory.local().expect("a local")).collect();
        for l in &mut locals {
            for (order, mt) in [(0, MOV), (0, UNM), (3, MOV)] {
                let all: Vec<Pfn> = (0..100)
                    .map_while(|_| l.alloc(Order(order), mt).ok())
                    .collect();
                for p in all {
                    free(l, p, order, mt).expect("in use");
                }
            }
        }
        ARMED.store(at, SeqCst);
        let died = catch_unwind(AssertUnwindSafe(|| memory.drain_locals())).is_err();
        assert!(died, "it took {at} locks");
        let lost = FRAMES - memory.free_frames();
        assert!(lost <= 64 << 3, "{lost} frames");
        let mut seen = vec![false; FRAMES as usize];
        for l in &mut locals {
            for _ in 0..40 {
                let p = l.alloc(Order(0), MOV).expect("memory");
                assert!(!std::mem::replace(&mut seen[(p.0 - BASE.0) as usize], true));
            }
        }
        let [l, ..] = &mut locals[..] else { return };
        while let Ok(p) = l.alloc(Order(0), MOV) {
            assert!(!std::mem::replace(&mut seen[(p.0 - BASE.0) as usize], true));
        }
        let got = seen.iter().filter(|&&s| s).count() as u64;
        assert_eq!(got + lost, FRAMES);
        memory.validate().expect("a sound state");
    }
}

/// Blocks by their first frame.
type Owned = BTreeMap<u64, (u8, MigrateType)>;

/// CPUs that come and go, take and give, with drains in between: what is free is known to the frame after each, nobody has
/// what another one has, and single frames are refused when none is left. The seed is printed.
#[test]
fn what_is_free_is_exact_whatever_is_drained() {
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 12 {
        println!("seed {seed}");
        let mut c = Chance(seed);
        let min = c.of(&[0, 0, 50]);
        let mut of = config(5);
        (of.marks.min, of.keeps) = (min, c.of(&[1, 8, 40, 128]));
        let frames = 512 * 8;
        let memory: Memory<Lock> = started(of);
        add(&memory, BASE, frames).expect("it is new");
        let mut locals: Vec<Option<Local<'_, '_, Lock>>> = (0..5).map(|_| None).collect();
        let (mut owned, mut used) = (Owned::new(), 0);
        let (mut short, mut drained) = (0, 0);
        for step in 0..8000 {
            let l = &mut locals[c.below(5) as usize];
            let Some(own) = l else {
                *l = memory.local();
                assert!(l.is_some(), "there are as many as can be");
                continue;
            };
            let grows = step / 2000 % 2 == 0;
            match c.below(40) {
                0 => *l = None,
                1 => own.flush().expect("in use"),
                2 => {
                    let kept = memory.free_frames() - memory.counts().free;
                    CAN.set(c.below(3) > 0);
                    let got = memory.drain_locals();
                    assert!(got == 0 || got == kept);
                    drained += got;
                    CAN.set(true);
                }
                n if n < if grows { 32 } else { 12 } => {
                    let order = c.of(&[0, 0, 0, 0, 1, 2, 3, 5, 5, 9]);
                    let mt = c.of(&TYPES);
                    let got = if c.one_in(4) {
                        memory.alloc(&Request::new(Order(order), mt))
                    } else {
                        own.alloc(Order(order), mt)
                    };
                    match got {
                        Ok(p) => {
                            let end = p.0 + (1 << order);
                            let last = owned.range(..end).next_back();
                            let overlaps = last.is_some_and(|(&at, &(o, _))| at + (1 << o) > p.0);
                            assert!(!overlaps, "{p:?} has two owners");
                            owned.insert(p.0, (order, mt));
                            used += 1 << order;
                        }
                        Err(AllocError::Short) => {
                            assert!(
                                used + (1 << order) + min > frames,
                                "all that is free counts"
                            );
                            short += 1;
                        }
                        Err(AllocError::Fragmented) => assert!(order > 0),
                        Err(why) => panic!("{why:?}"),
                    }
                }
                _ => {
                    let at = BASE.0 + c.below(frames);
                    let Some((&p, &(order, mt))) = owned.range(at..).next() else {
                        continue;
                    };
                    owned.remove(&p);
                    free(own, Pfn(p), order, mt).expect("in use");
                    used -= 1 << order;
                }
            }
            assert_eq!(memory.free_frames(), frames - used);
        }
        assert!(
            short > 0 && drained > 0,
            "{short} were refused, {drained} drained"
        );
        drop(locals);
        for (p, (order, mt)) in owned {
            // SAFETY: as above.
            unsafe { memory.free(Pfn(p), Order(order), mt) }.expect("in use");
        }
        memory.validate().expect("a sound state");
        assert_eq!(memory.counts().free, frames);
        assert_eq!(memory.refused(), 0);
    }
}
