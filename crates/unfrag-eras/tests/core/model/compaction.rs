//! Compaction a second time, as simply as possible: one zone, single pages, free memory as a set of frames.
//! `spec: 5.1, 5.2, 5.3`
//!
//! A free block is the largest aligned run of free frames that holds a frame, so there are no lists. Frames count from
//! the start of the zone, which is aligned to the largest block. Without the fast searches, and without requests that
//! do not wait: those leave aligned blocks in an order that the specification leaves open.

use unfrag_eras::MigrateType::{self, Movable, Reclaimable, Unmovable};
use unfrag_eras::compact::{Mode, Outcome};

const BLOCK: usize = 512;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Free,
    /// A page that its owner moves, unless it is busy.
    Page {
        busy: bool,
    },
    /// A page that is locked, or being written.
    Pinned {
        writeback: bool,
    },
    Kernel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub order: Option<u8>,
    pub mt: MigrateType,
    pub mode: Mode,
    pub whole: bool,
}

pub struct Zone {
    /// 2.6.36; else 5.6 and later.
    pub old: bool,
    /// The pageblock behind one that was finished is left out by the next run.
    pub passes_over_next: bool,
    pub frames: Vec<Content>,
    pub types: Vec<MigrateType>,
    pub skip: Vec<bool>,
    pub min: usize,
    pub low: usize,
    pub extfrag_threshold: i64,
    /// Cached positions: migrate scanner of asynchronous and other runs, free scanner.
    pub migrate: [usize; 2],
    pub free: usize,
    pub moves: Vec<(usize, usize, bool)>,
    pub migrate_scanned: u64,
    pub free_scanned: u64,
    pub success: u64,
    pub fail: u64,
}

impl Zone {
    pub fn free_pages(&self) -> usize {
        self.frames.iter().filter(|f| **f == Content::Free).count()
    }

    /// The free block that begins at a frame: its order.
    pub fn block_at(&self, at: usize) -> Option<u8> {
        let is_free = |o: u8| {
            let end = at + (1 << o);
            at.is_multiple_of(1 << o)
                && end <= self.frames.len()
                && self.frames[at..end].iter().all(|f| *f == Content::Free)
        };
        let order = (0..=10).rev().find(|&o| is_free(o))?;
        // The upper half of a larger block begins none.
        let begins = (order + 1..=10).all(|o| {
            let head = at >> o << o;
            let end = head + (1 << o);
            end > self.frames.len() || self.frames[head..end].iter().any(|f| *f != Content::Free)
        });
        begins.then_some(order)
    }

    pub fn blocks(&self) -> Vec<(usize, u8)> {
        let all = (0..self.frames.len()).filter_map(|at| Some((at, self.block_at(at)?)));
        all.collect()
    }

    fn has(&self, mt: MigrateType, order: u8) -> bool {
        let mut blocks = self.blocks().into_iter();
        blocks.any(|(at, o)| o >= order && self.types[at / BLOCK] == mt)
    }

    /// `spec: 5.2`
    pub fn fragmentation_index(&self, order: u8) -> i64 {
        let blocks = self.blocks();
        if blocks.is_empty() {
            return 0;
        }
        if blocks.iter().any(|&(_, o)| o >= order) {
            return -1000;
        }
        let pages = self.free_pages() as i64;
        1000 - (1000 + pages * 1000 / (1 << order)) / blocks.len() as i64
    }

    /// Whether the mark holds for the order: the old check counts down by order, the new one wants one block.
    fn passes(&self, order: u8, mark: usize) -> bool {
        let (mut free, mut mark) = (self.free_pages() as i64 - (1 << order) + 1, mark as i64);
        if free <= mark {
            return false;
        }
        if !self.old {
            return order == 0 || self.blocks().iter().any(|&(_, o)| o >= order);
        }
        for o in 0..order {
            let n = self.blocks().iter().filter(|b| b.1 == o).count() as i64;
            free -= n << o;
            mark >>= 1;
            if free <= mark {
                return false;
            }
        }
        true
    }

    /// `spec: 5.2`
    pub fn suitable(&self, run: &Run) -> Outcome {
        let Some(order) = run.order else {
            return Outcome::Continue;
        };
        if self.passes(order, self.min) {
            return Outcome::Success;
        }
        let mark = if self.old || order > 3 {
            self.low
        } else {
            self.min
        };
        if !self.passes(0, mark + (2 << order)) {
            return Outcome::Skipped;
        }
        let index = self.fragmentation_index(order);
        if order > 3 && (0..=self.extfrag_threshold).contains(&index) {
            return Outcome::NotSuitableZone;
        }
        Outcome::Continue
    }

    fn last_block(&self) -> usize {
        (self.frames.len() - 1) / BLOCK * BLOCK
    }

    /// `spec: 5.1, 5.3`
    pub fn compact(&mut self, run: &Run) -> Outcome {
        match self.suitable(run) {
            Outcome::Continue => {}
            other => return other,
        }
        let cached = !self.old && !run.whole;
        let waits = usize::from(run.mode != Mode::Async);
        // What is remembered may lie behind the last frame.
        if cached && self.migrate[waits] >= self.frames.len() {
            self.migrate = [0; 2];
        }
        let mut migrate = if cached { self.migrate[waits] } else { 0 };
        let mut free = if cached { self.free } else { self.last_block() };
        let whole = !cached || migrate == 0;
        let mut joins = waits == 0 && self.migrate[0] == self.migrate[1];
        let mut targets: Vec<usize> = Vec::new();
        let outcome = loop {
            if free / BLOCK <= migrate / BLOCK {
                self.migrate = [0; 2];
                self.free = self.last_block();
                break if whole {
                    Outcome::Complete
                } else {
                    Outcome::PartialSkipped
                };
            }
            if self.is_there(run, migrate) {
                break Outcome::Success;
            }
            let held = self.scan_sources(run, &mut migrate, free);
            if held.is_empty() {
                if joins {
                    self.migrate[1] = self.migrate[0];
                }
                continue;
            }
            joins = false;
            let (failed, lacks) = self.move_all(run, held, &mut targets, (&mut free, migrate));
            if failed && lacks && free / BLOCK > migrate / BLOCK {
                break Outcome::Contended;
            }
        };
        for &at in &targets {
            self.frames[at] = Content::Free;
        }
        if let Some(highest) = targets.iter().max() {
            self.free = self.free.max(highest / BLOCK * BLOCK);
        }
        outcome
    }

