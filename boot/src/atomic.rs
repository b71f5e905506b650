//! The load of interrupt handlers: they allocate and free with what is at hand, and never wait.
//!
//! Each tick allocates some blocks, as a network card's handler does, and frees those that have been held for a while. Each
//! block carries its number, which is read again before it is freed.
//!
//! Invariant: a CPU's blocks are reached with interrupts off, by that CPU alone.

use crate::cpu;
use crate::frames::{self, Rights};
use crate::memory_map::frame;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use unfrag::{MigrateType, Order, Pfn};

/// Blocks that a CPU's handlers hold at most.
pub const HELD: usize = 32;
const _: () = assert!(4 * HELD as u64 <= frames::RESERVE);
/// Blocks that a tick allocates.
const PER_TICK: usize = 8;
/// Of so many allocations, one asks for two frames.
const PAIRS: u64 = 16;

/// What a CPU's handlers hold: a ring.
struct Ring {
    held: [Option<(Pfn, Order, u64)>; HELD],
    next: usize,
    count: u64,
}

struct Rings([UnsafeCell<Ring>; cpu::MAX_CPUS]);
// SAFETY: Each CPU uses its own, with interrupts off.
unsafe impl Sync for Rings {}

static RINGS: Rings = Rings(
    [const {
        UnsafeCell::new(Ring {
            held: [None; HELD],
            next: 0,
            count: 0,
        })
    }; cpu::MAX_CPUS],
);

static ON: AtomicBool = AtomicBool::new(false);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

/// Has the handlers allocate from now on, or stop.
pub fn turn(on: bool) {
    ON.store(on, Relaxed);
}

/// A tick of the timer.
pub fn tick() {
    for _ in 0..PER_TICK {
        allocate();
    }
}

/// Allocates a block, and frees the oldest one.
pub fn allocate() {
    if !ON.load(Relaxed) {
        return;
    }
    let _off = cpu::interrupts_off();
    // SAFETY: Interrupts are off, and this CPU's ring is used nowhere else meanwhile.
    let ring = unsafe { &mut *RINGS.0[cpu::id()].get() };
    ring.count += 1;
    let at = ring.next;
    ring.next = (at + 1) % HELD;
    free(ring.held[at].take());
    let order = Order(u8::from(ring.count.is_multiple_of(PAIRS)));
    let Some(pfn) = frames::alloc(order, MigrateType::Unmovable, Rights::Interrupt) else {
        FAILED.fetch_add(1, Relaxed);
        return;
    };
    ALLOCATED.fetch_add(1, Relaxed);
    // SAFETY: The block is ours.
    unsafe { frame::<u64>(pfn).write(ring.count) };
    ring.held[at] = Some((pfn, order, ring.count));
}

fn free(block: Option<(Pfn, Order, u64)>) {
    let Some((pfn, order, number)) = block else {
        return;
    };
    // SAFETY: The block is ours until it is freed.
    let found = unsafe { frame::<u64>(pfn).read() };
    if found != number {
        LOST.fetch_add(1, Relaxed);
    }
    frames::free(pfn, order, MigrateType::Unmovable);
    FREED.fetch_add(1, Relaxed);
}

/// Frees what this CPU's handlers hold.
pub fn free_all() {
    let _off = cpu::interrupts_off();
    // SAFETY: As in `allocate`.
    let ring = unsafe { &mut *RINGS.0[cpu::id()].get() };
    ring.held.iter_mut().for_each(|b| free(b.take()));
}

/// Blocks that interrupt handlers allocated so far.
pub fn allocated() -> u64 {
    ALLOCATED.load(Relaxed)
}

/// What became of the allocations of interrupt handlers.
#[derive(Clone, Copy)]
pub struct Counts {
    /// Blocks that they got.
    pub allocated: u64,
    /// Requests without a block.
    pub failed: u64,
    /// Blocks that were not freed, or did not hold what was written.
    pub lost: u64,
}

/// The counts, after [`free_all`] on all CPUs.
pub fn counts() -> Counts {
    let (allocated, freed) = (ALLOCATED.load(Relaxed), FREED.load(Relaxed));
    Counts {
        allocated,
        failed: FAILED.load(Relaxed),
        lost: LOST.load(Relaxed) + allocated - freed,
    }
}
