//! A mix over a long time: pages come and go, the heap takes unmovable frames, the page cache takes the rest, and somebody
//! wants a huge page now and then.

use super::chance::Chance;
use super::pages::{SPACES, Work};
use crate::frames::{self, Rights};
use crate::space::Space;
use crate::tables::State;
use crate::{cache, task};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use unfrag::{MigrateType, Order};

/// Operations that are enough for any memory.
const MOST: u64 = 200_000;
/// Operations of a call.
const OPERATIONS: u64 = 20_000;
/// Objects that a CPU has on the heap.
const OBJECTS: usize = 512;
/// Pages that come or go at a time.
const RUN: u64 = 32;

/// Whether there was an operation for two frames, or very many.
pub fn enough(work: &Work, frames: u64) -> bool {
    work.operations.load(Relaxed) >= MOST.min(frames / 2)
}

/// Some operations on a CPU.
pub fn run(work: &Work, cpu: usize) {
    let before = work.operations.fetch_add(OPERATIONS, Relaxed);
    let mut chance = Chance::new(work.seed << 24 | before << 4 | cpu as u64);
    let mut objects: Vec<Box<[u8]>> = (0..OBJECTS).map(|_| object(&mut chance)).collect();
    for n in 0..OPERATIONS {
        match chance.below(16) {
            0..3 => map_some(work, cpu, &mut chance),
            3..9 => unmap_some(work, cpu, &mut chance),
            9..12 => {
                let i = chance.below(OBJECTS as u64) as usize;
                assert!(
                    objects[i].iter().all(|&b| b == objects[i].len() as u8),
                    "the heap lost an object"
                );
                objects[i] = object(&mut chance);
            }
            12..15 => read_file(&mut chance),
            _ if n % 64 == 0 => huge_page(),
            _ => {}
        }
    }
    task::leave_space();
}

/// An object of the heap, which holds its size.
fn object(chance: &mut Chance) -> Box<[u8]> {
    let size = 16 << chance.below(12);
    alloc::vec![size as u8; size].into_boxed_slice()
}

/// Calls `f` with a run of pages of some process of a CPU, whose space the task is in.
fn with_run(
    work: &Work,
    cpu: usize,
    chance: &mut Chance,
    f: impl FnOnce(&'static Space, Range<u32>),
) {
    let own = work.of[cpu].lock();
    let process = &own[chance.below(SPACES as u64) as usize];
    if process.pages == 0 {
        return;
    }
    let first = chance.below(process.pages.into()) as u32;
    let end = process.pages.min(first + 1 + chance.below(RUN) as u32);
    process.space.enter();
    f(process.space, first..end);
}

fn map_some(work: &Work, cpu: usize, chance: &mut Chance) {
    with_run(work, cpu, chance, |space, run| {
        for page in run {
            if space.state(page) == State::Nothing && !work.map(space, page) {
                // kswapd makes room.
                task::yield_now();
            }
        }
    });
}

fn unmap_some(work: &Work, cpu: usize, chance: &mut Chance) {
    with_run(work, cpu, chance, |space, run| {
        run.clone().for_each(|page| work.check_page(space, page));
        work.unmap(space, run);
    });
}

fn read_file(chance: &mut Chance) {
    let pages = u64::from(cache::pages());
    let first = chance.below(pages);
    for page in first..pages.min(first + RUN) {
        if !cache::read(page as u32) {
            task::yield_now();
        }
    }
}

/// A huge page for a moment, if there is one.
fn huge_page() {
    if let Some(pfn) = frames::alloc(Order::HUGE, MigrateType::Movable, Rights::Task) {
        frames::free(pfn, Order::HUGE, MigrateType::Movable);
    }
}
