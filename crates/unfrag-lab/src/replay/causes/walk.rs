//! The state of a walk over a trace: what is known of each frame and each task. From it follows what an
//! allocation or a free means.
//!
//! Invariant: `out.ops` is in the order of the trace; what belongs between them waits in `inserts`.

use super::found::{Causes, FIRST_ALLOC};
use super::huge_page::is_huge_page;
use super::kernel_stack::is_page_directory;
use super::operations::{Action, NONE, Op};
use super::ops::Ops;
use super::tasks::{COLLAPSING, COMPACTING, KCOMPACTD, KSWAPD, KWORKER, RECLAIMING};
use super::tasks::{first_state, kswapd_of};
use crate::era::Era;
use crate::error::{Error, Result};
use crate::geometry::recorded::on_host;
use crate::input::{Cpus, Input};
use std::ops::RangeInclusive;
use std::sync::Arc;
use unfrag_eras::{Geometry, NodeId, Pfn};
use unfrag_linux::event::page::{Alloc, Block};
use unfrag_linux::event::{At, Kind, Role, Roles};
use unfrag_linux::recording::IN_INTERRUPT;

/// What is known of a frame at this event of the trace: nothing, not in use, in use.
pub(super) const UNKNOWN: u8 = 0;
pub(super) const IDLE: u8 = 1;
pub(super) const LIVE: u8 = 2;

/// Longest time by which the free of a frame may follow its next allocation in a trace of several CPUs.
pub const INVERSION_NS: u64 = 20_000_000;

/// What is known of a node's kswapd.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kswapd {
    /// Whether it runs: it woke, and has not ended.
    pub(super) runs: bool,
    /// Whether a request called for it while it ran.
    pub(super) wakeup_between: bool,
    /// Its last page event: number of the operation after it, and time.
    pub(super) last: Option<(usize, u64)>,
}

/// An allocated page directory of a new process, with which a kernel stack was taken.
pub(super) struct PageDirectory {
    /// Number of the operation.
    pub(super) op: usize,
    pub(super) cpu: u16,
    pub(super) time: u64,
    /// Whether its stack is known.
    pub(super) has_stack: bool,
}

/// The walk at one event of the trace.
pub(super) struct Walk {
    pub(super) era: Era,
    pub(super) out: Causes,
    pub(super) state: Vec<u8>,
    /// Whether the trace says when compaction migrates.
    pub(super) phases_known: bool,
    /// By frame: until when a free belongs to the allocation before the last.
    pub(super) late_frees: std::collections::HashMap<u32, u64>,
    pub(super) task_state: Vec<u8>,
    pub(super) task: u32,
    pub(super) interrupted: bool,
    pub(super) time: u64,
    /// Its index among `cpus`.
    pub(super) cpu: u16,
    cpus: Arc<Cpus>,
    /// Sizes of the host's pages and blocks.
    pub(super) geometry: Geometry,
    pub(super) from: u64,
    pub(super) until: u64,
    /// By task: whether its name is not known, so that what it does tells what it is.
    unnamed: Vec<bool>,
    /// Sources of migrations without a known target, oldest first.
    pub(super) unpaired_sources: std::collections::VecDeque<u32>,
    /// Migrations whose target was not known at once.
    pub(super) moves: u32,
    /// Order for which a task compacts.
    pub(super) compacts_for: std::collections::HashMap<u32, u8>,
    /// How many pages had been moved when kcompactd's run over a zone began.
    pub(super) moved_before_run: u64,
    /// Address and old frame of pages under migration.
    pub(super) leaving: Vec<(u64, u32)>,
    /// New frame to old frame, for sources whose free is still to come.
    pub(super) paired: std::collections::HashMap<u32, u32>,
    /// The kswapd of each node.
    pub(super) kswapd: std::collections::BTreeMap<NodeId, Kswapd>,
    /// By task: the node whose kswapd it is.
    pub(super) kswapd_of: Vec<Option<NodeId>>,
    /// Task, time and length of the present row of unexplained frees by a worker.
    pub(super) row: (u32, u64, u64),
    /// Operations to insert, and the number of the operation that each goes before.
    pub(super) inserts: Vec<(usize, Op)>,
    /// Whether only counts are known of the start.
    pub(super) by_counts: bool,
    /// For each frame the number of operations before its last event, and its CPU. Only if `by_counts`.
    pub(super) last: Vec<(u32, u16)>,
    /// Page directories of new processes, in order. Only if `by_counts`.
    pub(super) directories: Vec<PageDirectory>,
    /// Frames without a past that a worker freed in a row; then its task and the time of the last.
    pub(super) batch: Vec<u32>,
    pub(super) batch_task: (u32, u64),
}

