//! One answer from several replays that differ in what is not known (`Chance`).
//!
//! Under pressure, free memory depends on when kswapd ran last. Its pace is known for the recorded runs
//! only, not for those that the model makes, so a single replay is one of many possible ones. An ensemble
//! gives the median of several, which has the smallest sum of absolute errors, and their range.
//!
//! Invariant: the members, their order and what is pooled of them do not depend on the number of
//! threads. Each number is the median of its own; numbers that add up in a member need not do so here.

use super::chance::Chance;
use super::member::Member;
use super::report::{Ensemble, Failure, Sample, Spread, ZoneSample};
use super::watch::Watch;
use crate::error::{Asked, Error, Result};
use crate::parallel::each;
use crate::replay::causes::AS_RECORDED;
use crate::replay::model::ReplayHost;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use unfrag_eras::Manager;
use unfrag_linux::recording::Snapshot;

/// Members, if nothing else is asked for.
pub const MEMBERS: u32 = 21;
/// The most that may be asked for.
pub const MOST_MEMBERS: u32 = 101;

/// Whether an ensemble can have so many members.
///
/// # Errors
/// If it has no middle, or too many.
pub fn check(members: u32) -> Result<()> {
    if members % 2 == 1 && members <= MOST_MEMBERS {
        return Ok(());
    }
    Err(Error::option(
        Asked::Members,
        format!("an ensemble cannot have {members} members"),
    )
    .help(format!("ask for an odd number from 1 to {MOST_MEMBERS}")))
}

/// The least and the largest pace, of the recorded one.
pub(crate) fn range(chances: &[Chance]) -> [f64; 2] {
    let of = |p: u32| f64::from(p) / f64::from(AS_RECORDED);
    ends(chances.iter().map(|c| c.pace)).map_or([1.0; 2], |e| e.map(of))
}

impl Ensemble {
    /// The note on an ensemble in a report.
    pub(crate) fn sentence(&self) -> String {
        let [from, to] = self.pace;
        let each = format!(
            "Each number is the median of {} replays (--members) that differ in what nobody recorded: a page takes kswapd {from} \
             to {to} times what it took on the host, and they differ in how long page cache in use is spared, what else can be \
             reclaimed, how soon daemons run, and the order of free blocks that the trace does not touch. The map is that of one.",
            self.members
        );
        match self.free_pages_skill {
            Some([least, _, most]) => format!(
                "{each} The error of a single one in free pages is {:.2} to {:.2} times that of only counting pages.",
                1.0 - most,
                1.0 - least
            ),
            None => each,
        }
    }
}

/// A replay of one of several kernels.
pub(crate) struct Job {
    /// Number of the kernel.
    pub kernel: usize,
    /// What it chooses where nothing is known.
    pub chance: Chance,
    /// Whether it is the first member of its ensemble, whose map is kept.
    pub is_first: bool,
    /// Whether its snapshots are watched.
    pub watched: bool,
}

impl Job {
    /// The members of a kernel's ensemble. The snapshots of the first may be watched.
    pub(crate) fn ensemble(
        kernel: usize,
        chances: &[Chance],
        watched: bool,
    ) -> impl Iterator<Item = Job> {
        chances.iter().enumerate().map(move |(i, &chance)| Job {
            kernel,
            chance,
            is_first: i == 0,
            watched: watched && i == 0,
        })
    }
}

/// Does the jobs, each by `one`, as many at a time as `threads` says, and gives their results in order. The caller's
/// thread does those that are watched, and reports the progress of all.
pub(crate) fn run<F>(
    jobs: &[Job],
    threads: usize,
    one: F,
    watch: &mut dyn Watch,
) -> Result<Vec<Member>>
where
    F: Fn(&Job, &mut dyn Watch) -> Result<Member> + Sync,
{
    let done = AtomicU64::new(0);
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    let watches = watch.wants_snapshots();
    order.sort_by_key(|&i| !(watches && jobs[i].watched));
    let watched = order
        .iter()
        .filter(|&&i| watches && jobs[i].watched)
        .count();
    let member = |i: usize, watch: Option<&mut dyn Watch>| {
        let job = &jobs[order[i]];
        let mut shared = MemberWatch {
            watch,
            watched: job.watched,
            done: &done,
            reported: 0,
            jobs: jobs.len() as u64,
        };
        let mut member = one(job, &mut shared);
        if let (Ok(m), false) = (&mut member, job.is_first) {
            m.block_map = None;
        }
        member
    };
    let other = |i| member(i, None);
    let all = each(jobs.len(), watched, threads, other, |i| {
        member(i, Some(&mut *watch))
    });
    let mut in_order: Vec<_> = order.iter().copied().zip(all).collect();
    in_order.sort_by_key(|(i, _)| *i);
    in_order.into_iter().map(|(_, member)| member).collect()
}

