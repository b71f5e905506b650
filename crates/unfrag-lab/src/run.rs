//! A whole replay: from a recording and a question to a report.
//!
//! The recorded workload is prepared once ([`Plan`]): clock, start, causes, and from an exact start
//! what left no event. Then each kernel that was asked for runs it.

use crate::accuracy::{Forecast, measure};
use crate::cause::{Causes, Do, Op, causes};
use crate::clock::Clock;
use crate::era::Era;
use crate::replay::{ReplayHost, Sim};
use crate::report::{
    BlockMap, Failure, FrameMatch, KernelReport, RecordingSummary, Report, Sample,
};
use crate::sample::Block;
use crate::start::anew::{anew, resized};
use crate::start::counts::{Anchor, counts};
use crate::start::evidence::Evidence;
use crate::start::exact::exact;
use crate::start::{Frame, Start, highest_frame, zone_facts};
use crate::{observe, resolve, sample, settings, silent};
use std::collections::BTreeMap;
use unfrag::kernel::{MarkGap, PRESETS, Preset, preset};
use unfrag::{Manager, MigrateType};
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
    /// At the kernel's own free lists where the recording has them, else from counts.
    #[default]
    Auto,
    /// At the kernel's own free lists.
    Exact,
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

/// Nobody.
pub struct Unwatched;
impl Watch for Unwatched {}

/// A recording made ready.
pub struct Plan<'r> {
    rec: &'r Recording,
    /// The recorded kernel.
    pub era: Era,
    /// Where the replay begins.
    pub start: Start,
    /// What it replays.
    pub causes: Causes,
    /// Whether the start is the kernel's exact state.
    pub exact: bool,
    /// What was inferred.
    pub resolved: resolve::Resolved,
    /// Snapshots from the anchor on, and when they were taken in the trace's clock.
    pub snapshots: Vec<(u64, &'r Snapshot)>,
    first: u64,
    offset: i64,
}

/// Rounds that fit the per-CPU lists of the start to those of the anchor.
const FIT_ROUNDS: usize = 4;

