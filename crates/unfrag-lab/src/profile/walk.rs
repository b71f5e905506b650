//! The walk over a recording's page events: who took each page, what for, and how it ended.
//!
//! Invariant: each page in use belongs to one block; a block is forgotten with its last page. Only blocks that a process
//! of the command took are followed, and none that an interrupt took.

use super::class::Class;
use super::files::Inodes;
use super::page_events::{Columns, Kind, PageEvent, columns, device_files, visit};
use super::pages::{End, OfProcess, Tally};
use super::process::{Processes, makes_room};
use crate::era::Era;
use std::collections::{BTreeMap, HashMap, HashSet};
use unfrag::Gfp;
use unfrag_linux::Result;
use unfrag_linux::kpageflags::{BUDDY, PageFlags};
use unfrag_linux::recording::Recording;

/// Hard and soft interrupt in `common_flags`.
const INTERRUPT: u8 = 0x18;

/// Pages that were taken together.
#[derive(Clone, Copy)]
struct Block {
    time: u64,
    process: usize,
    class: Class,
    /// Pages in use.
    left: u32,
}

/// What a walk sums.
pub struct Sums {
    /// Time of the last event, in nanoseconds of the trace clock.
    pub until: u64,
    /// The program of each process.
    pub program_of: Vec<usize>,
    /// Pages of all processes.
    pub all: Tally,
    /// Pages of each program.
    pub tallies: Vec<Tally>,
    /// Pages of each process.
    pub of_process: Vec<OfProcess>,
    /// Files.
    pub inodes: Inodes,
}

