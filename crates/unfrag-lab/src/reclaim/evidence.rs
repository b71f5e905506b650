//! What a recording says about the reclaim of its kernel: which pages it took, and how fast it was.

use crate::cause::{Causes, Do, Op};
use std::collections::BTreeMap;
use unfrag_linux::procfs::meminfo::MemInfo;
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::Recording;

/// How fast the recorded host's reclaim was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Runs of kswapd: when each began, and how many nanoseconds it took for a page that it freed, all
    /// that it looked at in vain included.
    pub runs: Vec<(u64, u64)>,
    /// Nanoseconds of kswapd for a page that it looked at, on average.
    pub ns_per_scanned: u64,
    /// Nanoseconds between two pages that the swap device took at its busiest.
    pub ns_per_written: u64,
    /// Places in swap, in pages.
    pub swap_pages: u64,
}

impl Pace {
    /// Of the run that was under way at a time, or the last before it.
    pub(super) fn ns_per_freed(&self, time: u64) -> u64 {
        let i = self.runs.partition_point(|r| r.0 <= time);
        self.runs.get(i.saturating_sub(1)).map_or(0, |r| r.1)
    }
}

/// What a recording says about the reclaim of its kernel.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// By operation: an allocation whose page reclaim took.
    pub(super) cold: Vec<bool>,
    /// Frames in use at the start that reclaim took.
    pub cold_at_start: Vec<u32>,
    /// How fast it was.
    pub pace: Pace,
    /// Runs of kswapd.
    pub wakes: u64,
    /// LRU pages that it freed.
    pub pages: u64,
}

/// Fewer pages than this say nothing about a run's pace.
const BATCH: u64 = 32;

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

impl Evidence {
    /// Reads a recording. `None` if its kernel reclaimed nothing.
    pub fn of(rec: &Recording, causes: &Causes) -> Option<Evidence> {
        let frames = causes.first.len();
        let mut cold = vec![false; causes.ops.len()];
        // Walking back: what the next event of a frame is.
        let mut taken = vec![false; frames];
        let mut underway = BTreeMap::new();
        for (i, op) in causes.ops.iter().enumerate().rev() {
            match op.act {
                Do::FreeGiven => taken[op.pfn as usize] = true,
                Do::Free | Do::FreeUnseen => {
                    for p in op.pfn..op.pfn + (1 << op.order) {
                        taken[p as usize] = false;
                    }
                }
                Do::Alloc | Do::AllocRaced => {
                    cold[i] = taken[op.pfn as usize];
                    for p in op.pfn..op.pfn + (1 << op.order) {
                        taken[p as usize] = false;
                    }
                }
                Do::Moved => {
                    taken[op.pfn as usize] = std::mem::take(&mut taken[op.other as usize]);
                }
                Do::Arrived => {
                    underway.insert(op.other, std::mem::take(&mut taken[op.pfn as usize]));
                }
                // What never arrived anywhere is held for good.
                Do::Left => {
                    taken[op.pfn as usize] = underway.remove(&op.other).unwrap_or(false);
                }
                _ => {}
            }
        }
        let cold_at_start = (0..taken.len() as u32)
            .filter(|&p| taken[p as usize])
            .collect();
        let given = |o: &&Op| o.act == Do::FreeGiven && o.order == 0;
        let pages = causes.ops.iter().filter(given).count() as u64;
        if pages == 0 {
            return None;
        }
        let mut runs = vec![];
        let (mut since, mut freed, mut wakes, mut busy) = (None, 0, 0, 0);
        for op in &causes.ops {
            match op.act {
                Do::ReclaimBegins => {
                    (since, freed) = (Some(op.time), 0);
                    wakes += 1;
                }
                Do::ReclaimEnds => {
                    let from = since.take().unwrap_or(op.time);
                    busy += op.time - from;
                    if freed >= BATCH {
                        runs.push((from, (op.time - from) / freed));
                    }
                }
                Do::FreeGiven if since.is_some() => freed += 1,
                _ => {}
            }
        }
        let swap_pages = rec
            .snapshots
            .iter()
            .find_map(|s| MemInfo::parse(s.file("meminfo")?).ok()?.get("SwapTotal"))
            .map_or(0, |kib| kib / 4);
        let written = steepest(rec, "pswpout");
        Some(Evidence {
            cold,
            cold_at_start,
            pace: Pace {
                runs,
                ns_per_scanned: busy / grown(rec, "pgscan_kswapd").unwrap_or(pages).max(1),
                ns_per_written: written.map_or(0, |(n, ns)| ns / n),
                swap_pages,
            },
            wakes,
            pages,
        })
    }
}
