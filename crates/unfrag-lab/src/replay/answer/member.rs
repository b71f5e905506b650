//! The result of one replay of one kernel, with one chance of what is not known.

use super::options::CompactionChoice;
use super::question::Question;
use super::report::{BlockMap, Failure, FrameMatch, HugeFaults, Sample};
use crate::replay::model::compaction::compacts;
use crate::replay::model::reclaim::RecordedDaemon;
use crate::replay::model::{Prepared, Sim};
use std::collections::BTreeMap;
use unfrag_linux::gfp_text;

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
    /// The recorded kernel's daemon. Compaction ahead of demand begins when the trace shows it first, or with the
    /// replay where the trace shows nothing of kcompactd; where the settings are others than the recorded ones, when they
    /// say so, if the trace does not.
    pub(super) fn recorded_daemon(&self, q: &Question<'_>) -> RecordedDaemon {
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
    pub(super) fn compaction_note(&self, q: &Question<'_>, sim: &Sim) -> Option<String> {
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

    pub(super) fn totals(&self, sim: &Sim) -> BTreeMap<String, Option<u64>> {
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

/// Notes on the effects of the recorded kernel that were applied to the model, or left out.
pub(super) fn effect_notes(sim: &Sim) -> Vec<String> {
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

pub(super) fn failures(sim: &Sim) -> Vec<Failure> {
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
