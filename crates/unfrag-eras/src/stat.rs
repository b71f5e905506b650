//! Counters, and the data behind buddyinfo, pagetypeinfo and zoneinfo; the indexes of
//! fragmentation. Text formats are not made here.

use crate::frame::Order;

/// Events since the start, in base pages or times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Base pages allocated.
    pub pgalloc: u64,
    /// Base pages freed.
    pub pgfree: u64,
    /// Allocations that found nothing.
    pub alloc_failed: u64,
    /// Allocations that the first attempt could not serve.
    pub slow_path: u64,
    /// Times that kswapd was woken.
    pub kswapd_wakeups: u64,
}

/// Pages and times of reclaim since the start, with the names of `/proc/vmstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimCounters {
    /// Pages that kswapd looked at.
    pub pgscan_kswapd: u64,
    /// Pages that direct reclaim looked at.
    pub pgscan_direct: u64,
    /// Pages that kswapd gave back.
    pub pgsteal_kswapd: u64,
    /// Pages that direct reclaim gave back.
    pub pgsteal_direct: u64,
    /// Direct reclaims.
    pub allocstall: u64,
    /// Direct reclaims that waited for kswapd first, because free memory was below half of the min marks.
    pub pgscan_direct_throttle: u64,
    /// Runs of kswapd.
    pub pageoutrun: u64,
    /// Pages moved from the inactive to the active lists.
    pub pgactivate: u64,
    /// Pages moved from the active to the inactive lists.
    pub pgdeactivate: u64,
    /// Pages of the active lists looked at.
    pub pgrefill: u64,
    /// Pages whose writing reclaim started.
    pub nr_vmscan_write: u64,
    /// Pages moved to the tail of their list when their writeback ended.
    pub pgrotated: u64,
    /// Times kswapd was woken before its first sleep ended, or found the low mark hit at once.
    pub kswapd_low_wmark_hit_quickly: u64,
    /// Times kswapd found the high mark broken after its first sleep.
    pub kswapd_high_wmark_hit_quickly: u64,
    /// Naps that kswapd skipped because a zone was below its min mark.
    pub kswapd_skip_congestion_wait: u64,
    /// Processes that the OOM killer was asked for.
    pub oom_kill: u64,
}

/// Pages and times of compaction since the start, with the names of `/proc/vmstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactCounters {
    /// Requests that compacted.
    pub compact_stall: u64,
    /// Those that had their block then.
    pub compact_success: u64,
    /// Those that had not.
    pub compact_fail: u64,
    /// Frames that migrate scanners looked at.
    pub compact_migrate_scanned: u64,
    /// Frames that free scanners looked at.
    pub compact_free_scanned: u64,
    /// Pages isolated, by both scanners.
    pub compact_isolated: u64,
    /// Pages moved.
    pub pgmigrate_success: u64,
    /// Pages that could not be moved.
    pub pgmigrate_fail: u64,
    /// Runs of kcompactd for an order.
    pub compact_daemon_wake: u64,
    /// Frames that its migrate scanners looked at.
    pub compact_daemon_migrate_scanned: u64,
    /// Frames that its free scanners looked at.
    pub compact_daemon_free_scanned: u64,
}

/// Free pages in blocks of each order.
fn pages(nr_free: &[u64]) -> u64 {
    nr_free.iter().enumerate().map(|(o, n)| n << o).sum()
}

/// Pages in free blocks of at least `order`.
fn suitable(nr_free: &[u64], order: Order) -> u64 {
    let o = order.index();
    nr_free
        .iter()
        .enumerate()
        .skip(o)
        .map(|(o, n)| n << o)
        .sum()
}

/// Share of free memory that a request of `order` cannot use, in thousandths; 1000 if nothing is
/// free. `spec: 7.5`
pub fn unusable_index(nr_free: &[u64], order: Order) -> u64 {
    let free = pages(nr_free);
    let unusable = (free - suitable(nr_free, order)) * 1000;
    unusable.checked_div(free).unwrap_or(1000)
}

/// Why a request of `order` would fail: towards 0 for lack of memory, towards 1000 for
/// fragmentation, -1000 if it would not fail. `spec: 5.2`
pub fn fragmentation_index(nr_free: &[u64], order: Order) -> i64 {
    let blocks: u64 = nr_free.iter().sum();
    if blocks == 0 {
        return 0;
    }
    if suitable(nr_free, order) > 0 {
        return -1000;
    }
    let asked = u64::from(order.frames());
    1000 - ((1000 + pages(nr_free) * 1000 / asked) / blocks) as i64
}

/// Share of free memory outside blocks of at least `order`, in percent (the score of proactive
/// compaction). `spec: 5.5`
pub fn extfrag_for_order(nr_free: &[u64], order: Order) -> u64 {
    let free = pages(nr_free);
    let outside = (free - suitable(nr_free, order)) * 100;
    outside.checked_div(free).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::NR_ORDERS;

    fn free(blocks: &[u64]) -> [u64; NR_ORDERS] {
        let mut n = [0; NR_ORDERS];
        n[..blocks.len()].copy_from_slice(blocks);
        n
    }

    /// `spec: 5.2`
    #[test]
    fn fragmentation_index_vectors() {
        assert_eq!(fragmentation_index(&free(&[100, 50]), Order(4)), 910);
        assert_eq!(fragmentation_index(&free(&[]), Order(4)), 0);
        assert_eq!(
            fragmentation_index(&free(&[100, 0, 0, 0, 1]), Order(4)),
            -1000
        );
        // Near 0 is lack of memory: one free page, asked for 512.
        assert_eq!(fragmentation_index(&free(&[1]), Order(9)), -1);
        assert_eq!(
            fragmentation_index(&free(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), Order(9)),
            -500
        );
    }

    /// `spec: 7.5`
    #[test]
    fn unusable_index_vectors() {
        assert_eq!(unusable_index(&free(&[]), Order(0)), 1000);
        assert_eq!(unusable_index(&free(&[100, 50]), Order(0)), 0);
        assert_eq!(unusable_index(&free(&[100, 50]), Order(1)), 500);
        assert_eq!(unusable_index(&free(&[100, 50]), Order(2)), 1000);
        assert_eq!(unusable_index(&free(&[1, 1]), Order(1)), 333, "truncated");
    }

    /// `spec: 5.5`
    #[test]
    fn extfrag_for_order_vectors() {
        // 10,000 free pages, five blocks of order 9.
        let mut n = free(&[7440]);
        n[9] = 5;
        assert_eq!(extfrag_for_order(&n, Order(9)), 74);
        // The first 384 pages of each 512 are free.
        let mut n = free(&[]);
        (n[7], n[8]) = (10, 10);
        assert_eq!(extfrag_for_order(&n, Order(9)), 100);
        assert_eq!(extfrag_for_order(&free(&[]), Order(9)), 0);
    }
}