/// Passes on what the watch of the ensemble needs of one member.
struct MemberWatch<'a, 'w> {
    watch: Option<&'a mut (dyn Watch + 'w)>,
    watched: bool,
    /// Operations that all members have done.
    done: &'a AtomicU64,
    /// Operations of this member that are in `done`.
    reported: u64,
    jobs: u64,
}

impl Watch for MemberWatch<'_, '_> {
    fn progress(&mut self, done: u64, total: u64) {
        let more = done - std::mem::replace(&mut self.reported, done);
        let all = self.done.fetch_add(more, Ordering::Relaxed) + more;
        if let Some(w) = &mut self.watch {
            w.progress(all, total * self.jobs);
        }
    }

    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, manager: &Manager<'_, ReplayHost>) {
        if let Some(w) = &mut self.watch
            && self.watched
        {
            w.at_snapshot(kernel, snap, manager);
        }
    }
}

/// The median; the lower of the two in the middle.
fn median<T: Copy + PartialOrd>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut all: Vec<T> = values.collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    all.get(all.len().saturating_sub(1) / 2).copied()
}

/// The least and the largest.
fn ends<T: Copy + PartialOrd>(mut values: impl Iterator<Item = T>) -> Option<[T; 2]> {
    let first = values.next()?;
    Some(values.fold([first; 2], |[least, most], v| {
        [
            if v < least { v } else { least },
            if v > most { v } else { most },
        ]
    }))
}

/// States at the same moments, pooled.
pub(crate) fn samples(members: &[Member]) -> Vec<Sample> {
    let Some(first) = members.first() else {
        return vec![];
    };
    let pooled = |i: usize, s: &Sample| Sample {
        name: s.name.clone(),
        seconds: s.seconds,
        zones: (0..s.zones.len())
            .map(|z| {
                let all: Vec<_> = members.iter().map(|m| &m.samples[i].zones[z]).collect();
                zone(&all)
            })
            .collect(),
    };
    let all = first.samples.iter().enumerate();
    all.map(|(i, s)| pooled(i, s)).collect()
}

/// Pageblocks of a type.
fn blocks<'z>(all: &'z [&ZoneSample], name: &'z str) -> impl Iterator<Item = u64> + 'z {
    let of = move |z: &&ZoneSample| z.pageblocks.get(name).copied().unwrap_or(0);
    all.iter().map(of)
}

/// Unusable indices at an order.
fn indices<'z>(all: &'z [&ZoneSample], order: &'z str) -> impl Iterator<Item = f64> + 'z {
    let of = move |z: &&ZoneSample| z.unusable_index.get(order).copied();
    all.iter().filter_map(of)
}

/// One zone of several members, at least one.
fn zone(all: &[&ZoneSample]) -> ZoneSample {
    let pages = |of: fn(&ZoneSample) -> u64| median(all.iter().copied().map(of)).unwrap_or(0);
    let known = |of: fn(&ZoneSample) -> Option<u64>| median(all.iter().copied().filter_map(of));
    let first = all[0];
    let names: BTreeSet<&String> = all.iter().flat_map(|z| z.pageblocks.keys()).collect();
    let orders = || first.unusable_index.keys();
    ZoneSample {
        node: first.node,
        zone: first.zone.clone(),
        managed_pages: first.managed_pages,
        free_pages: pages(|z| z.free_pages),
        pcp_pages: known(|z| z.pcp_pages),
        free_blocks: (0..first.free_blocks.len())
            .filter_map(|o| median(all.iter().map(|z| z.free_blocks[o])))
            .collect(),
        unusable_index: orders()
            .filter_map(|o| Some((o.clone(), median(indices(all, o))?)))
            .collect(),
        free_huge_blocks: pages(|z| z.free_huge_blocks),
        pageblocks: names
            .into_iter()
            .filter_map(|n| Some((n.clone(), median(blocks(all, n))?)))
            .collect(),
        mixed_pageblocks: known(|z| z.mixed_pageblocks),
        spread: Some(Spread {
            free_pages: ends(all.iter().map(|z| z.free_pages)).unwrap_or_default(),
            free_huge_blocks: ends(all.iter().map(|z| z.free_huge_blocks)).unwrap_or_default(),
            unusable_index: orders()
                .filter_map(|o| Some((o.clone(), ends(indices(all, o))?)))
                .collect(),
        }),
    }
}

/// Totals, pooled.
pub(crate) fn totals(members: &[Member]) -> BTreeMap<String, Option<u64>> {
    let names: BTreeSet<&String> = members.iter().flat_map(|m| m.totals.keys()).collect();
    let of = |n: &String| median(members.iter().filter_map(|m| m.totals.get(n).copied()?));
    names.into_iter().map(|n| (n.clone(), of(n))).collect()
}

