//! The mover: asks the owners of isolated pages to move them, 32 at a time, and ends each move. `spec: 5.1`
//!
//! Invariant: between batches every isolated page is on `sources` and every taken block with the free scanner; during
//! one, those that are asked about are in the batch.

use super::outcome::Mode;
use super::targets::Targets;
use crate::frame::{CpuId, FrameIx, Order, Pfn};
use crate::host::Host;
use crate::manager::Manager;
use crate::migrate::{Migration, MoveAsk, MoveVerdict, MoveVerdicts, destination};
use crate::need::Answer;
use crate::placement::{End, List};
use crate::trace::Event;

/// Where a run takes its targets from.
pub(crate) trait Supply {
    /// The blocks that it has taken.
    fn targets(&mut self) -> &mut Targets;

    /// Takes more: blocks for pages of `order`, about `wanted` frames.
    fn fill<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, wanted: (Order, u32));
}

/// The mover of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mover {
    /// Pages that are isolated, the next to be moved first.
    pub sources: List,
    batch: Migration,
    /// Pages isolated by the last scan.
    wanted: u32,
    moved: u32,
    failed: u32,
    /// There was no free block for some page.
    lacks_target: bool,
}

/// What became of the pages of one scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// Pages that stayed, or were put back.
    pub failed: u32,
    /// There was no free block for some of them.
    pub lacks_target: bool,
}

impl Mover {
    pub const NEW: Mover = Mover {
        sources: List::EMPTY,
        batch: Migration::EMPTY,
        wanted: 0,
        moved: 0,
        failed: 0,
        lacks_target: false,
    };

    /// What is asked.
    pub fn migration(&self) -> &Migration {
        &self.batch
    }

    /// Begins to move the `pages` that a scan isolated.
    pub fn begin(&mut self, pages: u32, mode: Mode) {
        (self.wanted, self.moved, self.failed) = (pages, 0, 0);
        self.lacks_target = false;
        self.batch.may_wait = mode != Mode::Async;
        self.batch.may_write = mode == Mode::Sync;
    }

    /// Fills the next batch; false if there is nothing to ask.
    pub fn next<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        supply: &mut impl Supply,
    ) -> bool {
        self.batch.clear();
        while !self.batch.is_full()
            && let Some(from) = self.sources.peek(End::Head)
        {
            let s = m.frames.state(from);
            let order = s.order();
            let mut to = supply.targets().pop(&m.frames, order);
            if to.is_none() {
                supply.fill(m, cpu, (order, self.wanted));
                to = supply.targets().pop(&m.frames, order);
            }
            let Some(to) = to else {
                self.lacks_target = true;
                break;
            };
            self.sources.pop_head(m.frames.table);
            m.frames.set_state(to, destination(order));
            let (owner, key) = m.frames.owner(from);
            self.batch.push(MoveAsk {
                from: m.map.pfn(from),
                to: m.map.pfn(to),
                order,
                owner,
                key,
            });
        }
        !self.batch.asks().is_empty()
    }

    /// Ends the moves of a batch, by the verdicts of the owners.
    pub fn settle<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        verdicts: &MoveVerdicts,
        targets: &mut Targets,
    ) {
        for (i, ask) in self.batch.asks().iter().enumerate() {
            let (Some(from), Some(to)) = (m.map.ix(ask.from), m.map.ix(ask.to)) else {
                continue;
            };
            if verdicts.is_moved(i) {
                self.moved += ask.order.frames();
                m.complete_move(cpu, from, to);
            } else {
                self.failed += ask.order.frames();
                m.put_back(cpu, from);
                targets.push(&m.frames, to, ask.order, End::Head);
            }
        }
        self.batch.clear();
    }

    /// Ends a batch early. `answer` is what became of it: without an answer, its pages stay where they are.
    pub fn abort<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
        targets: &mut Targets,
    ) {
        let verdicts = match answer {
            Answer::Migrated(verdicts) => verdicts,
            _ => self.batch.ask(|_| MoveVerdict::Busy),
        };
        self.settle(m, cpu, &verdicts, targets);
        self.end(m, cpu);
    }

    /// Puts back what is left, and says what became of all.
    pub fn end<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) -> Moved {
        self.failed += put_all_back(m, cpu, &mut self.sources);
        m.compact_counters.pgmigrate_success += u64::from(self.moved);
        m.compact_counters.pgmigrate_fail += u64::from(self.failed);
        if H::TRACING {
            let event = Event::CompactionMigratepages {
                nr_migrated: self.moved,
                nr_failed: self.failed,
            };
            m.host.trace(&event);
        }
        Moved {
            failed: self.failed,
            lacks_target: self.lacks_target,
        }
    }
}

impl<H: Host> Manager<'_, H> {
    /// Counts and traces a scan for pages to move, from `start` up to `end`: frames looked at, and pages isolated.
    pub(crate) fn note_isolated(
        &mut self,
        (start, end): (FrameIx, FrameIx),
        nr_scanned: u32,
        nr_taken: u32,
    ) {
        self.compact_counters.compact_migrate_scanned += u64::from(nr_scanned);
        self.compact_counters.compact_isolated += u64::from(nr_taken);
        if H::TRACING {
            let first = self.map.pfn(start);
            let event = Event::CompactionIsolateMigratepages {
                start: first,
                end: Pfn(first.0 + u64::from(end.0 - start.0)),
                nr_scanned,
                nr_taken,
            };
            self.host.trace(&event);
        }
    }
}

/// Puts isolated pages back; returns how many.
pub(super) fn put_all_back<H: Host>(m: &mut Manager<'_, H>, cpu: CpuId, sources: &mut List) -> u32 {
    let mut pages = 0;
    while let Some(ix) = sources.pop_head(m.frames.table) {
        pages += m.frames.state(ix).order().frames();
        m.put_back(cpu, ix);
    }
    pages
}
