//! Scan control: what a scan may do, and what it found (`struct scan_control`).

use crate::frame::Order;
use crate::gfp::Gfp;
use crate::kernel::HighOrder;
use crate::lru::DEF_PRIORITY;

/// What a scan may do, and what it found (`struct scan_control`).
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanControl {
    /// Order that is wanted.
    pub order: Order,
    pub priority: u8,
    /// Only clean page cache may be taken: no page is written or swapped out.
    pub clean_only: bool,
    /// On whose behalf: without [`Gfp::IO`] nothing is written, without [`Gfp::FS`] no file is.
    pub gfp: Gfp,
    pub kswapd: bool,
    /// Pages looked at since the caller reset it.
    pub scanned: u64,
    /// Pages freed since the operation began.
    pub reclaimed: u64,
    /// Pages scanned and freed since the last [`Need::Turn`](crate::need::Need::Turn).
    pub unreported: (u32, u32),
    pub backlog: Backlog,
}

/// Counts of the pages in a pass that wait for a device. `spec: 4.8`
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backlog {
    /// Pages that were dirty or under writeback.
    pub dirty: u32,
    /// Of them, those under writeback.
    pub writeback: u32,
    /// Pages under writeback that an earlier scan had met there.
    pub again: u32,
    /// Dirty pages that the device does not take, as it is congested.
    pub refused: u32,
    /// A whole batch was under writeback, in this pass or an earlier one.
    pub whole_batch: bool,
}

impl Backlog {
    /// Begins another pass.
    pub fn next_pass(&mut self) {
        *self = Backlog {
            whole_batch: self.whole_batch,
            ..Backlog::default()
        };
    }

    /// Whether pages come up for reclaim again faster than the device writes them.
    pub fn outruns_the_disk(&self) -> bool {
        self.whole_batch && self.again > 0
    }

    /// Whether every dirty page waits for a congested device.
    pub fn congested(&self) -> bool {
        self.dirty > 0 && self.again + self.refused == self.dirty
    }
}

/// The aligned block around a page whose other pages are taken with it.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub order: Order,
    /// Pages of every list, not only of that which the page is on.
    pub all_lists: bool,
}

impl ScanControl {
    /// A scan that has not begun.
    pub fn new(order: Order, gfp: Gfp, kswapd: bool) -> ScanControl {
        ScanControl {
            order,
            priority: DEF_PRIORITY,
            clean_only: false,
            gfp,
            kswapd,
            scanned: 0,
            reclaimed: 0,
            unreported: (0, 0),
            backlog: Backlog::default(),
        }
    }

    /// Whether pages may be written on the caller's behalf: not if the caller is itself doing I/O or is inside a
    /// file system.
    pub fn may_write_back(&self, file: bool) -> bool {
        self.gfp.contains(if file { Gfp::FS } else { Gfp::IO })
    }

    /// Whether lumpy reclaim is in force, so that neighbours are taken from all lists.
    /// `spec: 4.5`
    pub fn lumpy(&self, rule: HighOrder) -> bool {
        matches!(rule, HighOrder::Lumpy { .. })
            && (self.order > Order::COSTLY || self.order > Order::ZERO && self.priority < 10)
    }

    /// Whether a batch waits for the blocks that it has begun to write.
    pub fn waits_for_batch(&self, rule: HighOrder) -> bool {
        let HighOrder::Lumpy { cheap_orders_wait } = rule else {
            return false;
        };
        (self.order > Order::COSTLY || cheap_orders_wait) && self.lumpy(rule) && !self.kswapd
    }

    /// The neighbours that are taken with a page of an inactive list: for any order above 0 those on
    /// the same list, since 2.6.23. `spec: 4.5` has it below priority 10 alone; source S2 (8.5) shows it
    /// at higher priorities.
    pub fn window(&self, rule: HighOrder) -> Option<Window> {
        let lumpy = matches!(rule, HighOrder::Lumpy { .. });
        (lumpy && self.order > Order::ZERO).then_some(Window {
            order: self.order,
            all_lists: self.lumpy(rule),
        })
    }
}
