//! A model of one run of `vm.compact_memory` over a zone, frame by frame.
//!
//! The kernel's two scanners (`spec: 5.1`): from the zone's start up, folios are taken out
//! of every block; from its end down, free blocks of Movable pageblocks receive them. Blocks that are
//! wholly free are no target; folios of a whole block are not moved.
//!
//! Since 6.10 a folio moves to a free block of its own order. Where the scanner finds none, the folio is split and
//! its pages move one by one. A dirty folio with private data of its file system cannot be split: the run over the
//! zone ends there. `sync` before it prevents that.
//!
//! Invariant: the number of frames stays; only folios that the kernel moves are moved.

use super::frames::BLOCK_FRAMES;
use super::roles::Role;
use super::zone_blocks::{Emptied, ZoneBlocks};
use serde::Serialize;

/// Pages that the kernel migrates at a time (`COMPACT_CLUSTER_MAX`).
const CLUSTER: u64 = 32;
/// Orders of isolated free blocks: 0 to 9.
const ORDERS: usize = 10;

/// What the kernel moves, and where to.
#[derive(Clone, Copy, Debug)]
pub struct CompactionRules<'a> {
    /// Whether unevictable pages are moved (`vm.compact_unevictable_allowed`).
    pub unevictable: bool,
    /// Whether a folio needs a target of its own order (6.10 and later); otherwise small pages do,
    /// and large folios stay where they are.
    pub by_order: bool,
    /// Whether `sync` came before, so that every large folio can be split.
    pub synced: bool,
    /// What is emptied before it.
    pub emptied: Emptied,
    /// For each block, whether it is of type Movable or CMA.
    pub targets: &'a [bool],
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompactionOutcome {
    /// Wholly free blocks afterwards.
    pub free_blocks: u64,
    /// Pages that were moved.
    pub moved_pages: u64,
    /// The folio at which the run ended early.
    pub stopped: Option<StuckFolio>,
}

/// A folio for which there was no free block, and which cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StuckFolio {
    /// Its first frame.
    pub pfn: u64,
    /// Its order.
    pub order: u8,
}

/// What a run left of each pageblock.
#[derive(Clone, Debug)]
pub(super) struct Compacted {
    /// Free frames of each.
    pub free: Vec<u32>,
    /// All that the kernel moves has left the blocks before this one.
    pub sources_end: usize,
    /// The free scanner came down to this one.
    pub targets_from: usize,
    /// The run's result.
    pub outcome: CompactionOutcome,
}

/// Runs both scanners over a zone.
pub fn compact(zone: &ZoneBlocks, rules: &CompactionRules) -> CompactionOutcome {
    compacted(zone, rules).outcome
}

/// Runs both scanners over a zone; what is left of each pageblock.
pub(super) fn compacted(zone: &ZoneBlocks, rules: &CompactionRules) -> Compacted {
    let n = zone.blocks.len();
    let mut run = Run {
        zone,
        rules,
        free: (0..n)
            .map(|b| u32::from(zone.free(b, rules.emptied)))
            .collect(),
        next_target: n,
        pieces: vec![],
        pool: Default::default(),
        pooled: 0,
        moved: 0,
        sources_end: 0,
    };
    let stopped = run.scan();
    let outcome = CompactionOutcome {
        free_blocks: run
            .free
            .iter()
            .filter(|&&f| f as usize == BLOCK_FRAMES)
            .count() as u64,
        moved_pages: run.moved,
        stopped,
    };
    Compacted {
        free: run.free,
        sources_end: run.sources_end,
        targets_from: run.next_target,
        outcome,
    }
}

impl CompactionRules<'_> {
    /// Whether a folio begins with a frame of this role that the kernel moves.
    fn moves(&self, role: Role) -> bool {
        match role {
            Role::Movable | Role::MovableWhole => true,
            Role::Clean => !self.emptied.caches,
            Role::Unevictable | Role::UnevictableWhole => self.unevictable,
            _ => false,
        }
    }

    /// Order of the folio that begins at frame `i`, if the kernel moves it.
    pub(super) fn moving(&self, zone: &ZoneBlocks, i: usize) -> Option<u8> {
        if !self.moves(zone.roles.of(i)) {
            return None;
        }
        let order = zone.folio_order(i) as u8;
        let moves = usize::from(order) < ORDERS - 1 && (order == 0 || self.by_order);
        moves.then_some(order)
    }
}

