//! The window of what is in memory: a trace that was read, or dated copies of procfs.
//!
//! Invariant: it is the window that the same recording has in a file.

use std::ops::Range;

use super::covered::{Covered, Recorded};
use super::segment::{at_flags, begin_of};
use super::window::{Beginning, EPOCH_OFFSET, Window};
use crate::error::{Error, Result};
use crate::recording::{Recording, Snapshot};
use crate::snapshots;

/// Cuts a recording down to a window.
///
/// # Errors
/// If nothing was recorded in the window, or a date is given and the recording has none.
pub fn cut(recording: &mut Recording, window: &Window, beginning: Beginning) -> Result<Covered> {
    let events = &recording.events.time;
    let (Some(&first), Some(&last)) = (events.first(), events.last()) else {
        return keep(&mut recording.snapshots, window);
    };
    let mut covered = Covered::of(window, recorded(recording, first, last))?;
    if window.is_all() {
        return Ok(covered);
    }
    let epoch = epoch(recording);
    let date = |time: u64| epoch.map_or(time, |o| time.saturating_add_signed(o));
    let own = |t: u64| epoch.map_or(t, |o| t.saturating_add_signed(-o));
    let (from, to) = covered.asked();
    let times = from.map_or(0, own)..to.map_or(u64::MAX, own);
    covered.has_times(times.clone());
    let offset = recording.meta.snapshot_offset_ns;
    let taken = |s: &Snapshot| begin_of(s).map(|t| t.saturating_add_signed(-offset));
    let mut kept = times;
    if beginning == Beginning::PageFlags {
        kept.start = at_flags(recording.snapshots.iter(), taken, kept.start);
        covered.reads_from(date(kept.start.max(first)), beginning);
    }
    if beginning == Beginning::Recorded {
        kept.start = 0;
        covered.reads_from(date(first), beginning);
    }
    cut_events(recording, kept.clone());
    let inside = |s: &Snapshot| taken(s).is_none_or(|t| kept.contains(&t));
    recording.snapshots.retain(inside);
    Ok(covered)
}

/// What the whole of a recording is whose events, which are not in it, lie between these times.
///
/// # Errors
/// As of [`cut`] for the whole recording.
pub fn whole(recording: &Recording, span: Option<(u64, u64)>) -> Result<Covered> {
    let window = Window::default();
    match span {
        Some((first, last)) => Covered::of(&window, recorded(recording, first, last)),
        None => keep(&mut recording.snapshots.clone(), &window),
    }
}

/// Nanoseconds from the clock of the events to dates, where it is known.
fn epoch(recording: &Recording) -> Option<i64> {
    recording.meta.facts.get(EPOCH_OFFSET)?.parse().ok()
}

/// When a recording was made that has events from one time to another.
fn recorded(recording: &Recording, first: u64, last: u64) -> Recorded {
    let epoch = epoch(recording);
    let date = |time: u64| epoch.map_or(time, |o| time.saturating_add_signed(o));
    Recorded {
        begin: date(first),
        end: date(last),
        is_dated: epoch.is_some(),
    }
}

/// Keeps the events within these times, and the gaps between them.
fn cut_events(recording: &mut Recording, times: Range<u64>) {
    let all = &recording.events.time;
    let first = all.partition_point(|&t| t < times.start) as u64;
    let end = all.partition_point(|&t| t < times.end) as u64;
    recording.events.keep(times);
    let lost = &mut recording.meta.lost;
    lost.retain(|l| (first..=end).contains(&l.before_event));
    lost.iter_mut().for_each(|l| l.before_event -= first);
}

/// Keeps the snapshots within a window. Those without a time are in none but the whole.
///
/// # Errors
/// If none was taken in the window, if none has a time, or a date is given and their times are none.
pub fn keep(snapshots: &mut Vec<Snapshot>, window: &Window) -> Result<Covered> {
    let mut recorded = Recorded::of(snapshots.iter().filter_map(begin_of));
    let dates = recorded
        .filter(|r| !r.is_dated)
        .and_then(|_| ahead(snapshots));
    let date = |s: &Snapshot| begin_of(s).map(|t| t.saturating_add_signed(dates.unwrap_or(0)));
    if dates.is_some() {
        recorded = Recorded::of(snapshots.iter().filter_map(date));
    }
    let recorded = match recorded {
        Some(recorded) => recorded,
        None if window.is_all() => Recorded {
            begin: 0,
            end: 0,
            is_dated: false,
        },
        None => {
            return Err(Error::unsupported(
                "it does not say when it was taken, so no window of time can be chosen",
            )
            .help("leave --from and --to out"));
        }
    };
    let covered = Covered::of(window, recorded)?;
    if window.is_all() {
        return Ok(covered);
    }
    snapshots.retain(|s| date(s).is_some_and(|t| covered.times().contains(&t)));
    match snapshots.is_empty() {
        true => Err(covered.nothing("no snapshot was taken")),
        false => Ok(covered),
    }
}

/// Nanoseconds from a clock that begins at boot to dates, where the name of a copy is the date of it.
fn ahead(snapshots: &[Snapshot]) -> Option<i64> {
    let of = |s: &Snapshot| {
        let date = snapshots::date(s.name.rsplit('/').next()?)?;
        i64::try_from(date).ok()?.checked_sub_unsigned(begin_of(s)?)
    };
    snapshots.iter().find_map(of)
}
