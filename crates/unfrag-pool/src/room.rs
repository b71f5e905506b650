//! How many huge pages a pool can give: at once, and at most.
//!
//! Invariant: what is said to be there now is there for requests, the min watermarks kept; what is said at most counts every
//! block that nothing unmovable is in, as far as frames are free. Frames of blocks that are being emptied count as free for
//! nobody meanwhile, so while there are such blocks all memory may be.

use crate::memory::{Memory, node_id};
use crate::pool::Pool;
use unfrag::maps::BLOCK_ORDER;
use unfrag::{MAX_NODES, Pfn};

/// Huge pages that a pool can give, in blocks of 2 MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HugePages {
    /// So many requests in a row get one at once, if nobody else takes memory meanwhile.
    pub now: u64,
    /// No more than so many can be had until something is given back, whatever is moved. It may be less: what is pinned,
    /// and what an owner keeps in its place, counts as movable. While blocks are being emptied it is a wider bound.
    pub at_most: u64,
}

/// Looks at a memory in which blocks are being emptied, until one is told of it: each may be over before the next.
const LOOKS: usize = 4;

/// What counts of a node.
#[derive(Clone, Copy, Default)]
struct Node {
    /// Blocks without unmovable frames.
    movable: u64,
    /// Whole free blocks, but for those that are set apart.
    whole: u64,
    /// Free frames by the records of blocks.
    in_blocks: u64,
    /// Free frames for requests.
    free: u64,
    /// Frames.
    present: u64,
    /// The min watermark.
    min: u64,
}

impl Node {
    /// Blocks that so many frames make beside those that the watermark keeps.
    fn above_min(&self, frames: u64) -> u64 {
        frames.saturating_sub(self.min) >> BLOCK_ORDER.0
    }
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
        let (mut nodes, mut is_still) = look(memory);
        for _ in 1..LOOKS {
            if is_still {
                break;
            }
            std::thread::yield_now();
            (nodes, is_still) = look(memory);
        }
        nodes.iter().fold(HugePages::default(), |sum, n| HugePages {
            now: sum.now + n.whole.min(n.above_min(n.free)),
            at_most: sum.at_most
                + n.movable
                    .min(n.above_min(if is_still { n.free } else { n.present })),
        })
    }
}

/// What there is of each node, and whether all of it was so at one moment, with nothing set apart and nothing kept by threads.
fn look(memory: &Memory) -> (Vec<Node>, bool) {
    let shared = &memory.shared;
    // Nodes beyond those that the memory knows share the marks of others.
    let nodes = memory.nodes.len().min(MAX_NODES);
    let free = || (0..nodes).map(|i| shared.free_frames_of(node_id(i)));
    let before: Vec<u64> = free().collect();
    let mut all = vec![Node::default(); nodes];
    let mut is_still = true;
    shared.each_block(|first: Pfn, block| {
        let at = node_id(memory.node_of(first.0 as u32));
        let node = &mut all[usize::from(at.0)];
        let [unmovable, _, reclaimable] = block.used;
        node.movable += u64::from(unmovable == 0 && reclaimable == 0);
        node.whole += u64::from(block.free == BLOCK_ORDER.frames() && !block.is_apart);
        node.in_blocks += u64::from(block.free);
        is_still &= !block.is_apart;
    });
    for (i, node) in all.iter_mut().enumerate() {
        let after = shared.free_frames_of(node_id(i));
        is_still &= before[i] == after && after == node.in_blocks;
        node.free = before[i].min(after);
        node.present = shared.present_of(node_id(i));
        node.min = shared.marks(node_id(i)).min;
    }
    let kept = shared.free_frames() > free().sum();
    (all, is_still && !kept)
}
