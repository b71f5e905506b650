//! Pages that were allocated without an event.
//!
//! Bulk allocations have none: the stack of a thread, a vmalloc area. A later free shows some of them;
//! those that stay would be missing from the replay. But vmstat counts every allocation (`pgalloc_*`), and
//! the trace shows all others: the difference at a snapshot was allocated unseen. The time at which a
//! counter was read is known only to within two frees, so the smallest possible difference is taken.
//!
//! `spec: 7.6, 10`

use super::clock::{Clock, plausible};
use super::found::Causes;
use super::operations::{Action, Op};
use crate::error::Result;
use crate::geometry::large_order;
use crate::input::running_sum::RunningSum;
use unfrag_eras::{Geometry, Gfp, MigrateType};
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::Snapshot;

/// Pages that were allocated unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unseen {
    /// From when on, in nanoseconds of the trace clock.
    since: u64,
    pages: u64,
}

/// Inserts what was allocated unseen between the snapshots (ascending) into `causes`: before the next
/// request for an unmovable page, and on its CPU.
///
/// # Errors
/// If a snapshot's vmstat cannot be read.
pub fn insert<'s>(
    causes: &mut Causes,
    geometry: Geometry,
    snapshots: impl Iterator<Item = &'s Snapshot>,
    clock: &Clock,
) -> Result<()> {
    let unmovable = |_, o: &Op| {
        let of = |gfp: Gfp| gfp.mobility() == Some(MigrateType::Unmovable);
        o.allocated()
            .is_some_and(|(b, gfp)| b.order == 0 && of(gfp))
    };
    let mut inserts = vec![];
    for Unseen { since, pages } in unseen(causes, geometry, snapshots, clock)? {
        let from = causes.ops.at(since.saturating_add(1))?;
        // Without such a request nothing is inserted.
        if let Some((at, beside)) = causes.ops.find(from..causes.ops.len(), unmovable)? {
            let pages = u32::try_from(pages).unwrap_or(u32::MAX).into();
            let action = Action::AllocUnseen { pages };
            inserts.push((at, Op { action, ..beside }));
        }
    }
    causes.ops.insert(inserts)
}

fn unseen<'s>(
    causes: &Causes,
    geometry: Geometry,
    snapshots: impl Iterator<Item = &'s Snapshot>,
    clock: &Clock,
) -> Result<Vec<Unseen>> {
    let mut taken = RunningSum::new(causes.ops.room());
    let mut added = Ok(());
    causes.ops.each(0..causes.ops.len(), |_, op| {
        let pages = op.pages_taken();
        if pages > 0 && added.is_ok() {
            added = taken.add(op.time, pages);
        }
    })?;
    added?;
    let taken = taken.finish()?;
    let huge = 1i64 << large_order(geometry);
    // The largest difference so far, and the last time at which the counters were read.
    let mut ahead: Option<(i64, u64)> = None;
    // Successes of direct compaction that captured a huge page, by all that is known up to the last snapshot.
    let (mut successes, mut captured) = (0, 0);
    let mut all = vec![];
    for snap in snapshots {
        let (Some(counted), Some((from, to))) = (counted(snap)?, clock.dates(snap)?) else {
            continue;
        };
        let more = (counted.successes - successes).max(0);
        (successes, captured) = (counted.successes, captured + more);
        let at = |time, captured| -> Result<i64> {
            Ok(counted.allocated + huge * captured - taken.at(time)?)
        };
        ahead = match ahead {
            // What the counters had before the first snapshot.
            None => Some((at(from, captured)?, to)),
            Some((seen, since)) => {
                // A success without a capture is counted where its page is allocated: not twice.
                let surplus = (at(to, captured)? - seen).max(0);
                captured -= more.min((surplus + huge / 2) / huge);
                match at(to, captured)? {
                    least if least > seen => {
                        let pages = (least - seen) as u64;
                        all.push(Unseen { since, pages });
                        Some((least, to))
                    }
                    _ => Some((seen, to)),
                }
            }
        };
    }
    Ok(all)
}

/// What a snapshot counts since the boot.
struct Counted {
    /// Pages allocated, but those that direct compaction captured.
    allocated: i64,
    /// Successes of direct compaction. A huge page that it captures is traced, but not counted.
    successes: i64,
}

fn counted(snap: &Snapshot) -> Result<Option<Counted>> {
    let Some(text) = snap.file("vmstat") else {
        return Ok(None);
    };
    let stat = VmStat::parse(text)?;
    let allocated: u64 = stat
        .counters
        .iter()
        .filter(|c| c.0.starts_with("pgalloc_"))
        .map(|c| c.1)
        .fold(0, u64::saturating_add);
    let successes = stat.get("compact_success").unwrap_or(0);
    // As pages they are no more than a host can count.
    let successes = plausible(successes.saturating_mul(1 << 16)).map(|n| n >> 16);
    let allocated = plausible(allocated).filter(|&n| n > 0);
    Ok(allocated
        .zip(successes)
        .map(|(allocated, successes)| Counted {
            allocated,
            successes,
        }))
}