    /// Whether there is a block for the request.
    fn is_there(&self, run: &Run, migrate: usize) -> bool {
        let Some(order) = run.order else {
            return false;
        };
        if self.old {
            return self.passes(0, self.low + (1 << order)) && self.has(run.mt, order);
        }
        if !migrate.is_multiple_of(BLOCK) {
            return false;
        }
        let others = match run.mt {
            Movable => [Reclaimable, Unmovable],
            Reclaimable => [Unmovable, Movable],
            _ => [Reclaimable, Movable],
        };
        let claims = |mt| (order.max(4)..=10).any(|_| self.has(mt, order.max(4)));
        let claims_small = |mt| run.mt != Movable && self.has(mt, order);
        self.has(run.mt, order) || others.into_iter().any(|mt| claims(mt) || claims_small(mt))
    }

    /// Up to 32 pages of the next pageblock that is not skipped, the last one first.
    fn scan_sources(&mut self, run: &Run, migrate: &mut usize, free: usize) -> Vec<usize> {
        loop {
            let (first, block) = (*migrate, *migrate / BLOCK);
            let end = (block + 1) * BLOCK;
            if end > free {
                return Vec::new();
            }
            let skips = !self.old && !run.whole;
            if skips && first % BLOCK == 0 && self.skip[block] {
                *migrate = end;
                continue;
            }
            let mut held = Vec::new();
            let mut at = first;
            while at < end && held.len() < 32 {
                self.migrate_scanned += 1;
                match self.frames[at] {
                    Content::Free => {
                        at += self.block_at(at).map_or(1, |o| 1 << o);
                        continue;
                    }
                    Content::Page { .. } => held.insert(0, at),
                    Content::Pinned { writeback } if writeback && run.mode == Mode::Sync => {
                        held.insert(0, at);
                    }
                    Content::Pinned { .. } | Content::Kernel => {}
                }
                at += 1;
            }
            *migrate = at.min(end);
            if *migrate == end && held.is_empty() && !self.old {
                self.skip[block] = true;
                let last = usize::from(run.mode != Mode::Async);
                let next = match self.passes_over_next {
                    true => end + BLOCK,
                    false => end,
                };
                for p in &mut self.migrate[..=last] {
                    *p = (*p).max(next);
                }
            }
            return held;
        }
    }

    /// Moves pages to the targets, the last target that was taken first.
    fn move_all(
        &mut self,
        run: &Run,
        mut held: Vec<usize>,
        targets: &mut Vec<usize>,
        (free, migrate): (&mut usize, usize),
    ) -> (bool, bool) {
        let (wanted, mut failed, mut lacks) = (held.len(), false, false);
        loop {
            let mut batch = Vec::new();
            while !held.is_empty() {
                if targets.is_empty() {
                    self.scan_targets(run, targets, wanted, (free, migrate));
                }
                let Some(to) = targets.pop() else {
                    lacks = true;
                    break;
                };
                batch.push((held.remove(0), to));
            }
            if batch.is_empty() {
                break;
            }
            for (from, to) in batch {
                let stays = self.frames[from] == Content::Page { busy: true };
                self.moves.push((from, to, !stays));
                if stays {
                    (failed, self.fail) = (true, self.fail + 1);
                    targets.push(to);
                } else {
                    self.success += 1;
                    self.frames[to] = self.frames[from];
                    self.frames[from] = Content::Free;
                }
            }
        }
        self.fail += held.len() as u64;
        (failed || !held.is_empty(), lacks)
    }

    /// Takes whole free blocks of movable pageblocks, downwards, until there are enough.
    fn scan_targets(
        &mut self,
        run: &Run,
        targets: &mut Vec<usize>,
        wanted: usize,
        (free, migrate): (&mut usize, usize),
    ) {
        let mut block = *free / BLOCK;
        while block > migrate / BLOCK {
            let (head, end) = (
                block * BLOCK,
                (block * BLOCK + BLOCK).min(self.frames.len()),
            );
            let skipped = !self.old && !run.whole && self.skip[block];
            let is_whole = self.block_at(head).is_some_and(|o| o >= 9);
            if !skipped && !is_whole && self.types[block] == Movable {
                let mut at = *free;
                while at < end && targets.len() < wanted {
                    let Some(order) = self.block_at(at) else {
                        self.free_scanned += 1;
                        at += 1;
                        continue;
                    };
                    if !self.passes(0, self.min + (1 << order)) {
                        self.free_scanned += 1;
                        *free = at;
                        return;
                    }
                    for f in at..at + (1 << order) {
                        // Taken, and nobody's.
                        self.frames[f] = Content::Kernel;
                        targets.push(f);
                    }
                    self.free_scanned += 1 << order;
                    at += 1 << order;
                }
                if at == end && !self.old {
                    self.skip[block] = true;
                    self.free = self.free.min(head);
                }
                if at < end {
                    *free = at;
                    return;
                }
                if targets.len() >= wanted {
                    *free = head.saturating_sub(BLOCK);
                    return;
                }
            }
            block -= 1;
            *free = block * BLOCK;
        }
    }
}
