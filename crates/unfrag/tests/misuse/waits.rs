//! Blocks with a frame that nobody moved, or that are only partly memory, and what becomes of them when memory comes and goes.

use super::memory::{Lock, free_without};
use crate::support::{add, started};
use unfrag::moves::{Evacuator, Goal, Limits, Move, Outcome};
use unfrag::{Memory, MemoryConfig, MigrateType, Order, Pfn, Request};

const MOV: MigrateType = MigrateType::Movable;
const BLOCK: u64 = 512;

/// Eight blocks, all of them free.
fn memory() -> Memory<'static, Lock> {
    let m: Memory<Lock> = started(MemoryConfig::new(Pfn(0), 1 << 18));
    add(&m, Pfn(0), 8 * BLOCK).expect("new");
    m
}

fn remove(m: &Memory<'static, Lock>, at: u64, frames: u64) {
    // SAFETY: frames are only numbers here.
    unsafe { m.remove(Pfn(at), frames) }.expect("in use");
}

/// Nobody moves anything.
fn in_vain(m: &Memory<'static, Lock>) -> Outcome {
    let mut e = Evacuator::new(m, Goal::Blocks(1), Limits::NONE);
    while e.step() != Move::Done {}
    e.outcome()
}

/// All frames, one by one, each once.
fn take_all(m: &Memory<'static, Lock>) -> u64 {
    let mut seen = std::collections::BTreeSet::new();
    while let Ok(p) = m.alloc(&Request::new(Order(0), MOV)) {
        assert!(seen.insert(p.0), "{p:?} has two owners");
    }
    seen.len() as u64
}

/// A part of a block that waits goes, and all that is left is handed out, each frame once.
#[test]
fn a_part_of_a_block_that_waits_can_go() {
    for (at, n) in [(0, 1), (0, 40), (39, 1), (8, 8)] {
        let m = memory();
        m.alloc_at(Pfn(BLOCK), 40, MOV).expect("free");
        m.alloc_at(Pfn(2 * BLOCK), 300, MOV).expect("free");
        assert!(matches!(in_vain(&m), Outcome::Stays(_)));
        m.validate().expect("a sound state");
        remove(&m, BLOCK + at, n);
        m.validate().expect("a sound state");
        for p in 2 * BLOCK..2 * BLOCK + 300 {
            free_without(&m, p, 0).expect("in use");
        }
        m.validate().expect("a sound state");
        assert_eq!(take_all(&m), 8 * BLOCK - 40);
    }
}

/// A block of which a frame stayed goes as a whole, and comes back as one of which nothing is known.
#[test]
fn a_block_that_waits_can_go_and_come_back() {
    let m = memory();
    m.alloc_at(Pfn(BLOCK), 40, MOV).expect("free");
    assert!(matches!(in_vain(&m), Outcome::Stays(_)));
    m.alloc_at(Pfn(BLOCK + 40), BLOCK - 40, MOV).expect("free");
    remove(&m, BLOCK, BLOCK);
    m.validate().expect("a sound state");
    add(&m, Pfn(BLOCK), BLOCK).expect("it is none");
    m.validate().expect("a sound state");
    assert_eq!(take_all(&m), 8 * BLOCK);
}

/// A block that was only partly memory is emptied as any other once all of it is.
#[test]
fn a_block_that_has_become_whole_memory_is_emptied() {
    let m: Memory<Lock> = started(MemoryConfig::new(Pfn(0), 1 << 18));
    add(&m, Pfn(0), BLOCK + 100).expect("new");
    m.alloc_at(Pfn(BLOCK), 40, MOV).expect("free");
    m.alloc_at(Pfn(0), 300, MOV).expect("free");
    assert_eq!(m.whole_blocks(), 0);
    add(&m, Pfn(BLOCK + 100), BLOCK - 100).expect("new");
    m.validate().expect("a sound state");
    let mut e = Evacuator::new(&m, Goal::Blocks(1), Limits::NONE);
    while let Move::Frame(from) = e.step() {
        e.place(Order(0)).expect("room").into_pfn();
        // SAFETY: frames are only numbers here.
        unsafe { e.moved(from, Order(0)) }.expect("in use");
    }
    assert_eq!(
        (e.outcome(), e.gained(), e.copied()),
        (Outcome::Reached, 1, 40)
    );
}
