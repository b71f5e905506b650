//! The state of a loop device: the file behind it and its queue.

use super::node::NodeId;
use crate::block::{Dir, Done};
use std::collections::VecDeque;

/// A transfer of one page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopTransfer {
    pub block: u32,
    pub dir: Dir,
    pub done: Done,
    pub page: u32,
    /// With the last page of a bio: token of the objects that it holds.
    pub held: Option<u32>,
}

/// A loop device.
#[derive(Clone, Debug)]
pub struct LoopDevice {
    /// The file behind it.
    pub(crate) image: NodeId,
    pub(crate) queue: VecDeque<LoopTransfer>,
    /// Pages copied so far.
    pub copied: u64,
    /// Transfers that failed.
    pub failed: u64,
}

impl LoopDevice {
    /// The file behind it.
    pub fn image(&self) -> NodeId {
        self.image
    }
}
