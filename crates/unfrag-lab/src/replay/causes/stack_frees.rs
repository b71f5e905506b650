//! Kernel stacks, found by their frees: rule 4.

use super::found::{FIRST_ALLOC, FIRST_FREE};
use super::kernel_stack::STACK_PAGES;
use super::operations::{Action, Op};
use super::tasks::KWORKER;
use super::walk::{IDLE, PageDirectory, UNKNOWN, Walk};
use crate::error::Result;

/// Longest pause between two frees of a stack's pages, in nanoseconds.
const STACK_PAUSE_NS: u64 = 1_000_000;

impl Walk {
    /// Rule 4, where only counts are known of the start: a worker frees a frame without a past.
    pub(super) fn free_by_worker(&mut self, p: u32) -> Result<()> {
        let (task, time) = self.batch_task;
        if task != self.task || self.time > time + STACK_PAUSE_NS {
            self.end_batch();
        }
        self.batch_task = (self.task, self.time);
        self.batch.push(p);
        self.push(Action::free(p, 0));
        if self.batch.len() < STACK_PAGES {
            return Ok(());
        }
        let pages = [self.batch[0], self.batch[1], self.batch[2], self.batch[3]];
        self.batch.clear();
        let lowest = pages.into_iter().min().unwrap_or(0);
        let below = lowest.checked_sub(1).map(|b| self.last[b as usize]);
        let used = pages.into_iter().map(|p| self.last[p as usize]).max();
        let (after, cpu) = below.into_iter().chain(used).max().unwrap_or((0, u16::MAX));
        let after = after as usize;
        let from = self.directories.partition_point(|d| d.op < after);
        let free = |d: &&mut PageDirectory| !d.has_stack && (cpu == u16::MAX || d.cpu == cpu);
        let with = self.directories[from..].iter_mut().find(free);
        let (at, cpu, time) = match with {
            Some(d) => {
                d.has_stack = true;
                (d.op, d.cpu, d.time)
            }
            None => {
                let cpu = if cpu == u16::MAX { self.cpu } else { cpu };
                let time = self.out.ops.time(after)?;
                (after, cpu, time.unwrap_or(self.time))
            }
        };
        for p in pages {
            if std::mem::replace(&mut self.state[p as usize], IDLE) == UNKNOWN {
                self.out.first[p as usize] = FIRST_ALLOC;
            }
            self.last[p as usize] = (self.out.ops.len() as u32, self.cpu);
        }
        let action = Action::stack(self.out.stacks.len() as u32);
        self.out.stacks.push(pages);
        self.out.classes.stack_pages += 4;
        self.inserts.push((
            at,
            Op {
                time,
                task: self.task,
                cpu,
                action,
            },
        ));
        Ok(())
    }

    /// Ends the row of a worker's frees. Fewer than four frames are no stack.
    pub(super) fn end_batch(&mut self) {
        for p in std::mem::take(&mut self.batch) {
            match std::mem::replace(&mut self.state[p as usize], IDLE) {
                UNKNOWN => self.free_of_unknown(p),
                _ => {
                    self.free_of_idle(p);
                }
            }
        }
    }

    /// A frame without a past is freed: it was in use at the start, or filled by a migration.
    #[inline]
    pub(super) fn free_of_unknown(&mut self, p: u32) {
        if self.unpaired_sources.is_empty() {
            self.out.first[p as usize] = FIRST_FREE;
        } else {
            self.out.first[p as usize] = FIRST_ALLOC;
            self.match_unpaired_source(p);
        }
    }

    /// A frame that is not in use is freed. Returns whether a rule explains it.
    pub(super) fn free_of_idle(&mut self, p: u32) -> bool {
        let worker = self.task_state[self.task as usize] & KWORKER != 0 && !self.interrupted;
        if !worker && !self.unpaired_sources.is_empty() {
            self.match_unpaired_source(p);
            return true;
        }
        if worker {
            self.extend_row();
        }
        self.out.classes.unexplained_frees += 1;
        if worker && self.row.2 == STACK_PAGES as u64 {
            self.row.2 = 0;
            self.out.classes.unexplained_frees -= STACK_PAGES as u64;
            self.out.classes.stack_pages += STACK_PAGES as u64;
        }
        false
    }

    /// Rule 4: a worker frees a frame that is not in use.
    pub(super) fn extend_row(&mut self) {
        let (task, time, n) = self.row;
        let goes_on = task == self.task && self.time <= time + STACK_PAUSE_NS;
        self.row = (self.task, self.time, if goes_on { n + 1 } else { 1 });
    }
}
