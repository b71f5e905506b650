//! Runs of blocks that are emptied as one: what a huge page is where it is larger than a block, and larger ones; and places for
//! what moves out of them.

use super::block::Block;
use super::engine::Engine;
use super::map::Map;
use super::sizes::{BLOCK_ORDER, FRAMES, LARGEST_ORDER, MOVABLE};
use super::tables::Entries;
use crate::frame::{Order, Pfn};

/// Full blocks of which the one in the fullest run is taken.
const COMPARED: usize = 8;

/// What a search for a run of blocks leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seek {
    /// Runs with more frames in use.
    pub most: u32,
    /// Runs that are free as a whole.
    pub in_use_only: bool,
    /// Runs with a frame that stayed, for as long as its block waits.
    pub not_waiting: bool,
}

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// The aligned run of `2^order` frames, more than a block, of gigabyte `g` that is the cheapest to empty: its first
    /// block, after how many of its frames are in use.
    pub(crate) fn cheapest_run(&self, g: u32, order: Order, seek: Seek) -> Option<(u32, u32)> {
        let blocks = run_blocks(order)?;
        let tables = self.of.get(g)?;
        let first = g * FRAMES;
        let mut best: Option<(u32, u32)> = None;
        for start in (first..first + FRAMES).step_by(blocks as usize) {
            let run = tables.records(start - first, blocks);
            let can = |b: Block| {
                let waits = seek.not_waiting && b.is_waiting();
                b.can_be_emptied() && b.absent() == 0 && !b.is_apart() && !waits
            };
            if !run.clone().all(can) {
                continue;
            }
            let used = run.map(|b| b.in_use()).sum::<u32>();
            let is_wanted = used <= seek.most && (used > 0 || !seek.in_use_only);
            if is_wanted && best.is_none_or(|(least, _)| used < least) {
                best = Some((used, start));
            }
        }
        best
    }

    /// Aligned runs of `2^order` frames, at least a block, that are free as a whole.
    pub(crate) fn whole_runs(&self, order: Order) -> u32 {
        let Some(blocks) = run_blocks(order) else {
            return 0;
        };
        if blocks == 1 {
            return self.whole_blocks();
        }
        let order = Order(order.0 - BLOCK_ORDER.0);
        let of = |whole: &Map| {
            let runs = (0..FRAMES).step_by(blocks as usize);
            runs.filter(|&i| whole.is_free_run(i, order)).count() as u32
        };
        self.of.all().map(|(_, t)| of(&t.whole.whole)).sum()
    }

    /// Takes a block out of one of the fullest blocks that hold what can be moved: the one of the fullest run, as what is put
    /// into an emptier run may have to move again soon.
    fn take_in_full_run(&mut self, order: Order, huge: Order) -> Option<Pfn> {
        let blocks = run_blocks(huge).filter(|_| order < BLOCK_ORDER)?;
        let used_of = |i: u32| {
            let first = i % FRAMES / blocks * blocks;
            let run = self.of.of(i / FRAMES).records(first, blocks);
            // One that cannot be emptied is as good as full.
            let stays = run.clone().any(|b| !b.can_be_emptied() || b.is_waiting());
            let used = run.map(|b| b.in_use()).sum::<u32>();
            if stays { u32::MAX } else { used }
        };
        let has_run = |&i: &u32| self.of.map(i).find_run(order).is_some();
        let full = self.bins.fullest_first(&self.of).filter(has_run);
        let i = full.take(COMPARED).max_by_key(|&i| used_of(i))?;
        let mut one = [0];
        (self.take_out_of(i, &mut one, order, MOVABLE) == 1).then_some(Pfn(one[0]))
    }

    /// Takes a block for what is moved beside others that can be moved: out of one of 512 frames that is in use in part. If
    /// runs of more than a block are wanted whole, also out of one of which such a run is in use in part. `None`, if
    /// there is none.
    pub(crate) fn take_near(&mut self, order: Order, huge: Order) -> Option<Pfn> {
        let beside = match huge {
            BLOCK_ORDER => self.take_beside(order),
            _ => self.take_in_full_run(order, huge),
        };
        if beside.is_some() {
            return beside;
        }
        if order >= huge || huge > LARGEST_ORDER {
            return None;
        }
        let of = Order(order.0.saturating_sub(BLOCK_ORDER.0));
        let huge = Order(huge.0 - BLOCK_ORDER.0);
        let i = self.of.all().find_map(|(g, tables)| {
            let own = &tables.whole;
            let runs = (0..FRAMES).step_by(of.frames() as usize);
            let mut beside = runs.filter(|&i| {
                let run = i & !(huge.frames() - 1);
                own.whole.is_free_run(i, of) && !own.whole.is_free_run(run, huge)
            });
            Some(g * FRAMES + beside.next()?)
        })?;
        self.take_whole_run(i, of);
        if order >= BLOCK_ORDER {
            self.use_whole(i, of, MOVABLE);
            self.count_free(-i64::from(order.frames()));
            return Some(self.frame(i * FRAMES));
        }
        self.of.block_mut(i).set_mt(MOVABLE);
        self.runs_came(i);
        let mut one = [0];
        (self.take_out_of(i, &mut one, order, MOVABLE) == 1).then_some(Pfn(one[0]))
    }
}

/// Blocks of a run of an order of at least a block.
fn run_blocks(order: Order) -> Option<u32> {
    let is_run = (BLOCK_ORDER..=LARGEST_ORDER).contains(&order);
    is_run.then(|| 1 << (order.0 - BLOCK_ORDER.0))
}
