//! Event counters by name.

use super::sim::Sim;
use std::collections::BTreeMap;

impl Sim {
    /// Events since the start, by name.
    pub fn vm_counters(&self) -> BTreeMap<&'static str, u64> {
        let (m, vm) = (self.manager_ref().inspect(), &self.kernel_ref().counters);
        let (c, r) = (m.counters(), m.reclaim_counters());
        let compact = m.compact_counters();
        let congestion = self.block.congestion();
        BTreeMap::from([
            ("pgalloc", c.pgalloc),
            ("pgfree", c.pgfree),
            ("alloc_failed", c.alloc_failed),
            ("network_frames_lost", self.kernel_ref().net.totals().lost),
            ("slow_path", c.slow_path),
            ("kswapd_wakeups", c.kswapd_wakeups),
            ("pgscan_kswapd", r.pgscan_kswapd),
            ("pgscan_direct", r.pgscan_direct),
            ("pgsteal_kswapd", r.pgsteal_kswapd),
            ("pgsteal_direct", r.pgsteal_direct),
            ("allocstall", r.allocstall),
            ("pgscan_direct_throttle", r.pgscan_direct_throttle),
            ("pageoutrun", r.pageoutrun),
            ("pgactivate", r.pgactivate),
            ("pgdeactivate", r.pgdeactivate),
            ("pgrefill", r.pgrefill),
            ("nr_vmscan_write", r.nr_vmscan_write),
            ("pgrotated", r.pgrotated),
            (
                "kswapd_low_wmark_hit_quickly",
                r.kswapd_low_wmark_hit_quickly,
            ),
            (
                "kswapd_high_wmark_hit_quickly",
                r.kswapd_high_wmark_hit_quickly,
            ),
            ("kswapd_skip_congestion_wait", r.kswapd_skip_congestion_wait),
            ("compact_stall", compact.compact_stall),
            ("compact_success", compact.compact_success),
            ("compact_fail", compact.compact_fail),
            ("compact_migrate_scanned", compact.compact_migrate_scanned),
            ("compact_free_scanned", compact.compact_free_scanned),
            ("compact_isolated", compact.compact_isolated),
            ("compact_daemon_wake", compact.compact_daemon_wake),
            (
                "compact_daemon_migrate_scanned",
                compact.compact_daemon_migrate_scanned,
            ),
            (
                "compact_daemon_free_scanned",
                compact.compact_daemon_free_scanned,
            ),
            ("pgmigrate_success", compact.pgmigrate_success),
            ("pgmigrate_fail", compact.pgmigrate_fail),
            ("thp_fault_alloc", vm.thp_fault_alloc),
            ("thp_fault_fallback", vm.thp_fault_fallback),
            ("thp_split_page", vm.thp_split_page),
            ("oom_kill", vm.oom_victims),
            ("out_of_memory", r.oom_kill),
            ("pgfault", vm.pgfault),
            ("pgmajfault", vm.pgmajfault),
            ("cow_copies", vm.cow_copies),
            ("pswpin", vm.pswpin),
            ("pswpout", vm.pswpout),
            // In KiB, as in `/proc/vmstat`.
            ("pgpgin", 4 * vm.pgpgin),
            ("pgpgout", 4 * vm.pgpgout),
            ("mempool_used", vm.mempool_used),
            ("read_errors", vm.read_errors),
            ("write_errors", vm.write_errors),
            ("slabs_scanned", vm.slabs_scanned),
            ("dirty_pause_ns", vm.dirty_pause),
            ("direct_reclaim_ns", vm.direct_reclaim),
            ("throttled_ns", vm.throttled),
            ("congestion_waits_async", congestion.waits[0]),
            ("congestion_waits_sync", congestion.waits[1]),
            ("congestion_timeouts_async", congestion.timeouts[0]),
            ("congestion_timeouts_sync", congestion.timeouts[1]),
            ("congestion_wait_async_ns", congestion.waited[0]),
            ("congestion_wait_sync_ns", congestion.waited[1]),
            ("context_switches", self.switches()),
        ])
    }
}
