//! How much is free of a memory, and what its watermarks say.

use super::config::Marks;
use super::shards::Memory;
use super::totals::Totals;
use crate::frame::{NodeId, Pfn};
use lock_api::RawMutex;

impl<R: RawMutex> Memory<'_, R> {
    /// Sets the watermarks of a node.
    pub fn set_marks(&self, node: NodeId, marks: Marks) {
        if let Some(own) = self.totals(node.0.into()) {
            own.set_marks(marks);
        }
    }

    /// The watermarks of a node.
    pub fn marks(&self, node: NodeId) -> Marks {
        let own = self.totals(node.0.into());
        own.map_or(Marks::NONE, Totals::marks)
    }

    /// Free frames in the maps of a node.
    pub fn free_frames_of(&self, node: NodeId) -> u64 {
        let own = self.totals(node.0.into());
        own.map_or(0, Totals::free)
    }

    /// The node of a frame, if it is in an area.
    pub fn node_of(&self, frame: Pfn) -> Option<NodeId> {
        let shard = self.shard_of(frame.0)?;
        Some(NodeId(self.spans()[shard].node))
    }

    /// Free frames, those that `Local`s keep among them: exact, if nobody takes or gives any.
    pub fn free_frames(&self) -> u64 {
        self.own_nodes().map(Totals::free).sum::<u64>() + self.slots().held()
    }

    /// Whether memory fell below the low watermark of a node, and nobody has said yet that he reclaims: it may be asked often.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.own_nodes().any(Totals::is_short)
    }

    /// Whether memory fell below the low watermark of a node since the last call: then somebody should reclaim.
    pub fn take_short(&self) -> bool {
        // Each is asked.
        self.own_nodes()
            .fold(false, |is, node| node.take_short() | is)
    }

    /// Whether a node has as many free frames as its high watermark says.
    pub fn is_balanced(&self, node: NodeId) -> bool {
        self.free_frames_of(node) >= self.marks(node).high
    }
}