struct Run<'a> {
    zone: &'a ZoneBlocks,
    rules: &'a CompactionRules<'a>,
    /// Free frames of each block; isolated ones count until they are used.
    free: Vec<u32>,
    /// The free scanner: blocks from here on were visited, this one as far as there are `pieces`.
    next_target: usize,
    /// Orders of its free runs that are not isolated yet, the next one last.
    pieces: Vec<usize>,
    /// Isolated free blocks by order: the pageblock that holds them, and how many follow each other in it.
    pool: [Vec<(u32, u32)>; ORDERS],
    pooled: u64,
    moved: u64,
    /// The migrate scanner: blocks before this one were emptied of what moves.
    sources_end: usize,
}

impl Run<'_> {
    /// The migrate scanner; returns the folio at which the run ended early.
    fn scan(&mut self) -> Option<StuckFolio> {
        for block in 0..self.zone.blocks.len() {
            self.sources_end = block;
            if block >= self.next_target {
                return None;
            }
            if self.is_passed_over(block) {
                continue;
            }
            for i in block * BLOCK_FRAMES..(block + 1) * BLOCK_FRAMES {
                let Some(order) = self.rules.moving(self.zone, i) else {
                    continue;
                };
                match self.migrate(i, order, block) {
                    TargetSearch::Found => {}
                    TargetSearch::ScannersMet => return None,
                    TargetSearch::NoneFits => {
                        return Some(StuckFolio {
                            pfn: self.zone.first_pfn + i as u64,
                            order,
                        });
                    }
                }
            }
        }
        self.sources_end = self.zone.blocks.len();
        None
    }

    /// Moves the folio at frame `i`, as a whole or in pieces.
    fn migrate(&mut self, i: usize, order: u8, block: usize) -> TargetSearch {
        let taken = self.take_target(order, block);
        let is_whole = matches!(
            self.zone.roles.of(i),
            Role::MovableWhole | Role::UnevictableWhole
        );
        let splits = self.rules.synced || !is_whole;
        let taken = match taken {
            TargetSearch::NoneFits if splits && order > 0 => {
                for _ in 0..1 << order {
                    match self.take_target(0, block) {
                        TargetSearch::Found => self.free[block] += 1,
                        other => return other,
                    }
                }
                self.moved += 1 << order;
                return TargetSearch::Found;
            }
            taken => taken,
        };
        if matches!(taken, TargetSearch::Found) {
            self.free[block] += 1 << order;
            self.moved += 1 << order;
        }
        taken
    }

    /// Whether no folio of a pageblock moves, as all its frames are alike.
    fn is_passed_over(&self, block: usize) -> bool {
        let one = self.zone.roles.uniform(block);
        one.is_some_and(|role| !self.rules.moves(role))
    }

    /// Takes an isolated block of `order`, split from a larger one if need be; isolates more if there is none.
    fn take_target(&mut self, order: u8, migrating: usize) -> TargetSearch {
        if self.fitting(order).is_none() {
            self.isolate(1 << order, migrating);
        }
        let Some(found) = self.fitting(order) else {
            return if self.pieces.is_empty() && self.next_target <= migrating + 1 {
                TargetSearch::ScannersMet
            } else {
                TargetSearch::NoneFits
            };
        };
        let block = self.pop(found);
        for o in usize::from(order)..found {
            self.push(o, block);
        }
        self.pooled -= 1 << order;
        self.free[block as usize] -= 1 << order;
        TargetSearch::Found
    }

    fn push(&mut self, order: usize, block: u32) {
        match self.pool[order].last_mut() {
            Some((last, count)) if *last == block => *count += 1,
            _ => self.pool[order].push((block, 1)),
        }
    }

    /// The block isolated last of an order that has some.
    fn pop(&mut self, order: usize) -> u32 {
        let (block, count) = self.pool[order].last_mut().expect("it was found");
        let block = *block;
        *count -= 1;
        if *count == 0 {
            self.pool[order].pop();
        }
        block
    }

    /// The lowest order of an isolated block that is large enough.
    fn fitting(&self, order: u8) -> Option<usize> {
        (usize::from(order)..ORDERS).find(|&o| !self.pool[o].is_empty())
    }

    /// Isolates free runs, at least one, until there are enough, or until the free scanner meets the migrate scanner. So a
    /// folio that none is large enough for costs one of them and not all of a block.
    fn isolate(&mut self, wanted: u64, migrating: usize) {
        while let Some(order) = self.next_piece(migrating) {
            self.push(order, self.next_target as u32);
            self.pooled += 1 << order;
            if self.pooled >= wanted.max(CLUSTER) {
                break;
            }
        }
    }

    /// The order of the next free run, in the block that the free scanner is at or in one below it.
    fn next_piece(&mut self, migrating: usize) -> Option<usize> {
        while self.pieces.is_empty() && self.next_target > migrating + 1 {
            self.next_target -= 1;
            let block = self.next_target;
            let whole = self.free[block] as usize == BLOCK_FRAMES;
            if !whole && self.rules.targets.get(block).is_some_and(|&t| t) {
                self.pieces = self.runs(block);
            }
        }
        self.pieces.pop()
    }

    /// The orders of the free runs of a block, as large as their alignment allows, the first one last.
    fn runs(&self, block: usize) -> Vec<usize> {
        if self.free[block] == 0 {
            return vec![];
        }
        let (first, emptied) = (block * BLOCK_FRAMES, self.rules.emptied);
        let free: [bool; BLOCK_FRAMES] =
            std::array::from_fn(|i| self.zone.is_free(first + i, emptied));
        let mut runs = vec![];
        let mut i = 0;
        while i < BLOCK_FRAMES {
            let mut order = 0;
            if !free[i] {
                i += 1;
                continue;
            }
            while order + 1 < ORDERS
                && i.is_multiple_of(2 << order)
                && free[i..i + (2 << order)].iter().all(|is| *is)
            {
                order += 1;
            }
            runs.push(order);
            i += 1 << order;
        }
        runs.reverse();
        runs
    }
}

