//! A segment, and which segments a window touches.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::covered::{Covered, Recorded};
use super::window::{BOOT, EPOCH_OFFSET, Window};
use crate::error::{Error, Result};
use crate::file::{PartFacts, Reader};
use crate::kpageflags;
use crate::recording::{Meta, Snapshot};

/// Nanoseconds of events before a snapshot, so that it lies within the trace.
const BEFORE: u64 = 1_000_000_000;

/// A segment of which only its manifest was read.
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) file: Reader<BufReader<File>>,
    pub(super) meta: Meta,
    pub(super) parts: Vec<PartFacts>,
    /// Times of its first and last event in its own clock.
    pub(super) span: (u64, u64),
    /// Nanoseconds from its clock to the date.
    pub(super) offset: Option<i64>,
}

impl Segment {
    pub(super) fn open(path: &Path) -> Result<Segment> {
        let mut file = Reader::open(path)?;
        let meta = file.meta();
        let mut parts: Vec<_> = file.parts().collect();
        for (i, part) in parts.iter_mut().enumerate() {
            // Files whose events are one part may not say its times.
            if part.span.is_none() {
                part.span = times(&mut file, i).map_err(|e| e.in_file(path))?;
            }
        }
        let first = parts.first().and_then(|p| p.span);
        let last = parts.last().and_then(|p| p.span);
        let mut offset = meta.facts.get(EPOCH_OFFSET).and_then(|n| n.parse().ok());
        let span = match first.zip(last) {
            Some((first, last)) => (first.0, last.1),
            // Without events it is the snapshots that begin and end.
            None => {
                let snapshots = file.snapshots()?;
                let times = snapshots.iter().filter_map(begin_of);
                let recorded = Recorded::of(times);
                if offset.is_none() && recorded.is_some_and(|r| r.is_dated) {
                    offset = Some(meta.snapshot_offset_ns);
                }
                let own = |t: u64| t.saturating_add_signed(-meta.snapshot_offset_ns);
                recorded.map_or((0, 0), |r| (own(r.begin), own(r.end)))
            }
        };
        Ok(Segment {
            path: path.to_owned(),
            offset,
            meta,
            file,
            parts,
            span,
        })
    }

    /// The date of a time of this segment's clock, or the time itself if it has no dates.
    pub(super) fn date_of(&self, time: u64) -> u64 {
        self.offset.map_or(time, |o| time.saturating_add_signed(o))
    }

    /// A date in this segment's clock.
    fn time_of(&self, date: u64) -> Option<u64> {
        Some(date.saturating_add_signed(-self.offset?))
    }

    /// Which of its events are within a window, and the times of the first and the last of them.
    pub(super) fn within(&mut self, window: Range<u64>) -> Result<Within> {
        let mut within = Within::default();
        let mut before = 0;
        for (i, part) in self.parts.iter().enumerate() {
            match part.span {
                Some((first, last)) if first >= window.start && last < window.end => {
                    within.add(before, part.events, (first, last));
                }
                Some((first, last)) if first < window.end && last >= window.start => {
                    let mut number = before;
                    self.file.times(i, |times| {
                        let from = times.partition_point(|&t| t < window.start);
                        let to = times.partition_point(|&t| t < window.end);
                        let inside = &times[from..to.max(from)];
                        if let (Some(&first), Some(&last)) = (inside.first(), inside.last()) {
                            let events = inside.len() as u64;
                            within.add(number + from as u64, events, (first, last));
                        }
                        number += times.len() as u64;
                    })?;
                }
                _ => {}
            }
            before += part.events;
        }
        Ok(within)
    }
}

/// A run of a segment's events.
#[derive(Default)]
pub(super) struct Within {
    /// Number of the first.
    pub(super) first: u64,
    /// How many.
    pub(super) events: u64,
    /// Times of the first and the last.
    pub(super) span: Option<(u64, u64)>,
}

impl Within {
    fn add(&mut self, number: u64, events: u64, (first, last): (u64, u64)) {
        if self.events == 0 {
            self.first = number;
        }
        self.events += events;
        self.span = Some((self.span.map_or(first, |(first, _)| first), last));
    }
}

