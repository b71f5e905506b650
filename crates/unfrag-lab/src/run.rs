//! A whole replay: from a recording and a question to a report.
//!
//! The recorded workload is prepared once ([`Plan`]): clock, start, causes, and from an exact start
//! what left no event. Then each kernel that was asked for runs it, several times where the model's
//! own reclaim makes one replay a draw ([`ensemble`]).

use crate::accuracy::{Forecast, measure};
use crate::block_map::MapMaker;
use crate::compaction::compacts;
use crate::ensemble::{self, Member};
use crate::jobs::threads;
use crate::plan::Plan;
use crate::reclaim::Evidence;
use crate::replay::{ReplayHost, Sim};
use crate::report::{
    Ensemble, Failure, FrameMatch, KernelReport, RecordingSummary, Report, Sample,
};
use crate::sample::Block;
use crate::start::anew::{anew, resized};
use crate::start::zone_facts;
use crate::{observe, sample, settings};
use std::collections::BTreeMap;
use unfrag::kernel::{MarkGap, PRESETS, Preset, preset};
use unfrag::{Manager, Sysctl};
use unfrag_linux::gfp_text;
use unfrag_linux::recording::{Recording, Snapshot};
use unfrag_linux::{Error, Result};

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Kernels by preset name; none means the recorded era.
    pub kernels: Vec<String>,
    /// Settings (`vm.NAME`, value).
    pub set: Vec<(String, String)>,
    /// Size of memory in bytes, if another than the recorded one.
    pub memory: Option<u64>,
    /// Who decides where a block goes.
    pub mode: Mode,
    /// Where to begin.
    pub start: StartChoice,
    /// Whose reclaim it is.
    pub reclaim: ReclaimChoice,
    /// What becomes of the recorded kernel's compaction.
    pub compaction: CompactionChoice,
    /// Replays of an ensemble, an odd number; none means [`ensemble::MEMBERS`]. Where the model does
    /// not reclaim, all would be the same, and there is one.
    pub members: Option<u32>,
}

/// What becomes of the pages that the recorded kernel's compaction moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionChoice {
    /// They move here too, if the kernel that is replayed compacts.
    #[default]
    Given,
    /// They stay where they are.
    None,
}

/// Whose reclaim frees pages in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReclaimChoice {
    /// The model's own.
    #[default]
    Modelled,
    /// The recorded kernel's, as given.
    Given,
}

/// Who decides where a block goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The model; the trace gives only causes.
    #[default]
    Predict,
    /// The trace: checks the recording.
    Observe,
}

/// Where a replay begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartChoice {
    /// At the kernel's own free lists where the recording has them, else from occupancy if it has
    /// page flags, else from counts.
    #[default]
    Auto,
    /// At the kernel's own free lists.
    Exact,
    /// With each frame free or in use as the page flags of the first snapshot say.
    Occupancy,
    /// From what any host shows.
    Counts,
}

/// Who watches a replay.
pub trait Watch {
    /// Operations done, of all.
    fn progress(&mut self, done: u64, total: u64) {
        let _ = (done, total);
    }
    /// The model of `kernel` at the moment of a snapshot.
    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, manager: &Manager<'_, ReplayHost>) {
        let _ = (kernel, snap, manager);
    }
}

/// Hears how far a replay is, and sees nothing of it.
struct FromAfar<'w>(&'w mut dyn Watch);

impl Watch for FromAfar<'_> {
    fn progress(&mut self, done: u64, total: u64) {
        self.0.progress(done, total);
    }
}

/// Nobody.
pub struct Unwatched;
impl Watch for Unwatched {}

/// What one kernel is asked.
struct Question<'q> {
    preset: &'static Preset,
    sysctl: Sysctl,
    /// Whether it is the era that was recorded.
    recorded_era: bool,
    /// Whether it is the recorded kernel as it was, so that there is a truth to compare with.
    as_recorded: bool,
    /// Whether the recorded marks hold.
    keep_marks: bool,
    options: &'q Options,
}

