//! The LRU lists of a zone or of a node, with the counters that reclaim keeps for them.

use super::kind::{Lru, NR_LRU};
use crate::frame::{FrameIx, Frames, Order};
use crate::placement::{End, List};
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// Reclaim begins at this priority and scans `size >> priority` of each list.
pub(crate) const DEF_PRIORITY: u8 = 12;

/// Pages that one reclaim wants, and the size of a batch.
pub(crate) const SWAP_CLUSTER_MAX: u64 = 32;

/// The LRU lists of a zone, or of a node. They live in the caller's memory, so their layout has no gaps.
#[derive(TryFromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct LruLists {
    /// Pages to scan that were too few for a batch, by list (`nr_saved_scan`).
    pub saved_scan: [u64; NR_LRU],
    /// Pages scanned recently: anonymous, file (`recent_scanned`).
    pub recent_scanned: [u64; 2],
    /// Those of them that were in use (`recent_rotated`).
    pub recent_rotated: [u64; 2],
    /// Isolated pages: anonymous, file.
    pub isolated: [u64; 2],
    /// Pages looked at since one was freed in the zones whose lists these are.
    pub pages_scanned: u64,
    /// Pages of the large blocks on each list beyond their first ones.
    pub more: [u64; NR_LRU],
    pub lists: [List; NR_LRU],
    /// Priority of the last reclaim that was under way (joined lists).
    pub prev_priority: u8,
    /// Reclaim has given up here until a page is freed.
    pub all_unreclaimable: bool,
    pad: [u8; 2],
}

impl LruLists {
    pub fn new() -> LruLists {
        LruLists {
            saved_scan: [0; NR_LRU],
            recent_scanned: [0; 2],
            recent_rotated: [0; 2],
            isolated: [0; 2],
            pages_scanned: 0,
            lists: [List::EMPTY; NR_LRU],
            more: [0; NR_LRU],
            prev_priority: DEF_PRIORITY,
            all_unreclaimable: false,
            pad: [0; 2],
        }
    }

    /// Pages on a list.
    pub fn len(&self, lru: Lru) -> u64 {
        u64::from(self.lists[lru.index()].len) + self.more[lru.index()]
    }

    /// Takes a block off a list.
    #[inline(always)]
    pub fn unlink(&mut self, frames: &Frames, ix: FrameIx, lru: Lru) {
        self.lists[lru.index()].unlink(frames.table, ix);
        let order = frames.state(ix).order();
        if order > Order::ZERO {
            self.more[lru.index()] -= u64::from(order.frames() - 1);
        }
    }

    /// Puts a block on a list.
    #[inline(always)]
    pub fn link(&mut self, frames: &Frames, ix: FrameIx, lru: Lru, end: End) {
        self.lists[lru.index()].push(frames.table, ix, end);
        let order = frames.state(ix).order();
        if order > Order::ZERO {
            self.more[lru.index()] += u64::from(order.frames() - 1);
        }
    }

    /// Pages of a kind, in use or not.
    pub fn of_kind(&self, file: bool) -> u64 {
        self.len(Lru::new(file, false)) + self.len(Lru::new(file, true))
    }
}
