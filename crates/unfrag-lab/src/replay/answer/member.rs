//! One replay of one kernel, with one chance of what is not known.

use super::block_map::BlockMapBuilder;
use super::chance::Chance;
use super::compaction_totals::CompactionTotals;
use super::options::CompactionChoice;
use super::question::Question;
use super::report::{BlockMap, Failure, FrameMatch, HugeFaults, Sample};
use super::sample;
use super::sample::ModelBlock;
use super::watch::Watch;
use crate::era::sysctl;
use crate::error::Result;
use crate::replay::model::compaction::compacts;
use crate::replay::model::reclaim::{Effort, RecordedDaemon};
use crate::replay::model::{Prepared, Sim, reboot, resized};
use crate::replay::start::ListOrder;
use std::collections::BTreeMap;
use unfrag_linux::gfp_text;
use unfrag_linux::recording::Snapshot;

/// What the model of unfrag's own engine has of Linux.
const ENGINE: &str = "Which frames are taken, and what is moved to make room, is what the crate unfrag chooses, with a memory of its own for each zone. All else is as in 6.18: marks, per-CPU lists, reclaim, and when something is moved. So the engine's own marks, and what its CPUs keep, are not in this.";

/// Where a kernel begins that inherits the recorded state.
const INHERITED: &str = "This kernel begins with the recorded host's memory as it was: which pages were in use, and the types of pageblocks. (--start boot: as it would have placed them itself.)";
/// Where a kernel begins that does not.
const PLACED_ANEW: &str =
    "What was in use at the start was placed anew by this kernel's own rules from its boot.";

/// The result of one replay.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub samples: Vec<Sample>,
    pub totals: BTreeMap<String, Option<u64>>,
    pub failures: Vec<Failure>,
    pub frames: FrameMatch,
    pub huge_faults: Option<HugeFaults>,
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Of the first member of an ensemble only: a map is large, and one is drawn.
    pub block_map: Option<BlockMap>,
    pub notes: Vec<String>,
}

