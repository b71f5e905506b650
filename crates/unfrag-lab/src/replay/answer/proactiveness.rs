//! `vm.compaction_proactiveness` as the recorded kernel's daemon shows it.
//!
//! A run ahead of demand ends when the zone's score is at its low mark, which is 100 - proactiveness, and a snapshot
//! just after the run shows that score. `spec: 5.5`

use super::schedule::PROACTIVENESS;
use crate::era::settings::RecordedSettings;
use crate::host::Host;
use crate::replay::causes::{Causes, DaemonRun};
use crate::replay::start::Start;
use unfrag_linux::recording::Snapshot;

/// The lowest low mark (`fragmentation_score_wmark`).
const LOWEST_MARK: u64 = 5;

/// A setting of the recorded host that nobody recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guess {
    /// `vm.compaction_proactiveness`.
    pub(super) percent: u8,
    /// From when on, in nanoseconds of the trace's clock.
    pub(super) from: u64,
}

/// What the setting was from the first run on, where all that is recorded says 0: a run contradicts that, so that it was
/// set later.
pub(super) fn proactiveness(
    causes: &Causes,
    start: &Start,
    snapshots: &[(u64, &Snapshot)],
    recorded: &RecordedSettings,
) -> Option<Guess> {
    let values = recorded.values(PROACTIVENESS);
    if values.is_empty() || values.iter().any(|v| v.1 != "0") {
        return None;
    }
    Some(Guess {
        percent: observed(&causes.kcompactd_runs, start, snapshots)?,
        from: causes.proactive_from?,
    })
}

/// From the run that a snapshot follows soonest. Of runs whose scanners met, only that they did not get to the low
/// mark is known.
fn observed(runs: &[DaemonRun], start: &Start, snapshots: &[(u64, &Snapshot)]) -> Option<u8> {
    let mut best: Option<(bool, u64, u8)> = None;
    for (i, run) in runs.iter().enumerate() {
        if run.ns == 0 || run.moved == 0 {
            continue;
        }
        let end = run.begin + run.ns;
        let next = runs.get(i + 1).map_or(u64::MAX, |r| r.begin);
        let after = snapshots.iter().find(|(t, _)| (end..next).contains(t));
        let Some(((at, snap), zone_start)) = after.zip(run.zone_start) else {
            continue;
        };
        let Some(score) = score(snap, start, zone_start) else {
            continue;
        };
        let low = if run.met {
            score.saturating_sub(1)
        } else {
            score
        };
        let p = 100u64.saturating_sub(low.max(LOWEST_MARK)) as u8;
        let this = (run.met, at - end, p);
        best = Some(best.map_or(this, |b| b.min(this)));
    }
    best.map(|(_, _, p)| p)
}

/// The score of the zone that begins at a frame, in percent.
fn score(snap: &Snapshot, start: &Start, zone_start: u64) -> Option<u64> {
    let zone = start
        .zones
        .iter()
        .find(|z| z.config.start.0 == zone_start)?;
    let host = Host::of_snapshot(snap);
    let zone = host.zone(u32::from(zone.config.node.0), zone.config.kind.name())?;
    zone.outside(start.geometry.block_order.0)
}