impl Walk {
    pub(super) fn new(
        input: &Input<'_>,
        era: Era,
        frames: u32,
        times: RangeInclusive<u64>,
        free_at: Option<&dyn Fn(u32) -> bool>,
    ) -> Result<Self> {
        let roles = Roles::of(input.recording);
        let task_state = roles.all().iter().map(first_state).collect();
        let state = match free_at {
            Some(free) => (0..frames)
                .map(|p| if free(p) { IDLE } else { LIVE })
                .collect(),
            None => vec![UNKNOWN; frames as usize],
        };
        Ok(Walk {
            era,
            out: Causes {
                ops: Ops::new(&input.room),
                first: vec![0; frames as usize],
                ..Causes::default()
            },
            state,
            // The event that isolates the sources of a migration, and the one that ends it.
            phases_known: input.happened(Kind::IsolateMigrate, "nr_taken")
                && input.happened(Kind::Migrated, "nr_migrated"),
            late_frees: Default::default(),
            task_state,
            task: 0,
            interrupted: false,
            time: 0,
            cpu: 0,
            cpus: input.cpus()?,
            geometry: input.geometry()?,
            from: *times.start(),
            until: *times.end(),
            unnamed: roles.all().iter().map(|r| *r == Role::Unnamed).collect(),
            unpaired_sources: Default::default(),
            moves: 0,
            compacts_for: Default::default(),
            moved_before_run: 0,
            leaving: vec![],
            paired: Default::default(),
            kswapd: Default::default(),
            kswapd_of: roles.all().iter().map(kswapd_of).collect(),
            row: (NONE, 0, 0),
            inserts: vec![],
            by_counts: free_at.is_none(),
            last: vec![
                (0, u16::MAX);
                if free_at.is_none() {
                    frames as usize
                } else {
                    0
                }
            ],
            directories: vec![],
            batch: vec![],
            batch_task: (NONE, 0),
        })
    }

    #[inline]
    pub(super) fn at(&mut self, at: &At) {
        self.time = at.time;
        self.cpu = self.cpus.of_event(at.cpu);
        self.task = at.task;
        self.interrupted = at.flags & IN_INTERRUPT != 0;
    }

    #[inline]
    pub(super) fn push(&mut self, action: Action) {
        if self.time < self.from {
            return;
        }
        self.out.ops.push(&Op {
            time: self.time,
            task: self.task,
            cpu: self.cpu,
            action,
        });
    }

    #[inline]
    pub(super) fn frame(&self, block: Block) -> Result<(u32, u8)> {
        let Block {
            pfn: Pfn(pfn),
            order,
        } = on_host(block, self.geometry)?;
        let bad = || {
            Error::contradiction(format!(
                "an event names frame {pfn:#x} of order {order}, but the host's zones end at frame {:#x}",
                self.state.len()
            ))
            .help("the snapshots and the trace must come from the same host")
        };
        if block.frames().end > self.state.len() as u64 {
            return Err(bad());
        }
        Ok((pfn as u32, order))
    }

