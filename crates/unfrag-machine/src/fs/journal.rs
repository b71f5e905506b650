//! The state of an ext3 journal.

use super::node::NodeId;
use crate::mm::bit_set::BitSet;

/// A journal.
#[derive(Clone, Debug)]
pub struct Journal {
    /// Its first block and length.
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) at: u32,
    /// Blocks that changed since the last commit.
    pub(crate) changed: BitSet,
    pub(crate) nr_changed: u32,
    /// Files whose data must be on disk before the commit.
    pub(crate) ordered: Vec<NodeId>,
    /// Commits so far.
    pub commits: u64,
    /// Blocks that they wrote.
    pub blocks: u64,
}

impl Journal {
    /// Records that a block of the device changed.
    pub(crate) fn change(&mut self, block: u32) {
        self.nr_changed += u32::from(self.changed.set(block, true));
    }
    /// Records that a file got blocks.
    pub(crate) fn order(&mut self, node: NodeId) {
        self.ordered.push(node);
    }
    /// Removes a file.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.ordered.retain(|n| *n != node);
    }
}