/// Failures by order and mask, pooled; those that most members do not have are left out.
pub(crate) fn failures(members: &[Member]) -> Vec<Failure> {
    let kinds = Failure::by_kind(members.iter().map(|m| &m.failures[..]));
    let pooled = kinds.into_iter().map(|((order, gfp), counts)| Failure {
        order,
        gfp: gfp.into(),
        count: median(counts.into_iter()).unwrap_or(0),
    });
    pooled.filter(|f| f.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::super::report::FrameMatch;
    use super::super::watch::NoWatch;
    use super::*;

    fn member(free: u64, failed: u64) -> Member {
        let zone = ZoneSample {
            node: 0,
            zone: "DMA32".into(),
            managed_pages: 1000,
            free_pages: free,
            pcp_pages: Some(free / 10),
            free_blocks: vec![free - 2, 1],
            unusable_index: BTreeMap::from([("9".into(), free as f64 / 1000.0)]),
            free_huge_blocks: free % 7,
            pageblocks: BTreeMap::from([("Movable".into(), free / 100)]),
            mixed_pageblocks: None,
            spread: None,
        };
        Member {
            samples: vec![Sample {
                name: "s".into(),
                seconds: 1.0,
                zones: vec![zone],
            }],
            totals: BTreeMap::from([("frees".into(), Some(free))]),
            failures: (failed > 0)
                .then(|| Failure {
                    order: 3,
                    gfp: "GFP_KERNEL".into(),
                    count: failed,
                })
                .into_iter()
                .collect(),
            frames: FrameMatch {
                allocations: 0,
                matched: 0,
            },
            huge_faults: None,
            settings: BTreeMap::new(),
            block_map: None,
            notes: vec![],
        }
    }

    #[test]
    fn an_ensemble_has_a_member_in_the_middle() {
        for n in [1, 3, 101] {
            check(n).unwrap();
        }
        for n in [0, 2, 100, 103] {
            let e = check(n).unwrap_err().to_string();
            assert!(e.contains(&n.to_string()), "{e}");
        }
    }

    #[test]
    fn each_number_is_the_median_of_its_own_and_the_ends_are_told() {
        let all = [member(300, 0), member(500, 0), member(410, 0)];
        let z = &samples(&all)[0].zones[0];
        assert_eq!((z.free_pages, z.pcp_pages), (410, Some(41)));
        assert_eq!(z.free_huge_blocks, 4, "of 6, 3 and 4");
        assert_eq!(z.free_blocks, [408, 1]);
        assert_eq!(z.unusable_index["9"], 0.41);
        assert_eq!(z.pageblocks["Movable"], 4);
        assert_eq!(z.mixed_pageblocks, None);
        let spread = z.spread.as_ref().unwrap();
        assert_eq!(spread.free_pages, [300, 500]);
        assert_eq!(spread.unusable_index["9"], [0.3, 0.5]);
        assert_eq!(totals(&all)["frees"], Some(410));
    }

    #[test]
    fn a_failure_that_most_members_do_not_have_is_left_out() {
        assert!(failures(&[member(9, 0), member(9, 9), member(9, 0)]).is_empty());
        let f = failures(&[member(9, 7), member(9, 9), member(9, 0)]);
        assert_eq!((f.len(), f[0].count), (1, 7));
    }

    fn jobs(members: u32) -> Vec<Job> {
        let chance = |pace| Chance {
            pace,
            ..Chance::default()
        };
        let chances: Vec<Chance> = (1..=members).map(chance).collect();
        Job::ensemble(0, &chances, true).collect()
    }

    #[test]
    fn members_are_in_the_order_of_their_paces_on_any_number_of_threads() {
        for threads in [1, 2, 4] {
            let one = |job: &Job, watch: &mut dyn Watch| {
                watch.progress(10, 10);
                // The later, the sooner.
                std::thread::sleep(std::time::Duration::from_millis(
                    10 / u64::from(job.chance.pace),
                ));
                Ok(member(u64::from(job.chance.pace) + 2, 0))
            };
            let all = run(&jobs(5), threads, one, &mut NoWatch).unwrap();
            let free: Vec<u64> = all.iter().filter_map(|m| m.totals["frees"]).collect();
            assert_eq!(free, [3, 4, 5, 6, 7]);
        }
    }

    #[test]
    fn an_error_of_any_member_is_that_of_the_ensemble() {
        let one = |job: &Job, _: &mut dyn Watch| match job.chance.pace {
            3 => Err(Error::lacking("the third")),
            _ => Ok(member(9, 0)),
        };
        let e = run(&jobs(3), 2, one, &mut NoWatch).unwrap_err();
        assert!(e.to_string().contains("the third"));
    }
}
