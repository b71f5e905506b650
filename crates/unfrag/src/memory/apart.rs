//! Blocks that are set apart to be emptied, of whatever shard.

use super::shards::Memory;
use super::totals::Floor;
use crate::frame::{Order, Pfn};
use crate::maps::BLOCK_ORDER;
use lock_api::RawMutex;

/// A block that is set apart to be emptied.
#[derive(Debug)]
pub(crate) struct Apart {
    pub shard: usize,
    block: u32,
}

impl Apart {
    /// The frame at a place of the block.
    pub fn frame<R: RawMutex>(&self, at: u32, memory: &Memory<'_, R>) -> Pfn {
        let start = memory.spans()[self.shard].start;
        Pfn(start + u64::from(self.block * BLOCK_ORDER.frames() + at))
    }
}

impl<R: RawMutex> Memory<'_, R> {
    /// Sets the block apart that is the cheapest to empty of all shards.
    pub(crate) fn set_apart(&self, most: u32) -> Option<Apart> {
        let cost = |s: &usize| {
            let cheapest = self.with(*s, |e| e.cheapest(most)).flatten();
            cheapest.map_or(u32::MAX, |(used, _)| used)
        };
        let shard = (0..self.spans().len()).min_by_key(cost)?;
        let block = self.with(shard, |e| e.set_apart(most)).flatten()?;
        Some(Apart { shard, block })
    }

    /// The first place from `at` on that is in use.
    pub(crate) fn next_in_use(&self, apart: &Apart, at: u32) -> Option<u32> {
        self.with(apart.shard, |e| e.next_in_use(apart.block, at))
            .flatten()
    }

    pub(crate) fn end_apart(&self, apart: &Apart) -> bool {
        let whole = self.with(apart.shard, |e| e.end_apart(apart.block));
        whole.unwrap_or(false)
    }

    /// Takes a block beside others that can be moved, from any shard, `first` before the others.
    pub(crate) fn take_beside(&self, order: Order, first: usize) -> Option<Pfn> {
        if order >= BLOCK_ORDER {
            return None;
        }
        let count = self.spans().len();
        let shards = (0..count).map(|i| (first + i) % count);
        shards.into_iter().find_map(|s| {
            let node = self.node(s);
            if node.reserve(1, order, Floor::Min) == 0 {
                return None;
            }
            let got = self.with(s, |e| e.take_beside(order)).flatten();
            if got.is_none() {
                node.add(1, order);
            }
            got
        })
    }
}
