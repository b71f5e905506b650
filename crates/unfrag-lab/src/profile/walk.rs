//! The walk over a recording's page events: who took each page, what for, and how its use ended.
//!
//! Invariant: each page in use belongs to one block; a block is dropped with its last page. Only blocks that a process
//! of the command took are followed, and none that an interrupt took.

use super::class::Class;
use super::files::Inodes;
use super::pages::{PageEnd, Tally};
use super::process::Processes;
use super::process_pages::ProcessPages;
use super::purposes::Known;
use crate::error::{Error, Result};
use crate::geometry::recorded::on_host;
use std::collections::{BTreeMap, HashMap};
use unfrag_eras::Geometry;
use unfrag_linux::event::page::{Cache, Place, Reclaim};
use unfrag_linux::event::{At, Block, Kind, Page, Roles, Tracker};
use unfrag_linux::kpageflags::{BUDDY, PageFlags};
use unfrag_linux::recording::{IN_INTERRUPT, Recording};

/// Pages of one allocation.
#[derive(Clone, Copy)]
struct Taken {
    time: u64,
    process: usize,
    class: Class,
    /// Pages in use.
    left: u32,
}

/// The sums that a walk makes.
pub struct WalkSums {
    /// Time of the last event, in nanoseconds of the trace clock.
    pub until: u64,
    /// The program of each process.
    pub program_of: Vec<usize>,
    /// Pages of all processes.
    pub all: Tally,
    /// Pages of each program.
    pub tallies: Vec<Tally>,
    /// Pages of each process.
    pub of_process: Vec<ProcessPages>,
    /// Files.
    pub inodes: Inodes,
}

/// A walk and its sums.
pub struct Walk<'a> {
    rec: &'a Recording,
    geometry: Geometry,
    processes: &'a Processes,
    /// The program of each process.
    program_of: Vec<usize>,
    all: Tally,
    tallies: Vec<Tally>,
    of_process: Vec<ProcessPages>,
    inodes: Inodes,
    blocks: Vec<Taken>,
    unused_blocks: Vec<u32>,
    /// Block of each page in use.
    pages: HashMap<u64, u32>,
    known: Known,
    /// Allocations so far.
    allocations: usize,
    /// Whether each task reclaims now.
    reclaims: Vec<bool>,
    /// Pages by class that each process freed since its last allocation, `Other` aside.
    freed_lately: Vec<BTreeMap<Class, u64>>,
    /// Such pages of processes that then exited, by program and class.
    freed_before_exit: BTreeMap<(usize, Class), u64>,
    /// Whether each process's exit was handled.
    exited: Vec<bool>,
    /// Pages freed by processes after the event of their exit.
    freed_after_exit: u64,
}