impl<'r> Plan<'r> {
    /// Prepares a recording.
    ///
    /// # Errors
    /// If it lacks what a replay needs.
    pub fn new(rec: &'r Recording, choice: StartChoice) -> Result<Plan<'r>> {
        let era = Era::of(&rec.meta.kernel_release)?;
        let (Some(&first), Some(&last)) = (rec.events.time.first(), rec.events.time.last()) else {
            return Err(Error::malformed("the recording has no events"));
        };
        let clock = Clock::of(rec)?;
        let offset = clock.offset;
        let within: Vec<(u64, &Snapshot)> = rec
            .snapshots
            .iter()
            .filter_map(|s| Some((clock.buddyinfo(s)?, s)))
            .filter(|(t, _)| (first..=last).contains(t))
            .collect();
        let Some(&(_, anchor)) = within.iter().find(|(_, s)| s.file("zoneinfo").is_some()) else {
            return Err(Error::malformed(
                "no snapshot with buddyinfo and zoneinfo was taken while the trace ran",
            )
            .help(
                "record procfs snapshots once a second beside the trace, and import them with it",
            ));
        };
        let marks = rec
            .snapshots
            .iter()
            .filter(|s| s.file("freelists").is_some());
        let marks: Vec<&Snapshot> = marks.collect();
        // A mark after which nothing happened unseen is as good as one within the trace.
        let mut before = None;
        for s in marks.iter().filter(|s| time_of_lists(s, offset) < first) {
            if clock.begins_at(s)? {
                before = Some(*s);
            }
        }
        let inside = |s: &&&Snapshot| (first..=last).contains(&time_of_lists(s, offset));
        let mark = before.or_else(|| marks.iter().find(inside).copied());
        let exact_mark = match (choice, mark) {
            (StartChoice::Counts, _) | (StartChoice::Auto, None) => None,
            (_, Some(s)) => Some(s),
            (StartChoice::Exact, None) => {
                return Err(Error::malformed(
                    "no snapshot within the trace holds the kernel's free lists",
                )
                .help("use --start counts"));
            }
        };
        let mut plan = match exact_mark {
            Some(s) => Plan::exact(rec, era, s, offset)?,
            None => Plan::counts(rec, era, anchor, &clock)?,
        };
        plan.snapshots = within
            .into_iter()
            .filter(|(t, _)| *t >= plan.start.time)
            .collect();
        if plan.snapshots.is_empty() {
            return Err(Error::malformed(
                "no snapshot was taken after the start of the replay",
            ));
        }
        (plan.first, plan.offset) = (first, offset);
        plan.mark_freed();
        Ok(plan)
    }

    fn exact(rec: &'r Recording, era: Era, mark: &Snapshot, offset: i64) -> Result<Plan<'r>> {
        let start = exact(mark, era, offset)?;
        let is_free = |p: u32| start.is_free(p);
        let frames = start.frames.len() as u32;
        let mut causes = causes(rec, era, frames, start.time, u64::MAX, Some(&is_free))?;
        let p = recorded_preset(era);
        let sysctl = settings::recorded(rec);
        let mut memory = vec![0; start.words(p.switches, sysctl)?];
        let mut sim = Sim::new(
            start.manager(p.switches, sysctl, true, &mut memory)?,
            frames,
        );
        sim.recorded_era = true;
        let resolved = resolve::resolve(&mut causes, &mut sim);
        drop(sim);
        Ok(Plan {
            rec,
            era,
            start,
            causes,
            exact: true,
            resolved,
            snapshots: vec![],
            first: 0,
            offset,
        })
    }

    fn counts(rec: &'r Recording, era: Era, anchor: &Snapshot, clock: &Clock) -> Result<Plan<'r>> {
        let offset = clock.offset;
        let dated = clock.date(anchor)?;
        let time = clock.buddyinfo(anchor).unwrap_or(0);
        let mut anchor = Anchor::read(anchor, time)?;
        anchor.dated = dated;
        let frames = highest_frame(&anchor.zones)?;
        let mut causes = causes(rec, era, frames, 0, u64::MAX, None)?;
        let since_anchor = |s: &&Snapshot| clock.buddyinfo(s).is_some_and(|t| t >= anchor.time);
        let snapshots = rec.snapshots.iter().filter(since_anchor);
        silent::insert(&mut causes, snapshots, clock)?;
        let p = recorded_preset(era);
        let sysctl = settings::recorded(rec);
        // The anchor shows how many pages each CPU held back then; at the start it held what leads
        // there.
        let recorded: Vec<Vec<u64>> = anchor
            .zones
            .iter()
            .map(|z| {
                (0..anchor.cpus)
                    .map(|c| z.sets.get(c).map_or(0, |s| s.0))
                    .collect()
            })
            .collect();
        // zoneinfo is read next to vmstat, which says exactly when.
        let upto = anchor.upto(&causes);
        let evidence = Evidence::gather(&causes, anchor.cpus);
        let mut best: Option<(u64, Start)> = None;
        for kernel_first in [false, true] {
            let mut held = recorded.clone();
            let mut fit = u64::MAX;
            for _ in 0..FIT_ROUNDS {
                let start = counts(&anchor, &causes, &evidence, &held, kernel_first)?;
                let mut memory = vec![0; start.words(p.switches, sysctl)?];
                let mut sim = Sim::new(
                    start.manager(p.switches, sysctl, true, &mut memory)?,
                    frames,
                );
                for op in &causes.ops[..upto] {
                    sim.apply(op, &causes);
                }
                let mut far = 0;
                for (z, row) in held.iter_mut().enumerate() {
                    for (c, n) in row.iter_mut().enumerate() {
                        let now = sim.manager.set_view(z, c).count as u64;
                        far += now.abs_diff(recorded[z][c]);
                        *n = (*n + recorded[z][c]).saturating_sub(now);
                    }
                }
                let all = far + anchor.distance(&sim.manager);
                if best.as_ref().is_none_or(|b| all < b.0) {
                    best = Some((all, start));
                }
                if far == 0 || far >= fit {
                    break;
                }
                fit = far;
            }
        }
        let Some((_, start)) = best else {
            unreachable!("there is a round")
        };
        let resolved = resolve::Resolved::default();
        Ok(Plan {
            rec,
            era,
            start,
            causes,
            exact: false,
            resolved,
            snapshots: vec![],
            first: 0,
            offset,
        })
    }

    /// Notes which frames in use at the start are freed later.
    fn mark_freed(&mut self) {
        let mut seen = vec![false; self.start.frames.len()];
        self.start.freed_later = seen.clone();
        for op in &self.causes.ops {
            let free = matches!(op.act, Do::Free | Do::FreeGiven | Do::FreeUnseen);
            if !free && !matches!(op.act, Do::Alloc | Do::AllocRaced) {
                continue;
            }
            for p in op.pfn..op.pfn + (1 << op.order) {
                if !std::mem::replace(&mut seen[p as usize], true) && free {
                    self.start.freed_later[p as usize] =
                        self.start.frames[p as usize] != Frame::Free;
                }
            }
        }
    }

    /// A time of the snapshots' clock in the trace's.
    pub fn trace_time(&self, time: u64) -> u64 {
        time.saturating_add_signed(-self.offset)
    }

    fn seconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.first) as f64 / 1e9
    }

    fn recorded_samples(&self) -> Result<Vec<Sample>> {
        let of = |(t, s): &(u64, &Snapshot)| sample::of_snapshot(s, self.seconds(*t)).transpose();
        self.snapshots.iter().filter_map(of).collect()
    }

    /// For each snapshot after the anchor and each zone: pages taken since the anchor.
    fn taken(&self, anchor: &Sample) -> Vec<Vec<i64>> {
        let Some(&(from, _)) = self.snapshots.first() else {
            return vec![];
        };
        let zones: Vec<_> = anchor
            .zones
            .iter()
            .map(|z| {
                let of =
                    |c: &unfrag::ZoneConfig| u32::from(c.node) == z.node && c.kind.name() == z.zone;
                self.start.zones.iter().map(|f| f.config).find(of)
            })
            .collect();
        let mut sum = vec![0i64; zones.len()];
        let mut all = vec![];
        let mut next = self.snapshots.iter().skip(1).peekable();
        for op in self.causes.ops.iter().filter(|o| o.time >= from) {
            while next.next_if(|(t, _)| op.time > *t).is_some() {
                all.push(sum.clone());
            }
            let mut pfn = u64::from(op.pfn);
            let pages = match op.act {
                Do::Stack => {
                    pfn = self.causes.stacks[op.pfn as usize][0].into();
                    4
                }
                Do::Alloc | Do::AllocRaced => 1i64 << op.order,
                Do::Free | Do::FreeGiven => -(1i64 << op.order),
                _ => continue,
            };
            let inside = |c: &unfrag::ZoneConfig| (c.start.0..c.start.0 + c.spanned).contains(&pfn);
            if let Some(i) = zones.iter().position(|z| z.as_ref().is_some_and(inside)) {
                sum[i] += pages;
            }
        }
        all.resize(self.snapshots.len().saturating_sub(1), sum);
        all
    }

    /// Runs one kernel.
    fn kernel(
        &self,
        name: &str,
        options: &Options,
        recorded: &[Sample],
        watch: &mut dyn Watch,
    ) -> Result<KernelReport> {
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
        // Modern kernels with huge pages raise the marks alike; old ones had their own.
        let keep_marks =
            p.switches.mark_gap == MarkGap::Scaled && !asked && options.memory.is_none();
        let mut notes = vec![];
        let mut memory = vec![];
        let frames = self.start.frames.len() as u32;
        let mut sim = if recorded_era && options.memory.is_none() {
            memory = vec![0; self.start.words(p.switches, sysctl)?];
            let m = self
                .start
                .manager(p.switches, sysctl, keep_marks, &mut memory)?;
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
                p.switches,
                sysctl,
                keep_marks,
                &mut memory,
            )?
        };
        let as_recorded = recorded_era && options.set.is_empty() && options.memory.is_none();
        sim.recorded_era = as_recorded && self.exact;
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
        if sim.tally.given_pages > 0 {
            notes.push(format!(
                "{} pages that the recorded kernel's reclaim freed were freed as given: this model does not reclaim yet.",
                sim.tally.given_pages
            ));
        }
        if sim.tally.moved > 0 {
            notes.push(format!(
                "{} pages that the recorded kernel's compaction moved stay where they are: this model does not compact yet.",
                sim.tally.moved
            ));
        }
        let accuracy = match recorded.first() {
            Some(anchor) if as_recorded => {
                let taken = self.taken(anchor);
                let forecast = Forecast {
                    anchor,
                    taken: &taken,
                };
                let lost = lost_events(self.rec);
                let mut a = measure(&samples[1..], &recorded[1..], &forecast, lost);
                a.frame_match = self.exact.then_some(FrameMatch {
                    allocations: sim.tally.allocated,
                    matched: sim.tally.on_same_frame,
                });
                Some(a)
            }
            _ => None,
        };
        Ok(KernelReport {
            kernel: p.name.into(),
            recorded_era,
            settings: settings::describe(sim.manager.switches(), sim.manager.sysctl()),
            accuracy,
            accuracy_from_counts: None,
            samples,
            totals: self.totals(&sim),
            failures: failures(&sim),
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
        let blocks: Vec<Vec<Block>> = (0..sim.manager.zones())
            .map(|z| sim.manager.blocks(z).collect())
            .collect();
        samples.push(sample::of_model(&sim.manager, &blocks, &snap.name, seconds));
        map.row(&blocks, seconds);
        watch.at_snapshot(p.name, snap, &sim.manager);
    }

    fn totals(&self, sim: &Sim) -> BTreeMap<String, u64> {
        let t = &sim.tally;
        let h = sim.manager.host();
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
            ("migrated_pages_ignored", t.moved),
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

/// When the walk over a mark's free lists ended, in the trace's clock.
fn time_of_lists(mark: &Snapshot, offset: i64) -> u64 {
    let time = mark
        .files
        .iter()
        .find(|f| f.name == "freelists")
        .and_then(|f| f.time);
    time.map_or(0, |(_, end)| end.saturating_add_signed(-offset))
}

fn recorded_preset(era: Era) -> &'static Preset {
    match preset(era.preset()) {
        Some(p) => p,
        None => unreachable!("every era has a preset"),
    }
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

/// Draws the map of pageblocks, row by row.
struct MapMaker {
    map: BlockMap,
}

impl MapMaker {
    fn new(sim: &Sim) -> MapMaker {
        let first = (0..sim.manager.zones())
            .map(|z| sim.manager.zone_config(z).start.0)
            .min();
        let pages = sim.manager.block_pages();
        MapMaker {
            map: BlockMap {
                first_pfn: first.unwrap_or(0) / u64::from(pages) * u64::from(pages),
                block_pages: pages,
                type_names: MigrateType::ALL
                    .iter()
                    .map(|&t| sample::type_name(t).into())
                    .collect(),
                seconds: vec![],
                types: vec![],
                fullness: vec![],
            },
        }
    }

    fn row(&mut self, blocks: &[Vec<Block>], seconds: f64) {
        let pages = u64::from(self.map.block_pages);
        let (mut types, mut full) = (String::new(), String::new());
        for zone in blocks {
            for (pfn, mt, b) in zone {
                let at = (pfn.0 - self.map.first_pfn) / pages;
                while (types.len() as u64) < at {
                    types.push('.');
                    full.push('.');
                }
                // A block that two zones share was drawn by the first.
                if types.len() as u64 > at {
                    continue;
                }
                let used: u32 = b.used.iter().sum::<u32>() + b.reserved;
                let digit = u64::from(used) * 9 / pages;
                types.push((b'0' + *mt as u8) as char);
                full.push((b'0' + if used > 0 { digit.max(1) as u8 } else { 0 }) as char);
            }
        }
        self.map.seconds.push(seconds);
        self.map.types.push(types);
        self.map.fullness.push(full);
    }

    fn done(self) -> BlockMap {
        self.map
    }
}

/// Replays the same kernel from a start by counts, as any other host would have to, and notes the
/// difference.
fn compare_starts(rec: &Recording, report: &mut KernelReport, options: &Options) -> Result<()> {
    let plan = Plan::new(rec, StartChoice::Counts)?;
    let recorded = plan.recorded_samples()?;
    let counts = plan.kernel(&report.kernel, options, &recorded, &mut Unwatched)?;
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
                    compare_starts(rec, &mut report, options)?;
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
        start: if plan.exact {
            "exact".into()
        } else {
            "counts".into()
        },
        recorded,
        kernels,
        observe: observed,
    })
}

/// Operations of a plan, for tools that want to see them.
pub fn operations<'p>(plan: &'p Plan) -> &'p [Op] {
    &plan.causes.ops
}
