//! The allocator, the owners of pages, and what each step costs.
//!
//! Invariant: a frame's bit is set exactly while a page of the program lies there that may be moved.

use crate::engine::Nanos;
use crate::mm::MemCosts;
use crate::own::Own;
use unfrag_eras::drive::Operation;
use unfrag_eras::frame::{FrameKind, OwnerId, PageFlags};
use unfrag_eras::lru::Lru;
use unfrag_eras::migrate::{Migration, MoveVerdict, MoveVerdicts};
use unfrag_eras::need::{Answer, Need, Step};
use unfrag_eras::source::Source;
use unfrag_eras::{CpuId, Host, Manager, NodeId, Order, Pfn};

const MS: Nanos = 1_000_000;

/// Whom the allocator has asked to be woken.
#[derive(Default)]
pub(super) struct Wakes {
    pub kswapd: bool,
    pub kcompactd: bool,
    /// What chooses frames, if lists do not.
    pub own: Option<Box<Own>>,
}

impl Host for Wakes {
    // What has no owner stays where it is.
    const MOVES_UNLISTED: bool = false;
    const SOURCES: bool = true;

    fn source(&mut self) -> Option<&mut dyn Source> {
        Some(&mut **self.own.as_mut()?)
    }

    fn wake_kswapd(&mut self, _: NodeId, _: Order) {
        self.kswapd = true;
    }

    fn wake_kcompactd(&mut self, _: NodeId) {
        self.kcompactd = true;
    }
}

/// CPU time by what it was spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Allocating and preparing blocks, and turns of the slow path.
    pub alloc: Nanos,
    /// Looking at frames.
    pub scanning: Nanos,
    /// Moving pages: content, references, TLB.
    pub copying: Nanos,
    /// Waiting.
    pub waiting: Nanos,
}

impl Spent {
    /// All of it.
    pub fn total(&self) -> Nanos {
        self.alloc + self.scanning + self.copying + self.waiting
    }

    /// CPU time: all but waits.
    pub fn cpu(&self) -> Nanos {
        self.total() - self.waiting
    }

    /// Whether frames were scanned or pages moved.
    pub fn has_compacted(&self) -> bool {
        self.scanning + self.copying > 0
    }

    pub(super) fn add(&mut self, other: Spent) {
        self.alloc += other.alloc;
        self.scanning += other.scanning;
        self.copying += other.copying;
        self.waiting += other.waiting;
    }
}

/// What a step of an operation came to.
pub(super) enum Stepped<T> {
    Done(T),
    /// It goes on with this answer.
    Goes(Answer),
    /// It sleeps until it is woken, at most for so many milliseconds.
    Sleeps(Option<u32>),
}

/// The allocator with the program's pages in it.
pub(super) struct Memory<'m> {
    pub manager: Manager<'m, Wakes>,
    pub costs: MemCosts,
    /// Frames that compaction has looked at.
    pub looks: u64,
    first: Pfn,
    pages: Vec<u64>,
}