/// The result of a search for a free block to move memory into.
enum TargetSearch {
    /// One was taken.
    Found,
    /// The scanners met, which ends the run.
    ScannersMet,
    /// No free block is large enough.
    NoneFits,
}

#[cfg(test)]
mod tests {
    use super::super::test_zone::zone;
    use super::*;
    use unfrag_linux::kpageflags::{ANON, BUDDY, COMPOUND_HEAD, COMPOUND_TAIL, LRU, SLAB};

    /// Blocks of which every fourth frame is in use.
    fn quarter_full(blocks: usize) -> Vec<u64> {
        (0..blocks * 512)
            .map(|i| if i % 4 == 3 { LRU | ANON } else { BUDDY })
            .collect()
    }

    fn run(words: Vec<u64>, by_order: bool) -> CompactionOutcome {
        let (_, z) = zone(words);
        let targets = vec![true; z.blocks.len()];
        compact(
            &z,
            &CompactionRules {
                unevictable: true,
                by_order,
                synced: false,
                emptied: Emptied::default(),
                targets: &targets,
            },
        )
    }

    #[test]
    fn partly_used_blocks_are_packed() {
        // 40 blocks with 128 pages each: 10 blocks' worth, and 30 free.
        let done = run(quarter_full(40), true);
        assert_eq!(done.stopped, None);
        assert!((29..=30).contains(&done.free_blocks), "{done:?}");
    }

    #[test]
    fn a_block_with_a_slab_page_stays() {
        let mut words = quarter_full(40);
        words[5] = SLAB;
        let done = run(words, true);
        assert!((28..=29).contains(&done.free_blocks), "{done:?}");
    }

    #[test]
    fn an_unsplittable_folio_ends_the_run() {
        const DIRTY: u64 = 1 << 4;
        const PRIVATE: u64 = 1 << 35;
        let mut words = quarter_full(40);
        words[512 + 8] = LRU | COMPOUND_HEAD | DIRTY | PRIVATE;
        words[512 + 9..512 + 16].fill(LRU | COMPOUND_TAIL);
        let done = run(words.clone(), true);
        assert_eq!(done.stopped, Some(StuckFolio { pfn: 520, order: 3 }));
        assert_eq!(done.free_blocks, 1);
        // Once it is written it is split.
        words[512 + 8] = LRU | COMPOUND_HEAD | PRIVATE;
        let clean = run(words.clone(), true);
        assert_eq!(clean.stopped, None);
        assert!(clean.free_blocks >= 29, "{clean:?}");
        // Kernels that move small pages only leave it where it is.
        let old = run(words, false);
        assert_eq!(old.stopped, None);
        assert!((28..=29).contains(&old.free_blocks), "{old:?}");
    }

    #[test]
    fn a_folio_that_fits_nowhere_costs_a_free_run_and_not_a_block() {
        // In each block a folio of four pages, where no free run has more than two.
        let mut words = quarter_full(40);
        for block in words.chunks_mut(512) {
            block[8] = LRU | COMPOUND_HEAD;
            block[9..12].fill(LRU | COMPOUND_TAIL);
        }
        let done = run(words, true);
        assert_eq!(done.stopped, None);
        assert!((28..=29).contains(&done.free_blocks), "{done:?}");
    }

    #[test]
    fn without_targets_nothing_moves() {
        let (_, z) = zone(quarter_full(4));
        let rules = CompactionRules {
            unevictable: true,
            by_order: true,
            synced: true,
            emptied: Emptied::default(),
            targets: &[false; 4],
        };
        assert_eq!(compact(&z, &rules).moved_pages, 0);
    }
}
