//! How many huge pages a pool can give: at once, and at most.
//!
//! Invariant: what is said to be there now is there for requests, the min watermarks kept; what is said at most counts every
//! block that nothing unmovable is in.

use crate::memory::node_id;
use crate::pool::Pool;
use unfrag::maps::BLOCK_ORDER;
use unfrag::{MAX_NODES, Pfn};

/// Huge pages that a pool can give, in blocks of 2 MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HugePages {
    /// So many requests in a row get one at once, if nobody else takes memory meanwhile.
    pub now: u64,
    /// No more than so many can be had until something unmovable is given back, whatever is moved. It may be less: what is
    /// pinned, and what an owner keeps in its place, counts as movable.
    pub at_most: u64,
}

/// What counts of a node.
#[derive(Clone, Copy, Default)]
struct Node {
    /// Blocks without unmovable frames.
    movable: u64,
    /// Whole free blocks.
    whole: u64,
    /// Blocks that free frames above the min watermark make.
    above_min: u64,
}

impl Pool {
    /// How many huge pages can be had. What threads keep for themselves is given back first. It looks at each block's record.
    ///
    /// ```
    /// use unfrag_pool::{Order, Pool};
    ///
    /// let pool = Pool::builder().arena(64 << 20).build()?;
    /// let _page = pool.alloc(Order(0))?;
    /// let huge = pool.huge_pages();
    /// assert_eq!((huge.now, huge.at_most), (31, 31));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn huge_pages(&self) -> HugePages {
        let memory = &self.inner.base.memory;
        memory.drain();
        // Nodes beyond those that the memory knows share the marks of others.
        let mut nodes = vec![Node::default(); memory.nodes.len().min(MAX_NODES)];
        for (i, node) in nodes.iter_mut().enumerate() {
            let id = node_id(i);
            let free = memory.shared.free_frames_of(id);
            let min = memory.shared.marks(id).min;
            node.above_min = free.saturating_sub(min) >> BLOCK_ORDER.0;
        }
        memory.shared.each_block(|first: Pfn, block| {
            let at = node_id(memory.node_of(first.0 as u32));
            let node = &mut nodes[usize::from(at.0)];
            let [unmovable, _, reclaimable] = block.used;
            node.movable += u64::from(unmovable == 0 && reclaimable == 0);
            node.whole += u64::from(block.free == BLOCK_ORDER.frames());
        });
        nodes.iter().fold(HugePages::default(), |sum, n| HugePages {
            now: sum.now + n.whole.min(n.above_min),
            at_most: sum.at_most + n.movable.min(n.above_min),
        })
    }
}
