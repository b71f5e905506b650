//! The counters of vmstat that may be in a paste.
//!
//! Invariant: each name is one that kernels have, whole: what follows a known beginning could be anybody's.

/// Zones as the counters name them.
const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// Counters of each zone, before its name.
const OF_ZONES: [&str; 8] = [
    "allocstall",
    "pgalloc",
    "pgskip",
    "pgscan_direct",
    "pgscan_kswapd",
    "pgsteal",
    "pgsteal_direct",
    "pgsteal_kswapd",
];

/// Counters that tell of stalls, failures and compaction.
const WHOLE: [&str; 69] = [
    "allocstall",
    "compact_stall",
    "compact_fail",
    "compact_success",
    "compact_isolated",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_daemon_wake",
    "compact_daemon_migrate_scanned",
    "compact_daemon_free_scanned",
    "compact_blocks_moved",
    "compact_pages_moved",
    "compact_pagemigrate_failed",
    "pgmigrate_success",
    "pgmigrate_fail",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_fault_fallback_charge",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_file_alloc",
    "thp_file_fallback",
    "thp_file_fallback_charge",
    "thp_file_mapped",
    "thp_split",
    "thp_split_page",
    "thp_split_page_failed",
    "thp_split_pmd",
    "thp_split_pud",
    "thp_deferred_split_page",
    "thp_underused_split_page",
    "thp_scan_exceed_none_pte",
    "thp_scan_exceed_swap_pte",
    "thp_scan_exceed_share_pte",
    "thp_zero_page_alloc",
    "thp_zero_page_alloc_failed",
    "thp_swpout",
    "thp_swpout_fallback",
    "thp_migration_success",
    "thp_migration_fail",
    "thp_migration_split",
    "htlb_buddy_alloc_success",
    "htlb_buddy_alloc_fail",
    "pgscan_direct",
    "pgscan_direct_throttle",
    "pgscan_kswapd",
    "pgsteal_direct",
    "pgsteal_kswapd",
    "oom_kill",
    "pgrotated",
    "unevictable_pgs_culled",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_free_pages",
    "nr_free_pages_blocks",
    "nr_free_cma",
    "nr_slab_reclaimable",
    "nr_slab_unreclaimable",
    "nr_unstable",
    "kswapd_steal",
    "kswapd_inodesteal",
    "kswapd_low_wmark_hit_quickly",
    "kswapd_high_wmark_hit_quickly",
    "kswapd_skip_congestion_wait",
    "pageoutrun",
    "drop_pagecache",
    "drop_slab",
    "slabs_scanned",
    "zone_reclaim_failed",
];

/// Whether a counter of vmstat may be told.
pub(super) fn is_known(name: &str) -> bool {
    let of_zone = |start: &&str| {
        let zone = name.strip_prefix(*start).and_then(|z| z.strip_prefix('_'));
        zone.is_some_and(|z| ZONES.contains(&z))
    };
    WHOLE.contains(&name) || OF_ZONES.iter().any(of_zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_beginning_is_no_known_name() {
        for name in [
            "compact_stall",
            "allocstall",
            "allocstall_dma32",
            "pgalloc_movable",
            "thp_fault_fallback",
            "pgsteal_kswapd_high",
        ] {
            assert!(is_known(name), "{name}");
        }
        for name in [
            "",
            "compact_",
            "compact_alice",
            "compact_stall_4711",
            "allocstall_",
            "allocstall_web3",
            "pgalloc_dma4711",
            "thp_31337",
            "oom_kill_alice",
            "nr_slab_alice",
            "nr_foll_pin_4711",
            "Compact_stall",
            " compact_stall",
        ] {
            assert!(!is_known(name), "{name}");
        }
    }
}