impl<'m> Memory<'m> {
    pub fn new(manager: Manager<'m, Wakes>, frames: u64, costs: MemCosts) -> Memory<'m> {
        Memory {
            manager,
            costs,
            looks: 0,
            first: Pfn(0),
            pages: vec![0; frames.div_ceil(64) as usize],
        }
    }

    fn bit(&self, pfn: Pfn) -> (usize, u64) {
        let i = pfn.0 - self.first.0;
        ((i / 64) as usize, 1 << (i % 64))
    }

    fn has(&self, pfn: Pfn) -> bool {
        let (word, bit) = self.bit(pfn);
        self.pages[word] & bit != 0
    }

    /// Makes a block in use a page of the program, mapped once, that may be moved.
    pub fn own(&mut self, pfn: Pfn) {
        let Some(owner) = OwnerId::new(1) else {
            unreachable!("the first of 127 owners")
        };
        let (word, bit) = self.bit(pfn);
        self.pages[word] |= bit;
        let mut pages = self.manager.pages();
        pages.adopt(pfn, owner, 0);
        let flags = PageFlags::MAPPED | PageFlags::DIRTY | PageFlags::SWAPBACKED;
        pages.lru_add(pfn, Lru::InactiveAnon, flags);
    }

    /// Pages of the program, and how many of them are not in use as the allocator sees it.
    pub fn audit(&self) -> (u64, u64) {
        let (mut all, mut lost) = (0, 0);
        for (i, &word) in self.pages.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let pfn = Pfn(self.first.0 + i as u64 * 64 + u64::from(left.trailing_zeros()));
                left &= left - 1;
                all += 1;
                // A page that is being moved is on no list, but in use.
                let frame = self.manager.inspect().frame(pfn);
                let is_kept = frame.is_some_and(|f| f.kind == FrameKind::Used);
                lost += u64::from(!is_kept);
            }
        }
        (all, lost)
    }

    /// Frames that compaction has looked at so far.
    fn frames_compacted(&self) -> u64 {
        let c = self.manager.inspect().compact_counters();
        c.compact_migrate_scanned + c.compact_free_scanned
    }

    /// One step of an operation, with the moves that it asks for.
    pub fn step<O: Operation>(
        &mut self,
        operation: &mut O,
        cpu: CpuId,
        answer: Answer,
    ) -> (Stepped<O::Output>, Spent) {
        let before = self.frames_compacted();
        let step = operation.step(&mut self.manager, cpu, answer);
        let looked = self.frames_compacted() - before;
        self.looks += looked;
        let mut spent = Spent {
            scanning: looked * self.costs.compact_frame,
            ..Spent::default()
        };
        let stepped = match step {
            Step::Done(output) => Stepped::Done(output),
            Step::Need(Need::Migrate) => {
                let (verdicts, copying) = self.migrate(operation.migration());
                spent.copying += copying;
                Stepped::Goes(Answer::Migrated(verdicts))
            }
            Step::Need(Need::Sleep(ms)) => Stepped::Sleeps(ms),
            Step::Need(need) => {
                let (answer, more) = self.meet(need, looked > 0);
                spent.add(more);
                Stepped::Goes(answer)
            }
        };
        (stepped, spent)
    }

    /// Meets a need: there is no device to wait for, and nothing to write, to shrink or to kill.
    fn meet(&self, need: Need, has_compacted: bool) -> (Answer, Spent) {
        let mut spent = Spent::default();
        let answer = match need {
            Need::Turn { scanned, freed } => {
                if !has_compacted {
                    let c = &self.costs;
                    spent.alloc += c.alloc_slow
                        + c.scan_page * Nanos::from(scanned)
                        + c.reclaim_page * Nanos::from(freed);
                }
                Answer::Go
            }
            Need::Evict => unreachable!("no page of this machine can be evicted"),
            Need::CongestionWait { ms, .. } => {
                spent.waiting += Nanos::from(ms) * MS;
                Answer::Left(0)
            }
            Need::Throttle { ms, .. } => {
                spent.waiting += Nanos::from(ms.max(1)) * MS;
                Answer::Go
            }
            Need::Shrink { .. } => Answer::Freed(0),
            Need::Oom => Answer::Killed(false),
            _ => Answer::Go,
        };
        (answer, spent)
    }

    /// Moves the program's pages. What it does not own stays.
    fn migrate(&mut self, migration: &Migration) -> (MoveVerdicts, Nanos) {
        let c = self.costs;
        let page = c.move_page + c.copy_page + c.unmap_page + c.remap_page;
        let mut copying = 0;
        let verdicts = migration.ask(|ask| {
            if !self.has(ask.from) {
                return MoveVerdict::Busy;
            }
            let (word, bit) = self.bit(ask.from);
            self.pages[word] &= !bit;
            let (word, bit) = self.bit(ask.to);
            self.pages[word] |= bit;
            copying += page * Nanos::from(ask.order.frames());
            MoveVerdict::Moved
        });
        if copying > 0 {
            copying += c.flush_tlb;
        }
        (verdicts, copying)
    }
}
