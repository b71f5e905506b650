//! The cost of fragmentation so far: stalls, failures and the work of compaction, from vmstat.
//!
//! Invariant: a counter that the kernel does not have is left out, never shown as 0. A counter that is split by zone is
//! the sum over the zones.

use super::evidence::Evidence;
use serde::Serialize;
use unfrag_linux::procfs::VmStat;

/// A counter of stalls, failures or work, and its rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Work {
    /// Its name in vmstat; without the zone where it is split by zone.
    pub counter: &'static str,
    /// In words.
    pub what: &'static str,
    /// Since boot.
    pub total: u64,
    /// A second, over the time that the host was watched; `null` with only one reading.
    pub per_second: Option<f64>,
    /// A second, over the time since boot; `null` if that is not known.
    pub per_second_since_boot: Option<f64>,
}

/// The counters: name here, names in vmstat (alternatives by kernel; `*` stands for the zone), and what is counted.
pub const COUNTERS: [(&str, &[&str], &str); 15] = [
    (
        "allocstall",
        &["allocstall", "allocstall_*"],
        "requests that had to reclaim first",
    ),
    (
        "compact_stall",
        &["compact_stall"],
        "requests that had to compact first",
    ),
    ("compact_fail", &["compact_fail"], "of these, in vain"),
    (
        "compact_success",
        &["compact_success"],
        "of these, with success",
    ),
    (
        "compact_daemon_wake",
        &["compact_daemon_wake"],
        "times that kcompactd was woken",
    ),
    (
        "compact_migrate_scanned",
        &["compact_migrate_scanned"],
        "pages scanned for something to move",
    ),
    (
        "compact_free_scanned",
        &["compact_free_scanned"],
        "pages scanned for somewhere to move it",
    ),
    (
        "pgmigrate_success",
        &["pgmigrate_success", "compact_pages_moved"],
        "pages moved",
    ),
    (
        "pgmigrate_fail",
        &["pgmigrate_fail", "compact_pagemigrate_failed"],
        "pages that could not be moved",
    ),
    (
        "thp_fault_alloc",
        &["thp_fault_alloc"],
        "transparent huge pages given at a fault",
    ),
    (
        "thp_fault_fallback",
        &["thp_fault_fallback"],
        "faults that got small pages instead",
    ),
    (
        "htlb_buddy_alloc_fail",
        &["htlb_buddy_alloc_fail"],
        "pages that the hugetlb pool did not get",
    ),
    (
        "pgscan_direct",
        &["pgscan_direct", "pgscan_direct_*"],
        "pages scanned by direct reclaim",
    ),
    (
        "pgscan_kswapd",
        &["pgscan_kswapd", "pgscan_kswapd_*"],
        "pages scanned by kswapd",
    ),
    (
        "oom_kill",
        &["oom_kill"],
        "processes ended for lack of memory",
    ),
];

/// The value of a counter in one reading, by the first of its names that the kernel has.
fn value(stat: &VmStat, names: &[&str]) -> Option<u64> {
    let whole = names
        .iter()
        .filter(|n| !n.ends_with('*'))
        .find_map(|n| stat.get(n));
    whole.or_else(|| {
        let prefix = names.iter().find_map(|n| n.strip_suffix('*'))?;
        let zones = ["dma", "dma32", "normal", "high", "movable", "device"];
        let parts: Vec<u64> = zones
            .iter()
            .filter_map(|z| stat.get(&format!("{prefix}{z}")))
            .collect();
        // A text may end within them, or leave some out: each zone that has any such counter has all of them.
        let has = |z: &&&str| {
            let families = ["pgalloc_", "pgskip_", "allocstall_", prefix];
            families
                .iter()
                .any(|f| stat.get(&format!("{f}{z}")).is_some())
        };
        let of_host = zones.iter().filter(has).count();
        (of_host == parts.len() && stat.get(&format!("{prefix}movable")).is_some())
            .then(|| parts.iter().fold(0, |sum: u64, &n| sum.saturating_add(n)))
    })
}

