//! One replay of one kernel, with kswapd at one pace.

use super::block_map::BlockMapBuilder;
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
use crate::replay::model::reclaim::RecordedDaemon;
use crate::replay::model::{Prepared, Sim, reboot, resized};
use crate::replay::start::ListOrder;
use std::collections::BTreeMap;
use unfrag_linux::gfp_text;
use unfrag_linux::recording::Snapshot;

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
    /// One replay, with kswapd at a pace.
    pub(super) fn replay_once(
        &self,
        q: &Question<'_>,
        pace: u32,
        watch: &mut dyn Watch,
    ) -> Result<Member> {
        let (p, sysctl, options) = (q.preset, q.sysctl, q.options);
        let mut notes = vec![];
        let mut memory = vec![];
        let frames = self.start.frames.len() as u32;
        let mut sim = if q.recorded_era && options.memory.is_none() {
            memory = vec![0; self.start.words(p.rules, sysctl)?];
            let m = self
                .start
                .manager(p.rules, sysctl, q.keep_marks, &mut memory)?;
            notes.extend(self.start.order_shown.as_ref().map(ListOrder::sentence));
            Sim::new(m, frames)
        } else {
            let zones = self.start.zone_configs();
            let zones = match options.memory {
                Some(bytes) => resized(&zones, bytes, self.start.geometry)?,
                None => zones,
            };
            notes.push(
                "What was in use at the start was placed anew by this kernel's own rules from its boot.".into(),
            );
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
        sim.recorded_era = q.as_recorded && self.exact;
        let compacts_itself =
            options.compaction() == CompactionChoice::Modelled && p.rules.compact.is_some();
        if let Some(e) = self.modelled_reclaim(options) {
            sim.enable_reclaim(e, pace);
        } else if compacts_itself {
            sim.enable_reclaim(&self.reclaim, pace);
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
        self.causes.ops.each(0..self.causes.ops.len(), |i, op| {
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
            settings: sysctl::describe(m.rules(), m.sysctl()),
            block_map: Some(recorder.map.finish()),
            notes,
        })
    }

    /// The recorded kernel's daemon. Compaction ahead of demand begins when the trace shows it first, or with the
    /// replay where the trace shows nothing of kcompactd, or a proactiveness is asked for that the recorded kernel did not
    /// work by.
    fn recorded_daemon(&self, q: &Question<'_>) -> RecordedDaemon {
        let c = &self.causes;
        let unseen = !c.shows_kcompactd || q.asks_for("vm.compaction_proactiveness");
        let unseen = unseen.then_some(self.start.time);
        RecordedDaemon {
            proactive_from: c.proactive_from.or(unseen),
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
