//! The reclaim of the recorded kernel: which pages it took, and how fast it was.

use super::operations::{Action, Causes, Op};
use super::tasks::kswapd_of;
use std::collections::BTreeMap;
use unfrag::NodeId;
use unfrag_linux::procfs::meminfo::MemInfo;
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::{Events, Recording};

/// The recorded pace of kswapd, in thousandths of itself.
pub(crate) const AS_RECORDED: u32 = 1000;

/// How fast the recorded host's reclaim was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Nanoseconds of its CPU that kswapd took for a page that it looked at, on average.
    pub ns_per_scanned: u64,
    /// Runs of each node's kswapd: when each began, and how many nanoseconds went by for a page that it
    /// looked at, the time included in which others had its CPU.
    pub runs: BTreeMap<NodeId, Vec<(u64, u64)>>,
    /// Nanoseconds between two pages that the swap device took at its busiest.
    pub ns_per_written: u64,
    /// Places in swap, in pages.
    pub swap_pages: u64,
}

impl Pace {
    /// Nanoseconds for a page that a node's kswapd looked at, in its run at a time, or the last before it.
    pub fn ns_per_look(&self, node: NodeId, time: u64) -> u64 {
        let runs = self.runs.get(&node).map_or(&[][..], |runs| runs);
        let i = runs.partition_point(|r| r.0 <= time);
        runs.get(i.saturating_sub(1))
            .map_or(self.ns_per_scanned, |r| r.1)
    }
}

/// The reclaim of the recorded kernel.
#[derive(Clone, Debug, Default)]
pub struct RecordedReclaim {
    /// By operation: whether it allocates a page that reclaim took later.
    pub cold: Vec<bool>,
    /// Frames in use at the start that reclaim took.
    pub cold_at_start: Vec<u32>,
    /// How fast it was.
    pub pace: Pace,
    /// Runs of kswapd.
    pub wakes: u64,
    /// LRU pages that it freed.
    pub pages: u64,
}

/// A run that freed fewer pages than this says nothing about the share of its CPU that kswapd had.
const FEWEST_FREED: u64 = 32;

/// A run of a node's kswapd on the recorded host.
struct Run {
    node: NodeId,
    from: u64,
    to: u64,
    freed: u64,
}

/// The runs of kswapd that operations show. What a kswapd frees belongs to its own run, what others free
/// in direct reclaim to all that are under way.
fn runs(ops: &[Op], kswapd_of: &[Option<NodeId>]) -> Vec<Run> {
    let mut runs = vec![];
    let mut under_way: BTreeMap<NodeId, Run> = BTreeMap::new();
    for op in ops {
        match op.action {
            Action::KswapdBegins { node } => {
                let run = Run {
                    node,
                    from: op.time,
                    to: op.time,
                    freed: 0,
                };
                under_way.insert(node, run);
            }
            Action::KswapdEnds { node } => {
                let ended = under_way.remove(&node);
                runs.extend(ended.map(|r| Run { to: op.time, ..r }));
            }
            Action::FreeReclaimed { .. } => {
                let by = kswapd_of.get(op.task as usize).copied().flatten();
                let several = under_way.len() > 1;
                for r in under_way.values_mut() {
                    let others = several && by.is_some_and(|node| node != r.node);
                    r.freed += u64::from(!others);
                }
            }
            _ => {}
        }
    }
    runs
}

/// For how long of a run kswapd had its CPU: the whole run, less each time between two events of other
/// tasks on that CPU without an event of kswapd in between.
pub(super) fn own_time(events: &Events, is_kswapd: &[bool], from: u64, to: u64) -> u64 {
    let first = events.time.partition_point(|&t| t < from);
    let (mut its_cpu, mut others_since, mut lost) = (None, None, 0);
    for i in (first..events.time.len()).take_while(|&i| events.time[i] <= to) {
        let (time, cpu) = (events.time[i], events.cpu[i]);
        if is_kswapd[events.task[i] as usize] {
            (its_cpu, others_since) = (Some(cpu), None);
        } else if its_cpu == Some(cpu) {
            lost += others_since.replace(time).map_or(0, |t| time - t);
        }
    }
    to - from - lost
}

/// How much a counter of vmstat grew in a recording.
fn grown(rec: &Recording, counter: &str) -> Option<u64> {
    let values: Vec<u64> = rec
        .snapshots
        .iter()
        .filter_map(|s| VmStat::parse(s.file("vmstat")?).ok()?.get(counter))
        .collect();
    Some(values.iter().max()? - values.iter().min()?).filter(|&n| n > 0)
}

