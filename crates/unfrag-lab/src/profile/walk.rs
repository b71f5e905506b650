//! The walk over a recording's page events: who took each page, what for, and how its use ended.
//!
//! Invariant: each page in use belongs to one block; a block is dropped with its last page. Only blocks that a process
//! of the command took are followed, and none that an interrupt took.

use super::class::Class;
use super::files::Inodes;
use super::page_events::{Columns, PageEvent, PageEventKind, columns, device_files, visit};
use super::pages::{PageEnd, Tally};
use super::process::{Processes, reclaims_for_others};
use super::process_pages::ProcessPages;
use crate::era::Era;
use crate::error::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use unfrag::Gfp;
use unfrag_linux::kpageflags::{BUDDY, PageFlags};
use unfrag_linux::recording::Recording;

/// Hard and soft interrupt in `common_flags`.
const INTERRUPT: u8 = 0x18;

/// Pages of one allocation.
#[derive(Clone, Copy)]
struct Block {
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
    era: Era,
    processes: &'a Processes,
    /// The program of each process.
    program_of: Vec<usize>,
    all: Tally,
    tallies: Vec<Tally>,
    of_process: Vec<ProcessPages>,
    inodes: Inodes,
    blocks: Vec<Block>,
    unused_blocks: Vec<u32>,
    /// Block of each page in use.
    pages: HashMap<u64, u32>,
    /// Devices whose files are block devices.
    device_files: HashSet<u64>,
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

impl<'a> Walk<'a> {
    /// A walk over a recording with these processes and their programs.
    pub fn new(
        rec: &'a Recording,
        era: Era,
        processes: &'a Processes,
        programs: &'a [String],
    ) -> Self {
        let index: HashMap<&str, usize> = programs
            .iter()
            .enumerate()
            .map(|(i, n)| (n.as_str(), i))
            .collect();
        let n = processes.list.len();
        Walk {
            rec,
            era,
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
            device_files: device_files(rec),
            reclaims: rec
                .tasks
                .iter()
                .map(|t| reclaims_for_others(&t.comm))
                .collect(),
            freed_lately: vec![BTreeMap::new(); n],
            freed_before_exit: BTreeMap::new(),
            exited: vec![false; n],
            freed_after_exit: 0,
        }
    }

    /// Visits all events.
    ///
    /// # Errors
    /// If an event lacks a field, or names an order that no kernel has.
    pub fn run(&mut self) -> Result<()> {
        let rec = self.rec;
        let columns = columns(rec)?;
        let classes = self.classes(&columns)?;
        let mut classes = classes.into_iter();
        visit(rec, &columns, |e| {
            let interrupted = rec.events.flags[e.index] & INTERRUPT != 0;
            let owner = self
                .processes
                .owner(e.task, e.time)
                .filter(|_| !interrupted);
            match (e.kind, owner) {
                (PageEventKind::Alloc { .. }, _) => {
                    let class = classes.next().unwrap_or(Class::Other);
                    self.alloc(&e, owner, class);
                }
                (PageEventKind::Free, _) => {
                    let reclaims = self.reclaims.get(e.task as usize).is_some_and(|r| *r);
                    self.free(&e, owner, reclaims && !interrupted);
                }
                (
                    PageEventKind::CacheAdd {
                        inode,
                        device,
                        index,
                    },
                    Some(p),
                ) => self.cache_add(&e, p, device, inode, index),
                (PageEventKind::CacheDelete, Some(p)) => {
                    self.inodes.remove(1 << e.order, self.program_of[p]);
                }
                (PageEventKind::CacheAdd { .. } | PageEventKind::CacheDelete, None) => {}
                (PageEventKind::ReclaimBegin | PageEventKind::ReclaimEnd, _) => {
                    if let Some(r) = self.reclaims.get_mut(e.task as usize) {
                        *r = e.kind == PageEventKind::ReclaimBegin;
                    }
                }
            }
        })?;
        self.end_recording();
        Ok(())
    }

    /// The class of each allocation, in order: by its request, or by the file whose page cache its first page enters.
    fn classes(&self, columns: &[Option<Columns<'_>>]) -> Result<Vec<Class>> {
        let mut classes: Vec<Class> = vec![];
        let mut live: HashMap<u64, (usize, Gfp)> = HashMap::new();
        visit(self.rec, columns, |e| match e.kind {
            PageEventKind::Alloc { gfp } => {
                let gfp = self.era.gfp(gfp);
                live.insert(e.pfn, (classes.len(), gfp));
                classes.push(Class::of_request(gfp, e.order, self.era));
            }
            PageEventKind::Free => {
                live.remove(&e.pfn);
            }
            PageEventKind::CacheAdd { device, .. } => {
                if let Some(&(n, gfp)) = live.get(&e.pfn) {
                    let of_device = self.device_files.contains(&device);
                    classes[n] = Class::in_page_cache(gfp, of_device);
                }
            }
            _ => {}
        })?;
        Ok(classes)
    }

    fn alloc(&mut self, e: &PageEvent, owner: Option<usize>, class: Class) {
        // A failed allocation has frame number -1 (text readers: 0). `spec: 10`
        if e.pfn == 0 || e.pfn == u64::MAX {
            return;
        }
        let (time, order) = (e.time, e.order);
        let pages = e.pfn..e.pfn.saturating_add(1 << order);
        for page in pages.clone() {
            if let Some(block) = self.pages.remove(&page) {
                self.end_page(block, PageEnd::Unseen, time);
            }
        }
        let Some(process) = owner else { return };
        let block = Block {
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

    fn free(&mut self, e: &PageEvent, owner: Option<usize>, reclaims: bool) {
        let time = e.time;
        for page in e.pfn..e.pfn.saturating_add(1 << e.order) {
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
    fn cache_add(&mut self, e: &PageEvent, process: usize, device: u64, inode: u64, index: u64) {
        if self.device_files.contains(&device) {
            return;
        }
        let block = self.pages.get(&e.pfn).map(|&b| self.blocks[b as usize]);
        let written = block.is_some_and(|b| b.class == Class::FileWritten);
        let end = index.saturating_add(1 << e.order);
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