impl Tracker for Walk<'_> {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Alloc
                | Kind::Free
                | Kind::CacheAdd
                | Kind::CacheDelete
                | Kind::ReclaimBegin
                | Kind::ReclaimEnd
        )
    }

    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        let interrupted = at.flags & IN_INTERRUPT != 0;
        let owner = || {
            self.processes
                .owner(at.task, at.time)
                .filter(|_| !interrupted)
        };
        match page {
            Some(Page::Alloc(request)) => {
                let class = self.known.classes.get(self.allocations).copied();
                self.allocations += 1;
                if let Some(block) = request.block() {
                    let owner = owner();
                    self.alloc(
                        on_host(block, self.geometry)?,
                        at.time,
                        owner,
                        class.unwrap_or(Class::Other),
                    );
                }
            }
            Some(Page::Free(block)) => {
                let reclaims = self.reclaims.get(at.task as usize).is_some_and(|r| *r);
                let owner = owner();
                self.free(
                    on_host(block, self.geometry)?,
                    at.time,
                    owner,
                    reclaims && !interrupted,
                );
            }
            Some(Page::Cache(Cache::Add { block, place })) => {
                if let (Some(process), Some(place)) = (owner(), place) {
                    self.cache_add(block, process, place);
                }
            }
            Some(Page::Cache(Cache::Delete { block })) => {
                if let Some(process) = owner() {
                    self.inodes.remove(block.pages(), self.program_of[process]);
                }
            }
            Some(Page::Reclaim(event)) => {
                let begins = match event {
                    Reclaim::Begin { .. } => true,
                    Reclaim::End { .. } => false,
                    _ => return Ok(()),
                };
                if let Some(reclaims) = self.reclaims.get_mut(at.task as usize) {
                    *reclaims = begins;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Walk<'a> {
    /// A walk over a recording with these processes and their programs.
    pub fn new(
        rec: &'a Recording,
        geometry: Geometry,
        processes: &'a Processes,
        programs: &'a [String],
        known: Known,
    ) -> Self {
        let roles = Roles::of(rec);
        let index: HashMap<&str, usize> = programs
            .iter()
            .enumerate()
            .map(|(i, n)| (n.as_str(), i))
            .collect();
        let n = processes.list.len();
        Walk {
            rec,
            geometry,
            processes,
            program_of: processes
                .list
                .iter()
                .map(|p| index[p.program.as_str()])
                .collect(),
            all: Tally::default(),
            tallies: vec![Tally::default(); programs.len()],
            of_process: vec![ProcessPages::default(); n],
            inodes: Inodes::default(),
            blocks: vec![],
            unused_blocks: vec![],
            pages: HashMap::new(),
            known,
            allocations: 0,
            reclaims: roles.all().iter().map(|r| r.works_for_all()).collect(),
            freed_lately: vec![BTreeMap::new(); n],
            freed_before_exit: BTreeMap::new(),
            exited: vec![false; n],
            freed_after_exit: 0,
        }
    }

    /// Ends the walk.
    pub(crate) fn end(&mut self) {
        self.end_recording();
    }

    fn alloc(&mut self, block: Block, time: u64, owner: Option<usize>, class: Class) {
        let (pages, order) = (block.frames(), block.order);
        for page in pages.clone() {
            if let Some(block) = self.pages.remove(&page) {
                self.end_page(block, PageEnd::Unseen, time);
            }
        }
        let Some(process) = owner else { return };
        let block = Taken {
            time,
            process,
            class,
            left: 1 << order,
        };
        let index = match self.unused_blocks.pop() {
            Some(index) => {
                self.blocks[index as usize] = block;
                index
            }
            None => {
                self.blocks.push(block);
                (self.blocks.len() - 1) as u32
            }
        };
        self.pages.extend(pages.map(|p| (p, index)));
        self.all.take(class, order);
        self.tallies[self.program_of[process]].take(class, order);
        self.of_process[process].take(class, 1 << order, time);
        if class != Class::Other {
            self.freed_lately[process].clear();
        }
    }

    fn free(&mut self, block: Block, time: u64, owner: Option<usize>, reclaims: bool) {
        for page in block.frames() {
            let Some(block) = self.pages.remove(&page) else {
                continue;
            };
            let b = self.blocks[block as usize];
            let ended = self.processes.list[b.process]
                .ended
                .is_some_and(|e| time >= e);
            let how = match owner {
                _ if reclaims => PageEnd::Reclaimed,
                Some(p) if p == b.process && ended => PageEnd::AtExit,
                Some(p) if p == b.process => PageEnd::Running,
                _ => PageEnd::ByOthers,
            };
            match how {
                PageEnd::Running => *self.freed_lately[b.process].entry(b.class).or_default() += 1,
                PageEnd::AtExit => {
                    self.freed_after_exit += 1;
                    self.exit(b.process);
                }
                _ => {}
            }
            self.end_page(block, how, time);
        }
    }

    /// A process exits: what it freed just before may have been part of the exit.
    fn exit(&mut self, process: usize) {
        if !std::mem::replace(&mut self.exited[process], true) {
            for (class, pages) in std::mem::take(&mut self.freed_lately[process]) {
                *self
                    .freed_before_exit
                    .entry((self.program_of[process], class))
                    .or_default() += pages;
            }
        }
    }

    /// A page of a block is no more in use.
    fn end_page(&mut self, block: u32, how: PageEnd, time: u64) {
        let b = &mut self.blocks[block as usize];
        b.left -= 1;
        if b.left == 0 {
            self.unused_blocks.push(block);
        }
        let (process, class, life) = (b.process, b.class, time.saturating_sub(b.time));
        self.all.give_back(class, how, life);
        self.tallies[self.program_of[process]].give_back(class, how, life);
        if how != PageEnd::Held {
            self.of_process[process].give_back(class, 1, time);
        }
    }

    /// A page enters page cache.
    fn cache_add(&mut self, block: Block, process: usize, place: Place) {
        let Place {
            device,
            inode,
            index,
        } = place;
        if self.known.device_files.contains(&device) {
            return;
        }
        let taken = self.pages.get(&block.pfn.0);
        let taken = taken.map(|&b| self.blocks[b as usize]);
        let written = taken.is_some_and(|b| b.class == Class::FileWritten);
        let end = index.saturating_add(block.pages());
        self.inodes
            .enter(device, inode, end, written, self.program_of[process]);
    }

    /// The recording ends: what is in use is held, unless the last snapshot shows it free.
    fn end_recording(&mut self) {
        let last = self.rec.snapshots.last();
        let flags = last.and_then(|s| PageFlags::of(s).ok()?);
        let is_free = |page: u64| flags.as_ref().is_some_and(|f| f.frame(page) & BUDDY != 0);
        let until = self.until();
        let mut left: Vec<(u64, u32)> = self.pages.drain().collect();
        left.sort_unstable();
        for (page, block) in left {
            let how = if is_free(page) {
                PageEnd::Unseen
            } else {
                PageEnd::Held
            };
            self.end_page(block, how, until);
        }
        for process in 0..self.processes.list.len() {
            if self.processes.list[process].ended.is_some() {
                self.exit(process);
            }
        }
        // A kernel emits sched_process_exit either before a process frees its memory (6.18) or after that. Where none
        // freed memory after the event, it is the latter.
        if self.freed_after_exit == 0 {
            for ((program, class), pages) in std::mem::take(&mut self.freed_before_exit) {
                self.all.recount_as_exit(class, pages);
                self.tallies[program].recount_as_exit(class, pages);
            }
        }
    }

    fn until(&self) -> u64 {
        self.rec.events.time.last().copied().unwrap_or(0)
    }

    /// Its sums.
    pub fn finish(self) -> WalkSums {
        WalkSums {
            until: self.until(),
            program_of: self.program_of,
            all: self.all,
            tallies: self.tallies,
            of_process: self.of_process,
            inodes: self.inodes,
        }
    }
}
