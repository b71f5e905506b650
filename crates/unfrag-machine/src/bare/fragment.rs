//! How memory becomes fragmented: all of it is taken in huge blocks, and three quarters of each are given back.
//! `spec: 8.4`

use super::machine::Bare;
use crate::engine::Rng;
use unfrag_eras::{Gfp, Order, Pfn};

/// Frames of a huge block, and how many of them are given back.
const BLOCK: u64 = Order::HUGE.frames() as u64;
const FREED: u64 = BLOCK / 4 * 3;

/// Which three quarters of a block are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// The first.
    First,
    /// A random choice for each block.
    Random,
}

/// What remains in each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Pages of a program.
    Movable,
    /// Pages of a driver that nobody can move.
    Unmovable,
}

/// A request for a huge block that neither waits nor wakes anybody.
const FILL: Gfp = Gfp::HIGHUSER_MOVABLE
    .union(Gfp::COMP)
    .union(Gfp::NOWARN)
    .difference(Gfp::DIRECT_RECLAIM)
    .difference(Gfp::KSWAPD_RECLAIM);

impl Bare<'_> {
    /// Fragments memory. Blocks are punched in the order of their addresses; daemons go on meanwhile. `told` is called
    /// with the share of the work that is done, in thousandths. Returns the blocks.
    pub fn fragment(
        &mut self,
        holes: Holes,
        kept: Kept,
        rng: &mut Rng,
        mut told: impl FnMut(u64),
    ) -> u64 {
        let mut heads = vec![];
        while let Some(head) = self.request(Order::HUGE, FILL).block {
            heads.push(head);
        }
        heads.sort_unstable();
        let step = (heads.len() / 1000).max(1);
        let mut frames: Vec<u64> = (0..BLOCK).collect();
        for (i, &head) in heads.iter().enumerate() {
            if holes == Holes::Random {
                choose(&mut frames, rng);
            }
            self.punch(head, &frames, kept);
            self.catch_up();
            if i % step == 0 {
                told(i as u64 * 1000 / heads.len() as u64);
            }
        }
        heads.len() as u64
    }

    /// Gives back the first three quarters of `frames`, which number the frames of a block.
    fn punch(&mut self, head: Pfn, frames: &[u64], kept: Kept) {
        let split = self.memory.manager.split(head, Order::HUGE, Order::ZERO);
        debug_assert!(split.is_ok(), "{head:?}: {split:?}");
        let (freed, rest) = frames.split_at(FREED as usize);
        if kept == Kept::Movable {
            for i in rest {
                self.own(Pfn(head.0 + i));
            }
        }
        for i in freed {
            self.free(Pfn(head.0 + i), Order::ZERO);
        }
    }
}

/// Brings a random choice of three quarters to the front, in ascending order.
fn choose(frames: &mut [u64], rng: &mut Rng) {
    for i in 0..FREED as usize {
        let j = i + rng.below((frames.len() - i) as u64) as usize;
        frames.swap(i, j);
    }
    frames[..FREED as usize].sort_unstable();
}
