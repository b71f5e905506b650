//! The channels on which tasks of the kernel and of programs wait.
//!
//! Invariant: no two users share a kind.

use crate::engine::{Channel, TaskId};
use unfrag_eras::{NodeId, Pfn};

/// A bio with [`Done::User`](crate::block::Done::User) and this token has ended.
pub(crate) const BIO: u16 = 2;
/// Every bio that task `key` has submitted has its request.
const REQUEST: u16 = 3;
/// A device leaves congestion; key 1 for sync, 0 for async.
const CONGESTION: u16 = 4;
/// Work for an encrypting layer's thread.
pub(crate) const CRYPT: u16 = 5;
/// Work for kswapd of a node.
const KSWAPD: u16 = 6;
/// Work for kcompactd of a node.
const KCOMPACTD: u16 = 7;
/// A page's transfer or move ends.
const PAGE: u16 = Channel::FIRST_FREE;
/// Reclaim may go on that was throttled; the key is the reason.
pub(crate) const THROTTLE: u16 = Channel::FIRST_FREE + 1;
/// Work for the flushers.
pub(crate) const FLUSH: u16 = Channel::FIRST_FREE + 2;
/// Work for the thread of a loop device.
pub(crate) const LOOP: u16 = Channel::FIRST_FREE + 3;
/// Work for the thread of a journal.
pub(crate) const JOURNAL: u16 = Channel::FIRST_FREE + 4;
/// A frame has arrived on a network stream.
pub(crate) const NET: u16 = Channel::FIRST_FREE + 5;
/// Barriers and pools of programs.
pub(crate) const PROGRAM: u16 = Channel::FIRST_FREE + 6;
/// Pages came back to the pool of the encrypting layers.
pub(crate) const CRYPT_POOL: u16 = Channel::FIRST_FREE + 7;

/// Where tasks wait for the transfer or the move of a page to end.
pub(crate) fn page_channel(pfn: Pfn) -> Channel {
    Channel::new(PAGE, pfn.0)
}

/// Where kswapd of a node sleeps.
pub(crate) fn kswapd_channel(node: NodeId) -> Channel {
    Channel::new(KSWAPD, node.0.into())
}

/// Where kcompactd of a node sleeps.
pub(crate) fn kcompactd_channel(node: NodeId) -> Channel {
    Channel::new(KCOMPACTD, node.0.into())
}

/// Where a task waits for requests for its bios.
pub(crate) const fn request_channel(task: TaskId) -> Channel {
    Channel::new(REQUEST, task.number())
}

/// Where tasks wait for congestion of a class to end.
pub(crate) const fn congestion_channel(sync: bool) -> Channel {
    Channel::new(CONGESTION, sync as u64)
}
