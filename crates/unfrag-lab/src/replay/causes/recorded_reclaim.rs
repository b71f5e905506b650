//! The reclaim of the recorded kernel: which pages it took, and how fast it was.

use super::found::Causes;
use super::mechanism::reclaimed_by_generations;
use super::operations::{Action, Op};
use super::page_cache::PageCache;
use super::tasks::kswapd_of;
use crate::error::Result;
use crate::host::Host;
use crate::input::bits::Bits;
use crate::input::{EventSource, Input};
use std::collections::BTreeMap;
use unfrag_eras::NodeId;
use unfrag_linux::event::Roles;
use unfrag_linux::file::{Common, Wanted};
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::Recording;

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
    pub cold: Bits,
    /// Frames in use at the start that reclaim took.
    pub cold_at_start: Vec<u32>,
    /// What it could have taken beside that.
    pub cache: PageCache,
    /// Frames in use at the start that hold page cache beside those that reclaim took.
    pub cached_at_start: Vec<u32>,
    /// How fast it was.
    pub pace: Pace,
    /// Runs of kswapd.
    pub wakes: u64,
    /// LRU pages that it freed.
    pub pages: u64,
}

/// A run that freed fewer pages than this says nothing about how fast kswapd was.
const FEWEST_FREED: u64 = 32;

/// A run of a node's kswapd on the recorded host.
struct Run {
    node: NodeId,
    from: u64,
    to: u64,
    freed: u64,
}

impl Run {
    /// Nanoseconds that went by for a page that it looked at. All runs together looked at so many pages, and freed so many.
    fn ns_per_look(&self, (looked, freed): (u64, u64)) -> u64 {
        let looks =
            u128::from(self.freed) * u128::from(looked.max(freed)) / u128::from(freed.max(1));
        (u128::from(self.to - self.from) / looks.max(1)) as u64
    }
}

/// The runs of kswapd that operations show. What a kswapd frees belongs to its own run, what others free
/// in direct reclaim to all that are under way.
struct Runs<'t> {
    kswapd_of: &'t [Option<NodeId>],
    ended: Vec<Run>,
    under_way: BTreeMap<NodeId, Run>,
}

impl Runs<'_> {
    fn note(&mut self, op: &Op) {
        match op.action {
            Action::KswapdBegins { node } => {
                let run = Run {
                    node,
                    from: op.time,
                    to: op.time,
                    freed: 0,
                };
                self.under_way.insert(node, run);
            }
            Action::KswapdEnds { node } => {
                let ended = self.under_way.remove(&node);
                self.ended.extend(ended.map(|r| Run { to: op.time, ..r }));
            }
            Action::FreeReclaimed { .. } => {
                let by = self.kswapd_of.get(op.task as usize).copied().flatten();
                let several = self.under_way.len() > 1;
                for r in self.under_way.values_mut() {
                    let others = several && by.is_some_and(|node| node != r.node);
                    r.freed += u64::from(!others);
                }
            }
            _ => {}
        }
    }
}

