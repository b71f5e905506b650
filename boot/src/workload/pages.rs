//! The address spaces of the workload, and their pages.
//!
//! Invariant: a CPU's tasks alone map, unmap and write pages of that CPU's spaces. What a page holds follows from its space
//! and its number.

use super::chance::Chance;
use crate::frames::{self, Rights};
use crate::mutex::Mutex;
use crate::pattern::{self, Words};
use crate::space::{Space, address};
use crate::tables::State;
use crate::{spaces, task, tlb};
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use unfrag::{MigrateType, Order, Pfn};
use x86_64::VirtAddr;

/// Spaces of each CPU.
pub const SPACES: usize = 6;
/// Pages that are mapped at a time, at most.
const RUN: u64 = 16;

/// A space, and how far it reaches.
pub struct Process {
    /// The space.
    pub space: &'static Space,
    /// Pages from 0 on that have ever been mapped.
    pub pages: u32,
}

/// What the workload has.
pub struct Work {
    /// The processes of each CPU.
    pub of: Vec<Mutex<Vec<Process>>>,
    /// Huge pages are mapped here.
    pub huge: &'static Space,
    /// How many.
    pub huge_pages: Mutex<u32>,
    /// The seed of each choice.
    pub seed: u64,
    /// Operations of the churn.
    pub operations: AtomicU64,
    /// Whether pages are being read meanwhile.
    pub reads: AtomicBool,
    checked: AtomicU64,
    wrong: AtomicU64,
}

/// The memory at an address of the space that the calling task is in.
fn words(at: VirtAddr) -> *mut Words {
    at.as_mut_ptr()
}

impl Work {
    /// Processes without pages.
    pub fn new(cpus: usize, seed: u64) -> Work {
        let space = || spaces::create().expect("frames for first tables");
        let process = |_| Process {
            space: space(),
            pages: 0,
        };
        Work {
            of: (0..cpus)
                .map(|_| Mutex::new((0..SPACES).map(process).collect()))
                .collect(),
            huge: space(),
            huge_pages: Mutex::new(0),
            seed,
            operations: AtomicU64::new(0),
            reads: AtomicBool::new(false),
            checked: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
        }
    }

    /// Maps pages in all spaces of a CPU, until there is no frame left for a task.
    pub fn fill(&self, cpu: usize) {
        let mut chance = Chance::new(self.seed << 8 | cpu as u64);
        let mut own = self.of[cpu].lock();
        loop {
            let process = &mut own[chance.below(SPACES as u64) as usize];
            let run = 1 + chance.below(RUN) as u32;
            if (0..run).any(|_| !self.grow(process)) {
                break;
            }
        }
        task::leave_space();
    }

    /// Maps a page behind the last one.
    fn grow(&self, process: &mut Process) -> bool {
        let mapped = self.map(process.space, process.pages);
        process.pages += u32::from(mapped);
        mapped
    }

    /// Maps a page that is not mapped, and writes it. False, if there is no frame.
    pub fn map(&self, space: &'static Space, page: u32) -> bool {
        let Some(pfn) = frames::alloc(Order(0), MigrateType::Movable, Rights::Task) else {
            return false;
        };
        if space.map(page, pfn).is_err() {
            frames::free(pfn, Order(0), MigrateType::Movable);
            return false;
        }
        space.enter();
        // SAFETY: The page is mapped in the space of this task, whose CPU alone uses it.
        pattern::fill(
            unsafe { &mut *words(address(page)) },
            space.id().into(),
            page.into(),
        );
        true
    }

    /// Unmaps those of some pages of 4 KiB that are mapped, and frees their frames.
    pub fn unmap(&self, space: &Space, pages: Range<u32>) {
        for first in pages.clone().step_by(tlb::MOST) {
            let mut frames = ArrayVec::<Pfn, { tlb::MOST }>::new();
            let mut flushed = ArrayVec::<VirtAddr, { tlb::MOST }>::new();
            for page in first..pages.end.min(first + tlb::MOST as u32) {
                if let Some(pfn) = space.unmap(page) {
                    frames.push(pfn);
                    flushed.push(address(page));
                }
            }
            if !frames.is_empty() {
                tlb::flush(&flushed);
            }
            let free = |pfn| frames::free(pfn, Order(0), MigrateType::Movable);
            frames.into_iter().for_each(free);
        }
    }

    /// Compares a page of the space that the calling task is in, if it is mapped.
    pub fn check_page(&self, space: &Space, page: u32) {
        if space.state(page) == State::Nothing {
            return;
        }
        // SAFETY: The page is mapped in the space of this task; while it is being moved, the access waits.
        let right = pattern::is(
            unsafe { &*words(address(page)) },
            space.id().into(),
            page.into(),
        );
        self.checked.fetch_add(1, Relaxed);
        self.wrong.fetch_add(u64::from(!right), Relaxed);
    }

    /// Compares every page of a CPU's spaces.
    pub fn check(&self, cpu: usize) {
        for process in self.of[cpu].lock().iter() {
            process.space.enter();
            (0..process.pages).for_each(|page| self.check_page(process.space, page));
        }
        task::leave_space();
    }

    /// Compares pages of a CPU's spaces, again and again, until nobody wants it any more.
    pub fn keep_reading(&self, cpu: usize) {
        let mut chance = Chance::new(self.seed << 4 | cpu as u64);
        let own = self.of[cpu].lock();
        while self.reads.load(Relaxed) {
            let process = &own[chance.below(SPACES as u64) as usize];
            process.space.enter();
            for _ in 0..RUN {
                let page = chance.below(process.pages.max(1).into()) as u32;
                self.check_page(process.space, page);
            }
            task::yield_now();
        }
        task::leave_space();
    }

    /// Unmaps every page of a CPU's spaces.
    pub fn free(&self, cpu: usize) {
        for process in self.of[cpu].lock().iter_mut() {
            let pages = core::mem::take(&mut process.pages);
            self.unmap(process.space, 0..pages);
        }
    }

    /// Destroys the spaces, in which nothing is mapped.
    pub fn destroy(&self) {
        for own in &self.of {
            own.lock().drain(..).for_each(|p| spaces::destroy(p.space));
        }
        spaces::destroy(self.huge);
    }

    /// Pages that were compared, and those that were wrong.
    pub fn counts(&self) -> (u64, u64) {
        (self.checked.load(Relaxed), self.wrong.load(Relaxed))
    }
}