/// The walk, and what it sums.
pub struct Walk<'a> {
    rec: &'a Recording,
    era: Era,
    processes: &'a Processes,
    /// The program of each process.
    program_of: Vec<usize>,
    all: Tally,
    tallies: Vec<Tally>,
    of_process: Vec<OfProcess>,
    inodes: Inodes,
    blocks: Vec<Block>,
    unused_blocks: Vec<u32>,
    /// Block of each page in use.
    pages: HashMap<u64, u32>,
    /// Devices all of whose files are block devices.
    device_files: HashSet<u64>,
    /// Tasks that reclaim.
    reclaims: Vec<bool>,
    /// Pages by class that a process freed since it last took one.
    tails: Vec<BTreeMap<Class, u64>>,
    /// Such pages of processes whose end was then announced.
    late: BTreeMap<(usize, Class), u64>,
    announced: Vec<bool>,
    /// Pages freed by processes after the event of their end.
    after_end: u64,
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
            of_process: vec![OfProcess::default(); n],
            inodes: Inodes::default(),
            blocks: vec![],
            unused_blocks: vec![],
            pages: HashMap::new(),
            device_files: device_files(rec),
            reclaims: rec.tasks.iter().map(|t| makes_room(&t.comm)).collect(),
            tails: vec![BTreeMap::new(); n],
            late: BTreeMap::new(),
            announced: vec![false; n],
            after_end: 0,
        }
    }

    /// Walks.
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
                (Kind::Alloc, _) => {
                    let class = classes.next().unwrap_or(Class::Other);
                    self.alloc(&e, owner, class);
                }
                (Kind::Free, _) => {
                    let reclaims = self.reclaims.get(e.task as usize).is_some_and(|r| *r);
                    self.free(&e, owner, reclaims && !interrupted);
                }
                (Kind::Enter, Some(p)) => self.enter(&e, p),
                (Kind::Leave, Some(p)) => self.inodes.remove(1 << e.order, self.program_of[p]),
                (Kind::Enter | Kind::Leave, None) => {}
                (Kind::ReclaimBegin | Kind::ReclaimEnd, _) => {
                    if let Some(r) = self.reclaims.get_mut(e.task as usize) {
                        *r = e.kind == Kind::ReclaimBegin;
                    }
                }
            }
        })?;
        self.end();
        Ok(())
    }

    /// The class of each allocation, in their order: by its request, or by the file that its first page then is of.
    fn classes(&self, columns: &[Option<Columns<'_>>]) -> Result<Vec<Class>> {
        let mut classes: Vec<Class> = vec![];
        let mut live: HashMap<u64, (usize, Gfp)> = HashMap::new();
        visit(self.rec, columns, |e| match e.kind {
            Kind::Alloc => {
                let gfp = self.era.gfp(e.rest[0]);
                live.insert(e.pfn, (classes.len(), gfp));
                classes.push(Class::of_request(gfp, e.order, self.era));
            }
            Kind::Free => {
                live.remove(&e.pfn);
            }
            Kind::Enter => {
                if let Some(&(n, gfp)) = live.get(&e.pfn) {
                    let of_device = self.device_files.contains(&e.rest[1]);
                    classes[n] = Class::in_page_cache(gfp, of_device);
                }
            }
            _ => {}
        })?;
        Ok(classes)
    }

    fn alloc(&mut self, e: &PageEvent, owner: Option<usize>, class: Class) {
        // A failed allocation has frame number -1 (text readers: 0). spec: linux-6.1 10
        if e.pfn == 0 || e.pfn == u64::MAX {
            return;
        }
        let (time, order) = (e.time, e.order);
        let pages = e.pfn..e.pfn.saturating_add(1 << order);
        for page in pages.clone() {
            if let Some(block) = self.pages.remove(&page) {
                self.ends(block, End::Unseen, time);
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
            self.tails[process].clear();
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
                _ if reclaims => End::Reclaimed,
                Some(p) if p == b.process && ended => End::AtExit,
                Some(p) if p == b.process => End::Running,
                _ => End::ByOthers,
            };
            match how {
                End::Running => *self.tails[b.process].entry(b.class).or_default() += 1,
                End::AtExit => {
                    self.after_end += 1;
                    self.announce(b.process);
                }
                _ => {}
            }
            self.ends(block, how, time);
        }
    }

    /// The end of a process: what it freed just before may have been its exit.
    fn announce(&mut self, process: usize) {
        if !std::mem::replace(&mut self.announced[process], true) {
            for (class, pages) in std::mem::take(&mut self.tails[process]) {
                *self
                    .late
                    .entry((self.program_of[process], class))
                    .or_default() += pages;
            }
        }
    }

    /// A page of a block ends so.
    fn ends(&mut self, block: u32, how: End, time: u64) {
        let b = &mut self.blocks[block as usize];
        b.left -= 1;
        if b.left == 0 {
            self.unused_blocks.push(block);
        }
        let (process, class, life) = (b.process, b.class, time.saturating_sub(b.time));
        self.all.give_back(class, how, life);
        self.tallies[self.program_of[process]].give_back(class, how, life);
        if how != End::Held {
            self.of_process[process].give_back(class, 1, time);
        }
    }

    /// A page enters page cache.
    fn enter(&mut self, e: &PageEvent, process: usize) {
        let [inode, device, index] = e.rest;
        if self.device_files.contains(&device) {
            return;
        }
        let block = self.pages.get(&e.pfn).map(|&b| self.blocks[b as usize]);
        let written = block.is_some_and(|b| b.class == Class::FileWritten);
        let end = index.saturating_add(1 << e.order);
        self.inodes
            .enter(device, inode, end, written, self.program_of[process]);
    }

    /// The end of the recording.
    fn end(&mut self) {
        let flags = self.rec.snapshots.last().and_then(|s| s.file("kpageflags"));
        let flags = flags.and_then(|f| PageFlags::parse(f).ok());
        let is_free = |page: u64| flags.as_ref().is_some_and(|f| f.of(page) & BUDDY != 0);
        let until = self.until();
        let mut left: Vec<(u64, u32)> = self.pages.drain().collect();
        left.sort_unstable();
        for (page, block) in left {
            let how = if is_free(page) {
                End::Unseen
            } else {
                End::Held
            };
            self.ends(block, how, until);
        }
        for process in 0..self.processes.list.len() {
            if self.processes.list[process].ended.is_some() {
                self.announce(process);
            }
        }
        // Kernels announce the end of a process either before it gives its memory back (6.18) or after that.
        if self.after_end == 0 {
            for ((program, class), pages) in std::mem::take(&mut self.late) {
                self.all.were_at_exit(class, pages);
                self.tallies[program].were_at_exit(class, pages);
            }
        }
    }

    fn until(&self) -> u64 {
        self.rec.events.time.last().copied().unwrap_or(0)
    }

    /// What it summed.
    pub fn finish(self) -> Sums {
        Sums {
            until: self.until(),
            program_of: self.program_of,
            all: self.all,
            tallies: self.tallies,
            of_process: self.of_process,
            inodes: self.inodes,
        }
    }
}
