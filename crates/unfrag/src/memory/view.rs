//! What a memory has, for those who look on.

use super::shards::Memory;
use crate::frame::{NodeId, Pfn};
use crate::maps::{BlockView, Broken, Engine, EngineCounts, FreeBlocks};
use lock_api::RawMutex;

impl<R: RawMutex> Memory<'_, R> {
    /// What the maps of all shards say. Frames that `Local`s keep are in use for them.
    pub fn counts(&self) -> EngineCounts {
        let mut sum = EngineCounts::default();
        for c in self.each(|e| e.counts()) {
            sum.present += c.present;
            sum.free += c.free;
            sum.whole += c.whole;
            sum.tainted += c.tainted;
            sum.tainted_gigabytes += c.tainted_gigabytes;
            for (sum, n) in sum.holding.iter_mut().zip(c.holding) {
                *sum += n;
            }
        }
        sum
    }

    /// Frames of memory that was added.
    pub fn present(&self) -> u64 {
        self.each(|e| e.present()).sum()
    }

    /// Frames of memory of a node that was added.
    pub fn present_of(&self, node: NodeId) -> u64 {
        let present = |shard| self.with(shard, |e| e.present());
        self.shards_of(node).filter_map(present).sum()
    }

    /// Free blocks by type and order, in the maps of all shards.
    pub fn free_blocks(&self) -> FreeBlocks {
        self.sum_of_free_blocks(0..self.spans().len())
    }

    /// Free blocks by type and order, in the maps of a node.
    pub fn free_blocks_of(&self, node: NodeId) -> FreeBlocks {
        self.sum_of_free_blocks(self.shards_of(node))
    }

    fn sum_of_free_blocks(&self, shards: impl Iterator<Item = usize>) -> FreeBlocks {
        let mut sum = FreeBlocks::default();
        for own in shards.filter_map(|shard| self.with(shard, |e| e.free_blocks())) {
            let all = sum.of.iter_mut().zip(own.of);
            for (sum, n) in all.flat_map(|(s, n)| s.iter_mut().zip(n)) {
                *sum += n;
            }
            for (sum, n) in sum.blocks.iter_mut().zip(own.blocks) {
                *sum += n;
            }
        }
        sum
    }

    /// Calls `f` with the first frame of each block of 512 frames that has memory, and with what it holds. A shard is locked
    /// meanwhile, so `f` must neither take nor give frames.
    pub fn each_block(&self, mut f: impl FnMut(Pfn, BlockView)) {
        for shard in 0..self.spans().len() {
            self.with(shard, |e| e.blocks().for_each(|(at, b)| f(at, b)));
        }
    }

    /// Blocks of 512 frames that are free as a whole.
    pub fn whole_blocks(&self) -> u32 {
        self.each(|e| e.whole_blocks()).sum()
    }

    /// Checks the invariants of each shard.
    ///
    /// # Errors
    /// [`Broken`], for the first shard that breaks one.
    pub fn validate(&self) -> Result<(), Broken> {
        self.each(Engine::validate).collect()
    }
}
