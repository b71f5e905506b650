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
            "Each number, and the middle of each range, is by the median of {} replays (--members) that differ in what nobody recorded: a page takes kswapd {from} \
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

/// Replays of one of several kernels, which one thread does one after the other.
pub(crate) struct Job {
    /// Number of the kernel.
    pub kernel: usize,
    /// The members of its ensemble, by number, with what they choose where nothing is known.
    pub members: Vec<(usize, Chance)>,
    /// Whether their snapshots are watched.
    pub watched: bool,
}

/// How the members of an ensemble become jobs.
pub(crate) struct Parts<'a> {
    /// How many jobs there are to be, at least, if there are members enough.
    pub wanted: usize,
    /// Whether two members begin alike, so that what they have in common is done once in a job.
    pub alike: &'a dyn Fn(Chance, Chance) -> bool,
    /// Whether the snapshots of the first member are watched: then it is a job by itself.
    pub watched: bool,
}

impl Job {
    /// The members of a kernel's ensemble.
    pub(crate) fn ensemble(kernel: usize, chances: &[Chance], parts: &Parts<'_>) -> Vec<Job> {
        let job = |members: &[(usize, Chance)], watched| Job {
            kernel,
            members: members.to_vec(),
            watched,
        };
        let numbered: Vec<_> = chances.iter().copied().enumerate().collect();
        let (alone, others) = numbered.split_at(usize::from(parts.watched).min(numbered.len()));
        let mut groups: Vec<Vec<(usize, Chance)>> = vec![];
        for &member in others {
            let same = |g: &&mut Vec<_>| {
                g.first()
                    .is_some_and(|f: &(_, _)| (parts.alike)(f.1, member.1))
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push(member),
                None => groups.push(vec![member]),
            }
        }
        let pieces = parts.wanted.div_ceil(groups.len().max(1)).max(1);
        let groups = groups
            .iter()
            .flat_map(|g| g.chunks(g.len().div_ceil(pieces)));
        let alone = (!alone.is_empty()).then(|| job(alone, true));
        alone
            .into_iter()
            .chain(groups.map(|g| job(g, false)))
            .collect()
    }
}

/// Does the jobs, each by `one`, as many at a time as `threads` says, and gives the members of all kernels in order. The
/// caller's thread does those that are watched, and reports the progress of all.
pub(crate) fn run<F>(
    jobs: &[Job],
    threads: usize,
    one: F,
    watch: &mut dyn Watch,
) -> Result<Vec<Member>>
where
    F: Fn(&Job, &mut dyn Watch) -> Result<Vec<Member>> + Sync,
{
    let done = AtomicU64::new(0);
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&i| !jobs[i].watched);
    let watched = jobs.iter().filter(|j| j.watched).count();
    let replays = jobs.iter().map(|j| j.members.len() as u64).sum();
    let members = |i: usize, watch: Option<&mut dyn Watch>| {
        let job = &jobs[order[i]];
        let mut shared = MemberWatch {
            watch,
            watched: job.watched,
            done: &done,
            reported: 0,
            replays,
        };
        one(job, &mut shared)
    };
    let other = |i| members(i, None);
    let all = each(jobs.len(), watched, threads, other, |i| {
        members(i, Some(&mut *watch))
    });
    let mut in_order = vec![];
    for (job, members) in order.iter().map(|&i| &jobs[i]).zip(all) {
        let numbers = job.members.iter().map(|m| (job.kernel, m.0));
        in_order.extend(numbers.zip(members?));
    }
    in_order.sort_by_key(|(number, _)| *number);
    Ok(in_order.into_iter().map(|(_, member)| member).collect())
}

/// Passes on what the watch of the ensemble needs of replays that come one after the other.
struct MemberWatch<'a, 'w> {
    watch: Option<&'a mut (dyn Watch + 'w)>,
    watched: bool,
    /// Operations that all replays have done.
    done: &'a AtomicU64,
    /// Operations of the replay at hand that are in `done`. What it has in common with the one before counts for each.
    reported: u64,
    replays: u64,
}