/// Times of the first and last event of a part.
fn times(file: &mut Reader<BufReader<File>>, part: usize) -> Result<Option<(u64, u64)>> {
    let mut span = None;
    file.times(part, |times| {
        if let (Some(&first), Some(&last)) = (times.first(), times.last()) {
            span = Some((span.map_or(first, |(first, _)| first), last));
        }
    })?;
    Ok(span)
}

/// What is read of a segment: from when to when, in its own clock.
pub(super) struct Chosen {
    pub(super) segment: Segment,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Chosen {
    /// Begins further back, if there is a snapshot before from which a replay can begin: one with the flags of all page
    /// frames.
    pub(super) fn begin_at_flags(&mut self, snapshots: &[Snapshot]) {
        self.from = at_flags(snapshots.iter(), |s| self.time(s), self.from);
    }

    /// Whether a snapshot is in it; those without a date are.
    pub(super) fn holds(&self, snapshot: &Snapshot) -> bool {
        let time = self.time(snapshot);
        time.is_none_or(|t| (self.from..self.to).contains(&t))
    }

    /// When a snapshot was taken, in the segment's clock.
    fn time(&self, snapshot: &Snapshot) -> Option<u64> {
        let offset = self.segment.meta.snapshot_offset_ns;
        begin_of(snapshot).map(|t| t.saturating_add_signed(-offset))
    }
}

/// When the reading of a snapshot began, in the clock of snapshots.
pub(super) fn begin_of(snapshot: &Snapshot) -> Option<u64> {
    let times = snapshot.files.iter().filter_map(|f| f.time);
    times.map(|t| t.0).min()
}

/// The last time up to `from` at which page flags were read, less a little; `from` if they never were.
pub(super) fn at_flags<'s>(
    snapshots: impl Iterator<Item = &'s Snapshot>,
    time: impl Fn(&Snapshot) -> Option<u64>,
    from: u64,
) -> u64 {
    let flagged = snapshots.filter(|s| s.content(kpageflags::NAME).is_some());
    let before = flagged.filter_map(time).filter(|&t| t <= from).max();
    before.map_or(from, |at| at.saturating_sub(BEFORE))
}

/// The segments that a window touches, and what of each; and what the window is.
pub(super) fn choose(segments: Vec<Segment>, window: &Window) -> Result<(Vec<Chosen>, Covered)> {
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
        return Err(Error::malformed("the directory has no segments"));
    };
    let is_dated = first.offset.is_some();
    // Dates, as far as the recording has them; else times of its clock.
    let recorded = Recorded {
        begin: first.date_of(first.span.0),
        end: last.date_of(last.span.1),
        is_dated,
    };
    let mut covered = Covered::of(window, recorded)?;
    let (from, to) = covered.asked();
    let own = |s: &Segment, date: u64| match is_dated {
        true => s.time_of(date),
        false => Some(date),
    };
    let mut chosen = vec![];
    for segment in segments {
        let from = from.map_or(Some(0), |d| own(&segment, d)).unwrap_or(0);
        let to = to
            .map_or(Some(u64::MAX), |d| own(&segment, d))
            .unwrap_or(u64::MAX);
        if segment.span.0 < to && segment.span.1 >= from {
            chosen.push(Chosen { segment, from, to });
        }
    }
    let boot = |c: &Chosen| c.segment.meta.facts.get(BOOT).cloned();
    let last = chosen.last().map(boot);
    let mut left_out: Vec<_> = chosen
        .iter()
        .map(boot)
        .filter(|b| Some(b) != last.as_ref())
        .collect();
    left_out.dedup();
    chosen.retain(|c| Some(boot(c)) == last);
    match (chosen.first(), chosen.last()) {
        (Some(first), Some(last)) => {
            covered.has_times(first.from..last.to);
            if !left_out.is_empty() {
                let begin = first.segment.date_of(first.segment.span.0);
                covered.leaves_out_boots(left_out.len(), begin);
            }
        }
        _ => return Err(covered.nothing("nothing was recorded")),
    }
    Ok((chosen, covered))
}