impl Plan<'_> {
    fn question<'q>(&self, name: &str, options: &'q Options) -> Result<Question<'q>> {
        let p = preset(name).ok_or_else(|| {
            let known: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
            Error::malformed(format!("there is no kernel `{name}`"))
                .help(format!("kernels are {}", known.join(", ")))
        })?;
        let mut sysctl = settings::recorded(self.rec);
        for (n, v) in &options.set {
            settings::set(&mut sysctl, n, v)?;
        }
        let recorded_era = p.name == self.era.preset();
        let asked = options.set.iter().any(|(n, _)| settings::changes_marks(n));
        Ok(Question {
            preset: p,
            sysctl,
            recorded_era,
            as_recorded: recorded_era && options.set.is_empty() && options.memory.is_none(),
            // Modern kernels with huge pages raise the marks alike; old ones had their own.
            keep_marks: p.rules.marks.gap == MarkGap::Scaled && !asked && options.memory.is_none(),
            options,
        })
    }

    /// What the model's own reclaim goes by, if it is to reclaim.
    fn modelled(&self, options: &Options) -> Option<&Evidence> {
        let modelled = options.reclaim == ReclaimChoice::Modelled;
        self.reclaim.as_ref().filter(|_| modelled)
    }

    /// Runs one kernel.
    fn kernel(
        &self,
        name: &str,
        options: &Options,
        recorded: &[Sample],
        watch: &mut dyn Watch,
    ) -> Result<KernelReport> {
        let q = self.question(name, options)?;
        let reclaims = self.modelled(options).is_some();
        let asked = options.members.unwrap_or(ensemble::MEMBERS);
        ensemble::check(asked)?;
        let paces = ensemble::paces(if reclaims { asked } else { 1 });
        let one = |pace, watch: &mut dyn Watch| self.once(&q, pace, watch);
        let mut members = ensemble::run(&paces, threads(), one, watch)?;
        let pooled = members.len() > 1;
        let samples = if pooled {
            ensemble::samples(&members)
        } else {
            std::mem::take(&mut members[0].samples)
        };
        let (totals, failures) = (ensemble::totals(&members), ensemble::failures(&members));
        let anchor = recorded.first().filter(|_| q.as_recorded);
        let taken = anchor.map(|anchor| self.taken(anchor)).unwrap_or_default();
        let judge = |samples: &[Sample]| {
            let forecast = Forecast {
                anchor: anchor?,
                taken: &taken,
            };
            let lost = lost_events(self.rec);
            Some(measure(&samples[1..], &recorded[1..], &forecast, lost))
        };
        let skills = || {
            let own = |m: &Member| judge(&m.samples)?.free_pages_error.skill;
            let mut all: Vec<f64> = members.iter().filter_map(own).collect();
            all.sort_by(f64::total_cmp);
            Some([*all.first()?, all[all.len() / 2], *all.last()?])
        };
        let ensemble = pooled.then(|| Ensemble {
            members: members.len() as u64,
            pace: ensemble::range(&paces),
            free_pages_skill: skills(),
        });
        let mut accuracy = judge(&samples);
        let first = members.swap_remove(0);
        if let Some(a) = &mut accuracy {
            a.frame_match = self.exact.then_some(first.frames);
        }
        let mut notes = first.notes;
        notes.extend(ensemble.as_ref().map(Ensemble::sentence));
        if options.members.is_some_and(|n| n > 1) && !reclaims {
            notes.push("Nothing was reclaimed by the model, so that one replay says all.".into());
        }
        Ok(KernelReport {
            kernel: q.preset.name.into(),
            recorded_era: q.recorded_era,
            settings: first.settings,
            accuracy,
            accuracy_from_counts: None,
            ensemble,
            samples,
            totals,
            failures,
            block_map: first.block_map,
            notes,
        })
    }

    /// One replay, with kswapd at a pace.
    fn once(&self, q: &Question<'_>, pace: u32, watch: &mut dyn Watch) -> Result<Member> {
        let (p, sysctl, options) = (q.preset, q.sysctl, q.options);
        let mut notes = vec![];
        let mut memory = vec![];
        let frames = self.start.frames.len() as u32;
        let mut sim = if q.recorded_era && options.memory.is_none() {
            memory = vec![0; self.start.words(p.rules, sysctl)?];
            let m = self
                .start
                .manager(p.rules, sysctl, q.keep_marks, &mut memory)?;
            Sim::new(m, frames)
        } else {
            let zones = self.start.zone_configs();
            let zones = match options.memory {
                Some(bytes) => resized(&zones, bytes)?,
                None => zones,
            };
            notes.push(
                "What was in use at the start was placed anew by this kernel's own rules from its boot.".into(),
            );
            anew(
                &self.start,
                &zones,
                p.rules,
                sysctl,
                q.keep_marks,
                &mut memory,
            )?
        };
        sim.recorded_era = q.as_recorded && self.exact;
        if let Some(e) = self.modelled(options) {
            sim.reclaims(e, pace);
        }
        if options.compaction == CompactionChoice::Given && compacts(&p.rules) {
            sim.compacts_as_given();
        }
        let mut samples = vec![];
        let mut map = MapMaker::new(&sim);
        let mut shots = self.snapshots.iter().peekable();
        let total = self.causes.ops.len() as u64;
        for (i, op) in self.causes.ops.iter().enumerate() {
            while let Some((t, snap)) = shots.next_if(|(t, _)| op.time > *t) {
                self.shoot(p, &sim, *t, snap, &mut samples, &mut map, watch);
                watch.progress(i as u64, total);
            }
            sim.apply(op, &self.causes);
        }
        for (t, snap) in shots {
            self.shoot(p, &sim, *t, snap, &mut samples, &mut map, watch);
        }
        sim.settle();
        watch.progress(total, total);
        notes.extend(told(&sim));
        let m = sim.manager.inspect();
        Ok(Member {
            samples,
            totals: self.totals(&sim),
            failures: failures(&sim),
            frames: FrameMatch {
                allocations: sim.tally.allocated,
                matched: sim.tally.on_same_frame,
            },
            settings: settings::describe(m.rules(), m.sysctl()),
            block_map: Some(map.done()),
            notes,
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn shoot(
        &self,
        p: &Preset,
        sim: &Sim,
        time: u64,
        snap: &Snapshot,
        samples: &mut Vec<Sample>,
        map: &mut MapMaker,
        watch: &mut dyn Watch,
    ) {
        let seconds = self.seconds(time);
        let m = sim.manager.inspect();
        let blocks: Vec<Vec<Block>> = m.zones().map(|z| m.blocks(z).collect()).collect();
        samples.push(sample::of_model(&sim.manager, &blocks, &snap.name, seconds));
        map.row(&blocks, seconds);
        watch.at_snapshot(p.name, snap, &sim.manager);
    }

    fn totals(&self, sim: &Sim) -> BTreeMap<String, u64> {
        let t = &sim.tally;
        let h = sim.manager.host();
        let reclaim = sim.manager.inspect().reclaim_counters();
        let c = &self.causes.classes;
        [
            ("allocations", t.allocated),
            ("frees", t.freed),
            ("fallbacks", h.fallbacks),
            ("fallbacks_recorded", self.causes.extfrag.len() as u64),
            ("pageblocks_claimed", h.claims),
            ("kswapd_wakeups", h.kswapd_wakes),
            ("failures", t.failures.values().sum()),
            ("failures_recorded", c.failed),
            ("reclaimed_pages_as_given", t.given_pages),
            ("pgsteal_kswapd", reclaim.pgsteal_kswapd),
            ("pgsteal_direct", reclaim.pgsteal_direct),
            ("pgscan_kswapd", reclaim.pgscan_kswapd),
            ("allocstall", reclaim.allocstall),
            ("pageoutrun", reclaim.pageoutrun),
            ("migrated_pages_as_given", t.moved_here),
            ("migrated_pages_ignored", t.stayed()),
            ("frees_dropped", t.dropped_frees),
            ("huge_pages_gained", t.huge_instead),
            ("huge_pages_lost", t.small_instead),
            ("kernel_stacks_inferred", self.resolved.stacks),
            ("pages_allocated_unseen", t.unseen),
            ("allocations_reordered", self.resolved.reordered),
            ("zone_checks_raced", self.resolved.raced),
        ]
        .into_iter()
        .map(|(n, v)| (n.to_string(), v))
        .collect()
    }
}

/// What a reader must know of what was applied as given.
fn told(sim: &Sim) -> Vec<String> {
    let (t, stayed) = (&sim.tally, sim.tally.stayed());
    let mut notes = vec![];
    if t.given_pages > 0 {
        notes.push(format!(
            "{} pages that the recorded kernel's reclaim freed were freed as given.",
            t.given_pages
        ));
    }
    if t.moved_here > 0 {
        notes.push(format!(
            "{} pages that the recorded kernel's compaction moved were moved here too, to where this model's free scanner says.",
            t.moved_here
        ));
    }
    if stayed > 0 {
        notes.push(format!(
            "{stayed} pages that the recorded kernel's compaction moved stay where they are: this model does not compact by itself yet."
        ));
    }
    notes
}

fn lost_events(rec: &Recording) -> u64 {
    // A gap of unknown size counts as one event at least.
    rec.meta.lost.iter().map(|l| l.count.unwrap_or(1)).sum()
}

fn failures(sim: &Sim) -> Vec<Failure> {
    sim.tally
        .failures
        .iter()
        .map(|(&(order, gfp), &count)| Failure {
            order,
            gfp: gfp_text::Era::V5_1.print(gfp.bits().into()),
            count,
        })
        .collect()
}

/// Replays the same kernel from a start by counts, as any other host would have to, and notes the
/// difference.
fn compare_starts(
    rec: &Recording,
    report: &mut KernelReport,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<()> {
    let plan = Plan::new(rec, StartChoice::Counts)?;
    let recorded = plan.recorded_samples()?;
    let mut watch = FromAfar(watch);
    let counts = plan.kernel(&report.kernel, options, &recorded, &mut watch)?;
    if let (Some(exact), Some(counts)) = (&report.accuracy, &counts.accuracy) {
        report.notes.push(format!(
            "Error of the start: from the kernel's exact state the median error of the order distribution is \
             {:.4} and that of free pages {:.4}; from counts, as on an ordinary host, {:.4} and {:.4}.",
            exact.order_distribution_error.median,
            exact.free_pages_error.median,
            counts.order_distribution_error.median,
            counts.free_pages_error.median,
        ));
    }
    report.accuracy_from_counts = counts.accuracy;
    Ok(())
}

/// Replays a recording. `file` is its name as the report shows it.
///
/// # Errors
/// If the recording lacks what a replay needs, or the options ask for what does not exist.
pub fn replay(
    rec: &Recording,
    file: &str,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Report> {
    let plan = Plan::new(rec, options.start)?;
    let recorded = plan.recorded_samples()?;
    let mut kernels = vec![];
    let mut observed = None;
    match options.mode {
        Mode::Observe => observed = Some(observe::observe(rec, &plan)?),
        Mode::Predict => {
            let own = [plan.era.preset().to_string()];
            let names = if options.kernels.is_empty() {
                &own[..]
            } else {
                &options.kernels
            };
            for name in names {
                let mut report = plan.kernel(name, options, &recorded, watch)?;
                if plan.exact && report.accuracy.is_some() {
                    compare_starts(rec, &mut report, options, watch)?;
                }
                kernels.push(report);
            }
        }
    }
    let zones = zone_facts(plan.snapshots[0].1)?;
    let last = rec.events.time.last().copied().unwrap_or(0);
    Ok(Report {
        recording: RecordingSummary {
            file: file.into(),
            kernel_release: rec.meta.kernel_release.clone(),
            cpus: rec.meta.cpus.max(plan.start.cpus as u32),
            events: rec.events.len() as u64,
            lost_events: lost_events(rec),
            seconds: plan.seconds(last),
            managed_bytes: zones.iter().map(|z| z.config.managed * 4096).sum(),
            snapshots: recorded.len() as u64,
        },
        mode: match options.mode {
            Mode::Predict => "predict".into(),
            Mode::Observe => "observe".into(),
        },
        start: match (plan.exact, plan.occupancy) {
            (true, _) => "exact".into(),
            (_, true) => "occupancy".into(),
            _ => "counts".into(),
        },
        recorded,
        kernels,
        observe: observed,
    })
}