impl Watch for MemberWatch<'_, '_> {
    fn progress(&mut self, done: u64, total: u64) {
        let more = done.saturating_sub(self.reported);
        // With its last operation a replay is over.
        self.reported = if done < total { done } else { 0 };
        let all = self.done.fetch_add(more, Ordering::Relaxed) + more;
        if let Some(w) = &mut self.watch {
            w.progress(all, total * self.replays);
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

    fn paced(members: u32) -> Vec<Chance> {
        let chance = |pace| Chance {
            pace,
            turned: pace % 2 == 0,
            ..Chance::default()
        };
        (1..=members).map(chance).collect()
    }

    fn jobs(members: u32, wanted: usize, watched: bool) -> Vec<Job> {
        let parts = Parts {
            wanted,
            alike: &|a, b| a.turned == b.turned,
            watched,
        };
        Job::ensemble(0, &paced(members), &parts)
    }

    #[test]
    fn each_member_is_in_one_job_with_others_that_begin_alike() {
        for (members, wanted, watched) in
            [(1, 1, false), (5, 1, true), (21, 2, false), (21, 8, true)]
        {
            let jobs = jobs(members, wanted, watched);
            assert!(jobs.len() >= wanted.min(members as usize));
            assert_eq!(jobs.iter().filter(|j| j.watched).count(), watched as usize);
            let mut all: Vec<_> = jobs.iter().flat_map(|j| &j.members).collect();
            all.sort_by_key(|m| m.0);
            let paces: Vec<u32> = all.iter().map(|m| m.1.pace).collect();
            assert_eq!(paces, (1..=members).collect::<Vec<_>>());
            for job in &jobs {
                let is_alike = |m: &(usize, Chance)| m.1.turned == job.members[0].1.turned;
                assert!(job.members.iter().all(is_alike));
                assert!(!job.watched || job.members.len() == 1);
            }
        }
    }

    #[test]
    fn members_are_in_the_order_of_their_paces_on_any_number_of_threads() {
        for threads in [1, 2, 4] {
            let one = |job: &Job, watch: &mut dyn Watch| {
                let members = job.members.iter().map(|(_, chance)| {
                    watch.progress(10, 10);
                    // The later, the sooner.
                    let ms = 10 / u64::from(chance.pace);
                    std::thread::sleep(std::time::Duration::from_millis(ms));
                    member(u64::from(chance.pace) + 2, 0)
                });
                Ok(members.collect())
            };
            let all = run(&jobs(5, threads, threads == 1), threads, one, &mut NoWatch).unwrap();
            let free: Vec<u64> = all.iter().filter_map(|m| m.totals["frees"]).collect();
            assert_eq!(free, [3, 4, 5, 6, 7]);
        }
    }

    /// Each replay of a job reports from its own beginning, or from where it goes on.
    #[test]
    fn progress_ends_with_all_operations_of_all_replays() {
        struct Last(u64, u64);
        impl Watch for Last {
            fn progress(&mut self, done: u64, total: u64) {
                assert!(done >= self.0);
                (self.0, self.1) = (done, total);
            }
        }
        let one = |job: &Job, watch: &mut dyn Watch| {
            watch.progress(4, 10);
            let members = job.members.iter().map(|_| {
                for done in [6, 10] {
                    watch.progress(done, 10);
                }
                member(3, 0)
            });
            Ok(members.collect())
        };
        let mut last = Last(0, 0);
        run(&jobs(5, 1, false), 1, one, &mut last).unwrap();
        assert_eq!((last.0, last.1), (50, 50));
    }

    #[test]
    fn an_error_of_any_member_is_that_of_the_ensemble() {
        let one = |job: &Job, _: &mut dyn Watch| match job.members.iter().any(|m| m.1.pace == 3) {
            true => Err(Error::lacking("the third")),
            false => Ok(job.members.iter().map(|_| member(9, 0)).collect()),
        };
        let e = run(&jobs(3, 3, false), 2, one, &mut NoWatch).unwrap_err();
        assert!(e.to_string().contains("the third"));
    }
}