/// For how long of each run kswapd had its CPU: the whole run, less each time between two events of other
/// tasks on that CPU without an event of kswapd in between.
fn own_times(
    events: &dyn EventSource,
    kswapd_of: &[Option<NodeId>],
    runs: &[Run],
) -> Result<Vec<u64>> {
    #[derive(Clone, Copy, Default)]
    struct Seen {
        its_cpu: Option<u16>,
        others_since: Option<u64>,
        lost: u64,
    }
    let mut seen = vec![Seen::default(); runs.len()];
    let first = runs.iter().map(|r| r.from).min().unwrap_or(u64::MAX);
    let last = runs.iter().map(|r| r.to).max().unwrap_or(0);
    if first <= last {
        let wanted = Wanted {
            common: &[Common::Cpu, Common::Task],
            field: &|_, _| false,
        };
        events.each(first..=last, wanted, &mut |batch| {
            let (Some(begin), Some(end)) = (batch.time.first(), batch.time.last()) else {
                return Ok(());
            };
            let touch = |(run, _): &(&Run, _)| run.from <= *end && run.to >= *begin;
            for (run, s) in runs.iter().zip(&mut seen).filter(touch) {
                let first = batch.time.partition_point(|&t| t < run.from);
                let end = batch.time.partition_point(|&t| t <= run.to);
                for i in first..end.max(first) {
                    let (time, cpu) = (batch.time[i], batch.cpu[i]);
                    if kswapd_of[batch.task[i] as usize] == Some(run.node) {
                        (s.its_cpu, s.others_since) = (Some(cpu), None);
                    } else if s.its_cpu == Some(cpu) {
                        s.lost += s.others_since.replace(time).map_or(0, |t| time - t);
                    }
                }
            }
            Ok(())
        })?;
    }
    let own = |(r, s): (&Run, &Seen)| r.to - r.from - s.lost;
    Ok(runs.iter().zip(&seen).map(own).collect())
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
    ///
    /// # Errors
    /// If its events or operations cannot be read.
    pub fn of<'r>(input: impl Into<Input<'r>>, causes: &Causes) -> Result<RecordedReclaim> {
        let input = input.into();
        let rec = input.recording;
        let kswapd_of: Vec<Option<NodeId>> = Roles::of(rec).all().iter().map(kswapd_of).collect();
        let mut runs = Runs {
            kswapd_of: &kswapd_of,
            ended: vec![],
            under_way: BTreeMap::new(),
        };
        let mut pages = 0;
        causes.ops.each(0..causes.ops.len(), |_, op| {
            runs.note(op);
            pages += u64::from(matches!(op.action, Action::FreeReclaimed { order: 0, .. }));
        })?;
        let (cold, cold_at_start) = cold(causes)?;
        let cache = PageCache::of(&input, &causes.ops, causes.first.len())?;
        let runs = runs.ended;
        let own = own_times(input.events, &kswapd_of, &runs)?;
        let runs: Vec<(Run, u64)> = runs.into_iter().zip(own).collect();
        let busy: u64 = runs.iter().map(|r| r.1).sum();
        let ns_per_scanned = busy / grown(rec, "pgscan_kswapd").unwrap_or(pages).max(1);
        let swap_pages = rec
            .snapshots
            .iter()
            .filter(|s| s.file("meminfo").is_some())
            .find_map(|s| Host::of_snapshot(s).meminfo_bytes("SwapTotal"))
            .map_or(0, |bytes| bytes >> 12);
        let written = steepest(rec, "pswpout");
        let mut paces: BTreeMap<NodeId, Vec<(u64, u64)>> = BTreeMap::new();
        let looked = grown(rec, "pgscan_kswapd").zip(grown(rec, "pgsteal_kswapd"));
        let generations = reclaimed_by_generations(rec.snapshots.iter()) == Some(true);
        for (r, own) in runs.iter().filter(|(r, _)| r.freed >= FEWEST_FREED) {
            // In generations a run is a burst, or it is mostly spent on caches: a page takes from a ninth to twice the
            // average. On lists the share of its CPU says more than how many pages a run happened to free.
            let ns = match generations {
                true => r.ns_per_look(looked.unwrap_or((1, 1))),
                false => ns_per_scanned * (r.to - r.from) / own.max(&1),
            };
            paces.entry(r.node).or_default().push((r.from, ns));
        }
        Ok(RecordedReclaim {
            cold,
            cold_at_start,
            cache,
            cached_at_start: vec![],
            pace: Pace {
                ns_per_scanned,
                runs: paces,
                ns_per_written: written.map_or(0, |(n, ns)| ns / n),
                swap_pages,
            },
            wakes: runs.len() as u64,
            pages,
        })
    }
}

/// By operation, whether it allocates a page that reclaim took later; and the frames in use at the start that it took.
fn cold(causes: &Causes) -> Result<(Bits, Vec<u32>)> {
    let mut cold = Bits::zeros(causes.ops.len());
    // Walking back: what the next event of a frame is.
    let mut taken = vec![false; causes.first.len()];
    let mut underway = BTreeMap::new();
    causes.ops.each_back(|i, op| {
        if let Some((block, _)) = op.allocated() {
            if taken[block.pfn as usize] {
                cold.set(i);
            }
            taken[block.indices()].fill(false);
            return;
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
    })?;
    let at_start = (0..taken.len() as u32).filter(|&p| taken[p as usize]);
    Ok((cold, at_start.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::recording::Events;

    #[test]
    fn each_run_has_its_own_pace() {
        let run = |ms: u64, freed| Run {
            node: NodeId(0),
            from: 5,
            to: 5 + ms * 1_000_000,
            freed,
        };
        // A burst, and a long run that others held up; three pages were looked at for two that were freed.
        assert_eq!(run(116, 2535).ns_per_look((1, 1)), 45_759);
        assert_eq!(run(26_653, 35_289).ns_per_look((1, 1)), 755_277);
        assert_eq!(run(116, 2535).ns_per_look((300, 200)), 30_510);
        // Counters that contradict each other, or say nothing.
        assert_eq!(run(116, 2535).ns_per_look((1, 2)), 45_759);
        assert_eq!(run(116, 0).ns_per_look((0, 0)), 116_000_000);
    }

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
        let kswapd_of = [None, Some(NodeId(0)), None];
        let own = |from, to| {
            let run = Run {
                node: NodeId(0),
                from,
                to,
                freed: 0,
            };
            own_times(&events, &kswapd_of, &[run]).unwrap()[0]
        };
        assert_eq!(own(0, 45), 45 - 7);
        assert_eq!(own(45, 90), 45 - 10);
        assert_eq!(own(45, 85), 40, "one event of another says nothing yet");
    }
}