impl Prepared<'_> {
    /// One replay, with one chance of what is not known.
    pub(super) fn replay_once(
        &self,
        q: &Question<'_>,
        chance: Chance,
        watch: &mut dyn Watch,
    ) -> Result<Member> {
        let (p, sysctl, options) = (q.preset, q.schedule.first, q.options);
        let mut notes = q.notes(self);
        notes.extend(p.rules.is_sourced().then(|| ENGINE.into()));
        let mut memory = vec![];
        let frames = self.start.frames.len() as u32;
        let turned = (chance.turned && !self.exact).then(|| self.start.turned(&self.causes.first));
        let start = turned.as_ref().unwrap_or(&self.start);
        let mut sim = if q.inherits(self) {
            memory = vec![0; start.words(p.rules, sysctl)?];
            let m = match q.recorded_era {
                true => start.manager(p.rules, sysctl, q.keep_marks, &mut memory)?,
                false => {
                    notes.push(INHERITED.into());
                    start.inherited(p.rules, sysctl, q.keep_marks, &mut memory)?
                }
            };
            notes.extend(start.order_shown.as_ref().map(ListOrder::sentence));
            Sim::new(m, frames)
        } else {
            let zones = self.start.zone_configs();
            let zones = match options.memory {
                Some(bytes) => resized(&zones, bytes, self.start.geometry)?,
                None => zones,
            };
            notes.push(PLACED_ANEW.into());
            reboot(
                &self.start,
                &zones,
                p.rules,
                sysctl,
                q.keep_marks,
                &mut memory,
            )?
        };
        sim.know_touches(self.touches.clone());
        sim.set_huge_rules(q.huge.rules);
        sim.recorded_era = q.as_recorded && self.exact;
        let compacts_itself =
            options.compaction() == CompactionChoice::Modelled && p.rules.compact.is_some();
        let kswapd = q.reclaims(&self.reclaim);
        if kswapd || compacts_itself {
            let Chance { pace, spares, .. } = chance;
            let effort = Effort {
                pace,
                spares,
                kswapd,
            };
            sim.enable_reclaim(&self.reclaim, effort);
            sim.vary(chance.unknowns);
        }
        if compacts_itself {
            sim.enable_own_compaction(&self.recorded_daemon(q));
        }
        if options.compaction() == CompactionChoice::Given && compacts(&p.rules) {
            sim.enable_compaction();
        }
        let mut recorder = Recorder {
            kernel: p.name,
            samples: vec![],
            map: BlockMapBuilder::new(&sim),
            compaction: CompactionTotals::default(),
            watch,
        };
        let mut snapshots = self.snapshots.iter().peekable();
        let total = self.causes.ops.len() as u64;
        let mut changes = q.schedule.changes.iter().peekable();
        self.causes.ops.each(0..self.causes.ops.len(), |i, op| {
            while let Some((t, sysctl)) = changes.next_if(|(t, _)| op.time > *t) {
                sim.change_settings(sysctl, *t);
            }
            while let Some((t, snap)) = snapshots.next_if(|(t, _)| op.time > *t) {
                recorder.sample(&mut sim, snap, *t, self);
                recorder.watch.progress(i as u64, total);
            }
            sim.apply(op, &self.causes);
        })?;
        for (t, snap) in snapshots {
            recorder.sample(&mut sim, snap, *t, self);
        }
        sim.free_huge_pieces();
        recorder.watch.progress(total, total);
        notes.extend(effect_notes(&sim));
        notes.extend(self.compaction_note(q, &sim));
        let m = sim.manager.inspect();
        let mut totals = self.totals(&sim);
        let compaction = recorder.compaction.totals().into_iter();
        totals.extend(compaction.map(|(name, n)| (name, Some(n))));
        Ok(Member {
            samples: recorder.samples,
            totals,
            failures: failures(&sim),
            frames: FrameMatch {
                allocations: sim.tally.allocated,
                matched: sim.tally.on_same_frame,
            },
            huge_faults: HugeFaults::of(
                &sim.tally.huge_faults,
                &sim.tally.huge_work,
                self.start.geometry.huge_order,
            ),
            settings: {
                let mut all = sysctl::describe(m.rules(), m.sysctl());
                let asked = q.huge.asked.iter().cloned();
                all.extend(asked.map(|(name, value)| (name, value.into())));
                all
            },
            block_map: Some(recorder.map.finish()),
            notes,
        })
    }

    /// The recorded kernel's daemon. Compaction ahead of demand begins when the trace shows it first, or with the
    /// replay where the trace shows nothing of kcompactd; where the settings are others than the recorded ones, when they
    /// say so, if the trace does not.
    fn recorded_daemon(&self, q: &Question<'_>) -> RecordedDaemon {
        let c = &self.causes;
        let set = q.schedule.proactive_from(self.start.time);
        let seen = c
            .proactive_from
            .filter(|seen| q.schedule.is_recorded || set.is_some_and(|set| set <= *seen));
        let unseen = (!c.shows_kcompactd || !q.schedule.is_recorded)
            .then_some(set)
            .flatten();
        RecordedDaemon {
            proactive_from: seen.or(unseen),
            runs: c.kcompactd_runs.clone(),
        }
    }

    /// Why pages that the recorded kernel's compaction moved stay, if nothing compacts in their place.
    fn compaction_note(&self, q: &Question<'_>, sim: &Sim) -> Option<String> {
        let stayed = sim.tally.stayed();
        let why = match (compacts(&q.preset.rules), q.options.compaction()) {
            (false, _) => "this kernel does not compact",
            (true, CompactionChoice::None) => "compaction was asked to be left out",
            (true, CompactionChoice::Given) => {
                "there was no free frame for them, or they cannot move here"
            }
            (true, CompactionChoice::Modelled) => return None,
        };
        (stayed > 0).then(|| {
            format!("{stayed} pages that the recorded kernel's compaction moved stay where they are: {why}.")
        })
    }

    fn totals(&self, sim: &Sim) -> BTreeMap<String, Option<u64>> {
        let t = &sim.tally;
        let h = sim.manager.host();
        let reclaim = sim.manager.inspect().reclaim_counters();
        let c = &self.causes.classes;
        let fallbacks = self.causes.shows_fallbacks;
        let fallbacks = fallbacks.then_some(self.causes.fallbacks.count);
        [
            ("allocations", t.allocated),
            ("frees", t.freed),
            ("fallbacks", h.fallbacks),
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
            ("requests_that_would_wait", sim.waits().requests),
            ("huge_pages_gained", t.huge_instead),
            ("huge_pages_lost", t.small_instead),
            ("kernel_stacks_inferred", self.inferred.stacks),
            ("pages_allocated_unseen", t.unseen),
            ("allocations_reordered", self.inferred.reordered),
            ("zone_checks_raced", self.inferred.raced),
        ]
        .into_iter()
        .map(|(n, v)| (n.to_string(), Some(v)))
        .chain([("fallbacks_recorded".to_string(), fallbacks)])
        .collect()
    }
}

/// Collects the model's state at the moment of each snapshot.
struct Recorder<'w> {
    /// Preset name.
    kernel: &'static str,
    samples: Vec<Sample>,
    map: BlockMapBuilder,
    compaction: CompactionTotals,
    watch: &'w mut dyn Watch,
}

impl Recorder<'_> {
    /// Adds the state at a snapshot that was taken at a time, up to which the daemons work. At the start itself none has.
    fn sample(&mut self, sim: &mut Sim, snap: &Snapshot, time: u64, of: &Prepared<'_>) {
        if time > of.start.time {
            sim.live_until(time);
        }
        let seconds = of.seconds(time);
        let m = sim.manager.inspect();
        let blocks: Vec<Vec<ModelBlock>> = m.zones().map(|z| m.blocks(z).collect()).collect();
        let sample = sample::of_model(&sim.manager, &blocks, &snap.name, seconds);
        self.samples.push(sample);
        self.compaction.at_snapshot(sim, snap);
        self.map.push_row(&blocks, seconds);
        self.watch.at_snapshot(self.kernel, snap, &sim.manager);
    }
}

/// Notes on the effects of the recorded kernel that were applied to the model, or left out.
fn effect_notes(sim: &Sim) -> Vec<String> {
    let t = &sim.tally;
    let mut notes = vec![];
    if t.given_pages > 0 {
        notes.push(format!(
            "{} pages that the recorded kernel's reclaim freed were freed as given.",
            t.given_pages
        ));
    }
    let waits = sim.waits();
    if waits.requests > 0 {
        notes.push(format!(
            "At {} moments nothing was left to reclaim: {} requests would have waited until other tasks gave memory back, \
             and the load would have come later. Here they fail.",
            waits.moments, waits.requests
        ));
    }
    if t.moved_here > 0 {
        notes.push(format!(
            "{} pages that the recorded kernel's compaction moved were moved here too, to where this model's free scanner says.",
            t.moved_here
        ));
    }
    notes
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