/// The kernel's own name of one of [`COUNTERS`] in a reading, which older kernels have another for; of a counter that is
/// split by zone, without the zone.
pub fn kernels_name(stat: &VmStat, counter: &'static str) -> &'static str {
    let of_counter = COUNTERS.iter().filter(|(name, ..)| *name == counter);
    let names = of_counter.flat_map(|(_, names, _)| names.iter().copied());
    let mut told = names.filter(|n| !n.ends_with('*') && stat.get(n).is_some());
    told.next().unwrap_or(counter)
}

/// The value of one of [`COUNTERS`] in a reading, by its name here.
pub(super) fn counted(stat: &VmStat, counter: &str) -> Option<u64> {
    let (_, names, _) = COUNTERS.iter().find(|(name, ..)| *name == counter)?;
    value(stat, names)
}

/// Every counter that the host's kernel has.
pub fn work(e: &Evidence) -> Vec<Work> {
    let Some(stat) = &e.vmstat else { return vec![] };
    let before = e.first();
    let one = |(counter, names, what): &(&'static str, &[&str], &'static str)| {
        let total = value(stat, names)?;
        let per_second = before.and_then(|(before, seconds)| {
            Some(total.checked_sub(value(before, names)?)? as f64 / seconds)
        });
        Some(Work {
            counter,
            what,
            total,
            per_second,
            per_second_since_boot: e.uptime.filter(|&s| s > 0.0).map(|s| total as f64 / s),
        })
    };
    COUNTERS.iter().filter_map(one).collect()
}

/// The share that `part` is of itself and the `rest`.
pub(super) fn share_of(part: u64, rest: u64) -> f64 {
    part as f64 / part.saturating_add(rest).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(now: &str, before: Option<(&str, f64)>) -> Evidence {
        let mut e = Evidence {
            vmstat: Some(VmStat::parse(now.as_bytes()).unwrap()),
            uptime: Some(100.0),
            ..Evidence::default()
        };
        if let Some((text, seconds)) = before {
            e.since(VmStat::parse(text.as_bytes()).unwrap(), seconds);
        }
        e
    }

    #[test]
    fn counters_by_zone_are_summed() {
        let now = "allocstall_dma 0\nallocstall_normal 30\nallocstall_movable 20\n";
        let before = "allocstall_dma 0\nallocstall_normal 10\nallocstall_movable 20\n";
        let w = work(&evidence(now, Some((before, 10.0))));
        assert_eq!(w.len(), 1, "what the kernel does not count is left out");
        assert_eq!((w[0].total, w[0].per_second), (50, Some(2.0)));
        assert_eq!(w[0].per_second_since_boot, Some(0.5));
    }

    #[test]
    fn a_sum_over_zones_needs_all_of_them() {
        for part in [
            "allocstall_dma 0\n",
            "allocstall_dma 0\nallocstall_normal 30\n",
        ] {
            assert_eq!(work(&evidence(part, None)), [], "{part}");
        }
    }

    #[test]
    fn names_of_old_kernels() {
        let old = "allocstall 7\ncompact_pages_moved 5\ncompact_blocks_moved 3\n";
        let w = work(&evidence(old, None));
        let names: Vec<_> = w.iter().map(|w| (w.counter, w.total)).collect();
        assert_eq!(names, [("allocstall", 7), ("pgmigrate_success", 5)]);
        let stat = VmStat::parse(old.as_bytes()).unwrap();
        let own = |counter| kernels_name(&stat, counter);
        assert_eq!(own("pgmigrate_success"), "compact_pages_moved");
        assert_eq!(own("allocstall"), "allocstall");
        assert_eq!(own("pgscan_direct"), "pgscan_direct");
    }

    #[test]
    fn a_decreased_counter_has_no_rate() {
        let w = work(&evidence(
            "compact_stall 5\n",
            Some(("compact_stall 9\n", 1.0)),
        ));
        assert_eq!(w[0].per_second, None);
    }
}