    #[inline]
    pub(super) fn alloc(&mut self, request: &Alloc) -> Result<()> {
        self.out.events += 1;
        let gfp = self.era.gfp(request.gfp.unwrap_or_default().0);
        let Some(block) = request.block() else {
            self.out.classes.failed += 1;
            let (order, gfp) = (request.order, gfp.into());
            self.push(Action::AllocFailed { order, gfp });
            return Ok(());
        };
        let (pfn, order) = self.frame(block)?;
        self.out.classes.allocations += 1;
        self.out.classes.allocated_pages += 1 << order;
        if is_huge_page(order, gfp, self.geometry.huge_order) {
            match self.collapses() {
                true => self.out.classes.collapses += 1,
                false => self.out.classes.huge_faults += 1,
            }
        }
        for p in pfn..pfn + (1 << order) {
            match std::mem::replace(&mut self.state[p as usize], LIVE) {
                UNKNOWN => self.out.first[p as usize] = FIRST_ALLOC,
                LIVE => self.alloc_of_live(p),
                _ => {}
            }
        }
        if self.by_counts {
            let n = self.out.ops.len();
            self.last[pfn as usize..(pfn + (1 << order)) as usize].fill((n as u32, self.cpu));
            if is_page_directory(order, gfp) {
                self.directories.push(PageDirectory {
                    op: n,
                    cpu: self.cpu,
                    time: self.time,
                    has_stack: false,
                });
            }
        }
        self.push(Action::alloc(pfn, order, gfp));
        Ok(())
    }

    /// Whether the task collapses small pages to huge ones.
    fn collapses(&self) -> bool {
        self.task_state[self.task as usize] & COLLAPSING != 0 && !self.interrupted
    }

    /// The task looks for small pages to make a huge one of. khugepaged is known by its name, where it has one; programs
    /// may ask for a collapse, too, and their faults stay faults.
    pub(super) fn looks_for_collapses(&mut self) {
        if self.unnamed[self.task as usize] {
            self.task_state[self.task as usize] |= COLLAPSING;
        }
    }

    /// Rule 3.
    #[cold]
    pub(super) fn alloc_of_live(&mut self, pfn: u32) {
        self.late_frees.insert(pfn, self.time + INVERSION_NS);
        self.out.classes.inverted += 1;
        self.push(Action::free(pfn, 0));
    }

    #[inline]
    pub(super) fn free(&mut self, block: Block) -> Result<()> {
        let (pfn, order) = self.frame(block)?;
        self.out.events += 1;
        self.out.classes.freed_pages += 1 << order;
        if !self.late_frees.is_empty() && self.is_late(pfn) {
            return Ok(());
        }
        let mut t = self.task_state[self.task as usize];
        if t & KSWAPD != 0 {
            self.kswapd_frees();
        }
        if self.interrupted {
            t = 0;
        }
        if t & (COMPACTING | KCOMPACTD) != 0 && self.free_by_compaction(t, pfn, order) {
            return Ok(());
        }
        if self.by_counts && t & KWORKER != 0 && order == 0 && self.state[pfn as usize] != LIVE {
            return self.free_by_worker(pfn);
        }
        if self.by_counts {
            let n = self.out.ops.len();
            self.last[pfn as usize..(pfn + (1 << order)) as usize].fill((n as u32, self.cpu));
        }
        let mut all = true;
        for p in pfn..pfn + (1 << order) {
            match std::mem::replace(&mut self.state[p as usize], IDLE) {
                LIVE => {}
                UNKNOWN => self.free_of_unknown(p),
                _ => all &= self.free_of_idle(p),
            }
        }
        if !all {
            self.push(Action::free_unseen(pfn, order));
            return Ok(());
        }
        self.out.classes.frees += 1;
        if t & (KSWAPD | RECLAIMING) != 0 {
            self.out.classes.reclaimed += 1 << order;
            self.push(Action::free_reclaimed(pfn, order));
        } else {
            self.push(Action::free(pfn, order));
        }
        Ok(())
    }

    #[cold]
    pub(super) fn is_late(&mut self, pfn: u32) -> bool {
        let now = self.time;
        match self.late_frees.remove(&pfn) {
            Some(until) if now <= until => true,
            Some(_) => {
                self.out.classes.inverted -= 1;
                self.out.classes.unexplained_allocs += 1;
                false
            }
            None => false,
        }
    }

    pub(super) fn finish(&mut self) -> Result<()> {
        let collapses = self.task_state.iter().map(|t| t & COLLAPSING != 0);
        self.out.collapsing = collapses.collect();
        self.all_kswapd_end()?;
        self.end_batch();
        let mut inserts = std::mem::take(&mut self.inserts);
        inserts.sort_by_key(|(i, op)| (*i, op.time));
        self.out.ops.insert(inserts)
    }
}
