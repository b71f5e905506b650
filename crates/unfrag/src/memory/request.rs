//! [`Request`]: what is asked of a memory, where it matters from where.

use super::totals::Floor;
use crate::frame::{MigrateType, NodeId, Order, Pfn};

/// A request that names where it is served from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// `2^order` frames.
    pub order: Order,
    /// Whether they can be moved, or reclaimed; types that nobody requests count as unmovable.
    pub mt: MigrateType,
    /// The node that is asked first; the first one, if `None`.
    pub node: Option<NodeId>,
    /// Whether no other node is asked.
    pub is_only: bool,
    /// The block ends there at the latest: a device reaches no further.
    pub below: Option<Pfn>,
    /// Whether the caller cannot wait, such as an interrupt handler: it may have the frames below the min watermark.
    pub is_atomic: bool,
}

impl Request {
    /// A request for frames of anywhere, down to the min watermark.
    pub const fn new(order: Order, mt: MigrateType) -> Request {
        Request {
            order,
            mt,
            node: None,
            is_only: false,
            below: None,
            is_atomic: false,
        }
    }

    /// From this node, or from another one where it has nothing.
    #[must_use]
    pub const fn near(mut self, node: NodeId) -> Request {
        self.node = Some(node);
        self
    }

    /// From this node, and from no other.
    #[must_use]
    pub const fn only(mut self, node: NodeId) -> Request {
        self.is_only = true;
        self.near(node)
    }

    /// From below this frame.
    #[must_use]
    pub const fn below(mut self, limit: Pfn) -> Request {
        self.below = Some(limit);
        self
    }

    /// For somebody who cannot wait.
    #[must_use]
    pub const fn atomic(mut self) -> Request {
        self.is_atomic = true;
        self
    }
}

/// Where a request is served from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From {
    /// The shard that is asked first.
    pub home: usize,
    pub floor: Floor,
    /// The only node.
    pub only: Option<u8>,
    /// The frame that blocks end before.
    pub below: u64,
}

impl From {
    /// From anywhere, a shard first.
    pub const fn home(home: usize, floor: Floor) -> From {
        From {
            home,
            floor,
            only: None,
            below: u64::MAX,
        }
    }

    /// Whether a node may serve it.
    pub fn may_node(&self, node: usize) -> bool {
        self.only.is_none_or(|only| usize::from(only) == node)
    }

    /// Whether a shard may: from which frame on it is, and of which node.
    pub fn may(&self, start: u64, node: u8) -> bool {
        start < self.below && self.may_node(node.into())
    }
}
