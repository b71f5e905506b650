//! Watermarks under contention: they hold however many CPUs take at a time.

use crate::support::{add, started};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use unfrag::lock_api::{GuardNoSend, RawMutex};
use unfrag::maps::{Gigabyte, GiveError};
use unfrag::{Marks, Memory, MemoryConfig, Request};
use unfrag::{MigrateType, Order, Pfn};

const MOV: MigrateType = MigrateType::Movable;

/// Blocks that each CPU asks for.
const ROUNDS: u64 = 40;

/// A lock that is always contended: whoever wants it waits, so that all others come as far as he has.
struct Slow(spin::Mutex<()>);

// SAFETY: it is the inner one.
unsafe impl RawMutex for Slow {
    const INIT: Slow = Slow(<spin::Mutex<()> as RawMutex>::INIT);
    type GuardMarker = GuardNoSend;
    fn lock(&self) {
        std::thread::yield_now();
        while !self.try_lock() {
            std::thread::yield_now();
        }
    }
    fn try_lock(&self) -> bool {
        RawMutex::try_lock(&self.0)
    }
    unsafe fn unlock(&self) {
        // SAFETY: as the caller says.
        unsafe { RawMutex::unlock(&self.0) };
    }
}

fn memory(cpus: usize, blocks: u64, min: u64) -> Memory<'static, Slow> {
    let (low, high) = (min, min);
    let config = MemoryConfig {
        locals: cpus,
        keeps: 128,
        marks: Marks { min, low, high },
        ..MemoryConfig::new(Pfn(0), blocks * 512)
    };
    let memory = started(config);
    add(&memory, Pfn(0), blocks * 512).expect("new");
    memory
}

/// All at once, for what only one of them can have. Returns how many frames they got.
fn all_at_once(memory: &Memory<'static, Slow>, cpus: usize, order: u8, atomic: bool) -> u64 {
    let (barrier, got) = (Barrier::new(cpus), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for _ in 0..cpus {
            threads.spawn(|| {
                let mut local = memory.local().expect("one for each");
                barrier.wait();
                for _ in 0..ROUNDS {
                    let p = if atomic {
                        local.alloc_atomic(Order(order), MOV)
                    } else {
                        local.alloc(Order(order), MOV)
                    };
                    if p.is_err() {
                        break;
                    }
                    got.fetch_add(1 << order, SeqCst);
                }
                // Nothing that it keeps goes back before all have seen what is left.
                barrier.wait();
                barrier.wait();
            });
        }
    });
    got.load(SeqCst)
}

#[test]
#[cfg_attr(miri, ignore = "it takes all frames, many times")]
fn no_number_of_cpus_gets_below_the_min_mark() {
    let cpus = 8;
    for order in [0, 3, 9] {
        let (blocks, min) = (29, 10_000);
        let memory = memory(cpus, blocks, min);
        let wanted = (ROUNDS * cpus as u64) << order;
        let got = all_at_once(&memory, cpus, order, false);
        let left = memory.counts().free;
        assert_eq!(left, blocks * 512 - got, "nothing is lost");
        assert!(left >= min, "order {order}: {left} are left of {min}");
        assert_eq!(memory.free_frames(), left, "the totals are exact");
        assert_eq!(memory.take_short(), got < wanted);
        memory.validate().expect("a sound state");
    }
}

#[test]
#[cfg_attr(miri, ignore = "it takes all frames, many times")]
fn who_cannot_wait_gets_all_and_no_more() {
    let cpus = 8;
    for order in [0, 9] {
        let memory = memory(cpus, 8, 1000);
        let (mut got, mut left) = (0, 8 * 512);
        while left > 0 {
            left = all_at_once(&memory, cpus, order, true);
            got += left;
            assert_eq!(memory.free_frames(), 8 * 512 - got, "the totals are exact");
            assert_eq!(memory.counts().free, 8 * 512 - got);
        }
        assert_eq!(got, 8 * 512, "order {order}");
        memory.validate().expect("a sound state");
    }
}

/// A lock before which somebody else comes, once it is told so.
struct Late(spin::Mutex<()>);

/// How often somebody asked for a frame where another one was about to lock.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// Somebody asks.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
static MEMORY: Memory<Late> = Memory::new(MemoryConfig::new(Pfn(0), 64 * 512));

// SAFETY: it is the inner one.
unsafe impl RawMutex for Late {
    const INIT: Late = Late(<spin::Mutex<()> as RawMutex>::INIT);
    type GuardMarker = GuardNoSend;
    fn lock(&self) {
        if IS_ASKED.swap(false, SeqCst) {
            let p = MEMORY
                .alloc(&Request::new(Order(0), MOV))
                .expect("nearly all is free");
            // SAFETY: nothing is at a frame, so nobody can use one.
            unsafe { MEMORY.free(p, Order(0), MOV) }.expect("in use");
            ASKED.fetch_add(1, SeqCst);
            IS_ASKED.store(true, SeqCst);
        }
        RawMutex::lock(&self.0);
    }
    fn try_lock(&self) -> bool {
        RawMutex::try_lock(&self.0)
    }
    unsafe fn unlock(&self) {
        // SAFETY: as the caller says.
        unsafe { RawMutex::unlock(&self.0) };
    }
}

/// Who asks in vain for frames by their place, as many as all that are free, is in nobody's way meanwhile.
#[test]
fn a_range_that_is_not_to_be_had_fails_nobody_else() {
    let words = unfrag::MemoryLayout::of(MEMORY.config()).words;
    let (mut words, directory) = (vec![0; words].leak(), vec![Gigabyte::NONE].leak());
    MEMORY.start(directory, &mut words).expect("a memory");
    MEMORY.add(Pfn(0), 64 * 512, &mut words).expect("new");
    MEMORY.alloc_at(Pfn(60 * 512), 1, MOV).expect("free");
    IS_ASKED.store(true, SeqCst);
    let got = MEMORY.alloc_at(Pfn(0), 64 * 512 - 1, MOV);
    IS_ASKED.store(false, SeqCst);
    assert_eq!(got, Err(GiveError::InUse(Pfn(60 * 512))));
    assert!(ASKED.load(SeqCst) > 0);
    assert_eq!(MEMORY.free_frames(), 64 * 512 - 1);
}