/// Largest change of a counter of vmstat from one snapshot to the next, with the time between them.
fn steepest(rec: &Recording, counter: &str) -> Option<(u64, u64)> {
    let values: Vec<(u64, u64)> = rec
        .snapshots
        .iter()
        .filter_map(|s| {
            let vmstat = VmStat::parse(s.file("vmstat")?).ok()?;
            Some((s.time_of("vmstat")?, vmstat.get(counter)?))
        })
        .collect();
    values
        .windows(2)
        .map(|w| (w[1].1.saturating_sub(w[0].1), w[1].0.saturating_sub(w[0].0)))
        .filter(|&(n, ns)| n > 0 && ns > 0)
        .max_by_key(|&(n, ns)| u128::from(n) * 1_000_000_000 / u128::from(ns))
}

impl RecordedReclaim {
    /// Reads a recording. Its kernel may have reclaimed nothing: then no page is cold.
    pub fn of(rec: &Recording, causes: &Causes) -> RecordedReclaim {
        let frames = causes.first.len();
        let mut cold = vec![false; causes.ops.len()];
        // Walking back: what the next event of a frame is.
        let mut taken = vec![false; frames];
        let mut underway = BTreeMap::new();
        for (i, op) in causes.ops.iter().enumerate().rev() {
            if let Some((block, _)) = op.allocated() {
                cold[i] = taken[block.pfn as usize];
                taken[block.indices()].fill(false);
                continue;
            }
            match op.action {
                Action::FreeReclaimed { pfn, .. } => taken[pfn.get() as usize] = true,
                Action::Moved { pfn, to, .. } => {
                    taken[pfn.get() as usize] = std::mem::take(&mut taken[to.get() as usize]);
                }
                Action::MovedTo { pfn, number } => {
                    let known = std::mem::take(&mut taken[pfn.get() as usize]);
                    underway.insert(number.get(), known);
                }
                // A page whose new frame the trace never names is in use to the end.
                Action::MovedAway { pfn, number, .. } => {
                    taken[pfn.get() as usize] = underway.remove(&number.get()).unwrap_or(false);
                }
                _ => {
                    if let Some(block) = op.freed() {
                        taken[block.indices()].fill(false);
                    }
                }
            }
        }
        let cold_at_start = (0..taken.len() as u32)
            .filter(|&p| taken[p as usize])
            .collect();
        let given = |o: &&Op| matches!(o.action, Action::FreeReclaimed { order: 0, .. });
        let pages = causes.ops.iter().filter(given).count() as u64;
        let kswapd_of: Vec<Option<NodeId>> = rec.tasks.iter().map(kswapd_of).collect();
        let runs: Vec<(Run, u64)> = runs(&causes.ops, &kswapd_of)
            .into_iter()
            .map(|r| {
                let its: Vec<bool> = kswapd_of.iter().map(|k| *k == Some(r.node)).collect();
                let own = own_time(&rec.events, &its, r.from, r.to);
                (r, own)
            })
            .collect();
        let busy: u64 = runs.iter().map(|r| r.1).sum();
        let ns_per_scanned = busy / grown(rec, "pgscan_kswapd").unwrap_or(pages).max(1);
        let swap_pages = rec
            .snapshots
            .iter()
            .find_map(|s| MemInfo::parse(s.file("meminfo")?).ok()?.get("SwapTotal"))
            .map_or(0, |kib| kib / 4);
        let written = steepest(rec, "pswpout");
        let mut paces: BTreeMap<NodeId, Vec<(u64, u64)>> = BTreeMap::new();
        for (r, own) in runs.iter().filter(|(r, _)| r.freed >= FEWEST_FREED) {
            let ns = ns_per_scanned * (r.to - r.from) / own.max(&1);
            paces.entry(r.node).or_default().push((r.from, ns));
        }
        RecordedReclaim {
            cold,
            cold_at_start,
            pace: Pace {
                ns_per_scanned,
                runs: paces,
                ns_per_written: written.map_or(0, |(n, ns)| ns / n),
                swap_pages,
            },
            wakes: runs.len() as u64,
            pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_between_two_events_of_other_tasks_is_not_kswapds() {
        // Task 1 is kswapd. It goes from CPU 0 to CPU 1 at 60.
        let seen = [
            (0, 0, 1),
            (5, 0, 1),
            (10, 0, 0),
            (12, 1, 0),
            (14, 0, 2),
            (17, 0, 0),
            (20, 0, 1),
            (25, 1, 0),
            (30, 1, 0),
            (40, 0, 2),
            (45, 0, 1),
            (60, 1, 1),
            (70, 0, 0),
            (75, 0, 0),
            (80, 1, 0),
            (90, 1, 0),
        ];
        let events = Events {
            time: seen.iter().map(|s| s.0).collect(),
            cpu: seen.iter().map(|s| s.1).collect(),
            task: seen.iter().map(|s| s.2).collect(),
            ..Events::default()
        };
        let own = |from, to| own_time(&events, &[false, true, false], from, to);
        assert_eq!(own(0, 45), 45 - 7);
        assert_eq!(own(45, 90), 45 - 10);
        assert_eq!(own(45, 85), 40, "one event of another says nothing yet");
    }
}
