//! Compaction, reclaim and faults for huge pages in the model, and on the recorded host over the same time.

use crate::replay::model::Sim;
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::Snapshot;

/// Counters of vmstat, by their names there.
type Counters = [(&'static str, u64); 15];

/// The counters of the model between the first and the last snapshot of a replay, and those of the recorded host.
#[derive(Clone, Default)]
pub(super) struct CompactionTotals<'s> {
    first: Option<(Counters, &'s Snapshot)>,
    last: Option<(Counters, &'s Snapshot)>,
}

impl<'s> CompactionTotals<'s> {
    /// The replay is at a snapshot.
    pub fn at_snapshot(&mut self, sim: &Sim, snap: &'s Snapshot) {
        let now = (of_model(sim), snap);
        if self.first.is_none() {
            self.first = Some(now);
        } else {
            self.last = Some(now);
        }
    }

    /// Each counter's growth in the model, and, with `_recorded` behind its name, on the recorded host where its
    /// vmstat has that counter.
    pub fn totals(&self) -> Vec<(String, u64)> {
        let (Some(first), Some(last)) = (&self.first, &self.last) else {
            return vec![];
        };
        let hosts = (of_host(first.1), of_host(last.1));
        let mut totals = vec![];
        for (was, is) in first.0.iter().zip(&last.0) {
            let name = is.0;
            totals.push((name.to_string(), is.1 - was.1));
            if let (Some(a), Some(b)) = &hosts
                && let (Some(a), Some(b)) = (by_zones(a, name), by_zones(b, name))
            {
                totals.push((format!("{name}_recorded"), b.saturating_sub(a)));
            }
        }
        totals
    }
}

/// Kinds of zones of which some kernels have counters of their own.
const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// A counter, or the sum of those of all zones; `None` if the kernel has neither.
fn by_zones(v: &VmStat, name: &str) -> Option<u64> {
    let of_zones = || {
        let all = ZONES.iter().filter_map(|z| v.get(&format!("{name}_{z}")));
        all.reduce(u64::saturating_add)
    };
    v.get(name).or_else(of_zones)
}

fn of_model(sim: &Sim) -> Counters {
    let c = sim.manager.inspect().compact_counters();
    let reclaim = sim.manager.inspect().reclaim_counters();
    let (faults, collapses) = (&sim.tally.huge_faults, &sim.tally.collapses);
    [
        ("thp_fault_alloc", faults.alloc),
        ("thp_fault_fallback", faults.fallback),
        ("thp_collapse_alloc", collapses.alloc),
        ("thp_collapse_alloc_failed", collapses.fallback),
        ("compact_stall", c.compact_stall),
        ("compact_success", c.compact_success),
        ("compact_fail", c.compact_fail),
        ("pgmigrate_success", c.pgmigrate_success),
        ("pgmigrate_fail", c.pgmigrate_fail),
        ("compact_migrate_scanned", c.compact_migrate_scanned),
        ("compact_free_scanned", c.compact_free_scanned),
        ("allocstall", reclaim.allocstall),
        ("pageoutrun", reclaim.pageoutrun),
        ("pgsteal_direct", reclaim.pgsteal_direct),
        ("pgsteal_kswapd", reclaim.pgsteal_kswapd),
    ]
}

fn of_host(snap: &Snapshot) -> Option<VmStat> {
    VmStat::parse(snap.file("vmstat")?).ok()
}
