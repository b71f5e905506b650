//! The events of a window, in batches.
//!
//! Invariant: batches are in the order of time, and so are their events, though the ends of segments overlap by a little.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::covered::Covered;
use super::names::{Names, Numbers};
use super::segment::{Chosen, Segment, choose};
use super::window::{Beginning, Window, list};
use crate::error::{Error, Result};
use crate::file::{BATCH_EVENTS, Reader, Wanted};
use crate::recording::{EventTable, Events, Lost, Meta, Recording, Snapshot};

/// A window that is open: its recording without events, and these.
pub struct Open {
    /// The recording without its events.
    pub recording: Recording,
    /// Its events.
    pub events: WindowEvents,
    /// What the window is.
    pub covered: Covered,
}

/// The events of a window. They may be read any number of times, by several threads at once.
pub struct WindowEvents {
    segments: Vec<Part>,
    /// The tables of all segments, without events.
    tables: Vec<EventTable>,
    rows: Vec<u64>,
    events: u64,
    span: Option<(u64, u64)>,
}

/// What is read of a segment.
struct Part {
    path: PathBuf,
    /// From when to when, in its own clock.
    from: u64,
    to: u64,
    /// Times of its first and last event.
    span: (u64, u64),
    numbers: Numbers,
}

impl Open {
    /// Opens the window of a file, or of a directory of segments. A window over several boots gives the last one of
    /// them: their clocks have nothing in common.
    ///
    /// # Errors
    /// If a file cannot be read, nothing was recorded in the window, or a date is given and the recording has none.
    pub fn new(path: &Path, window: &Window, beginning: Beginning) -> Result<Open> {
        let files = match list(path)? {
            segments if segments.is_empty() => vec![path.to_owned()],
            segments => segments,
        };
        let segments = files.iter().map(|p| Segment::open(p));
        let segments = segments.collect::<Result<Vec<_>>>()?;
        if path.is_dir()
            && let Some(other) = segments.iter().find(|s| s.offset.is_none())
        {
            let name = other.path.file_name().unwrap_or_default().to_string_lossy();
            return Err(Error::malformed(format!(
                "a directory of recordings that are no segments of one: {name} does not say at what date it began"
            ))
            .in_file(path)
            .help("name one of the recordings in it"));
        }
        let (chosen, covered) = choose(segments, window).map_err(|e| e.in_file(path))?;
        let are_several = chosen.len() > 1;
        let mut names = Names::default();
        let mut open = Open {
            recording: Recording::default(),
            events: WindowEvents {
                segments: vec![],
                tables: vec![],
                rows: vec![],
                events: 0,
                span: None,
            },
            covered,
        };
        for segment in chosen {
            let path = segment.segment.path.clone();
            open.add(segment, are_several, &mut names, beginning)
                .map_err(|e| e.in_file(&path))?;
        }
        open.events.tables.clone_from(&open.recording.events.tables);
        Ok(open)
    }

    fn add(
        &mut self,
        mut chosen: Chosen,
        are_several: bool,
        names: &mut Names,
        beginning: Beginning,
    ) -> Result<()> {
        let is_first = self.events.segments.is_empty();
        let mut snapshots = chosen.segment.file.snapshots()?;
        if are_several {
            // Snapshots of several segments have the same names.
            let stem = chosen.segment.path.file_stem().unwrap_or_default();
            let prefix = format!("{}/", stem.to_string_lossy());
            snapshots
                .iter_mut()
                .for_each(|s| s.name.insert_str(0, &prefix));
        }
        if is_first {
            if beginning != Beginning::Exact {
                match beginning {
                    Beginning::PageFlags => chosen.begin_at_flags(&snapshots),
                    _ => chosen.from = chosen.from.min(chosen.segment.span.0),
                }
                let from = chosen.from.max(chosen.segment.span.0);
                self.covered
                    .reads_from(chosen.segment.date_of(from), beginning);
            }
            self.recording.meta = Meta {
                lost: vec![],
                ..chosen.segment.meta.clone()
            };
        }
        let rest = chosen.segment.file.rest()?;
        let numbers = names.add(&rest, &mut self.recording);
        self.add_snapshots(snapshots, |s| chosen.holds(s));
        let Chosen {
            mut segment,
            from,
            to,
        } = chosen;
        let within = segment.within(from..to)?;
        let before = self.events.events;
        let gaps = segment.meta.lost.iter();
        let inside = within.first..=within.first + within.events;
        let gaps = gaps.filter(|l| inside.contains(&l.before_event));
        self.recording.meta.lost.extend(gaps.map(|l| Lost {
            before_event: before + l.before_event - within.first,
            ..*l
        }));
        let events = &mut self.events;
        events.events += within.events;
        events.rows.resize(self.recording.events.tables.len(), 0);
        for (&to, rows) in numbers.table_of.iter().zip(segment.file.rows()) {
            events.rows[usize::from(to)] += rows;
        }
        if let Some((first, last)) = within.span {
            let all = events.span.get_or_insert((first, last));
            *all = (all.0.min(first), all.1.max(last));
        }
        events.segments.push(Part {
            path: segment.path,
            from,
            to,
            span: segment.span,
            numbers,
        });
        Ok(())
    }

    /// Adds the snapshots that are kept; what only others say of the host goes into the first of them.
    fn add_snapshots(&mut self, snapshots: Vec<Snapshot>, keep: impl Fn(&Snapshot) -> bool) {
        const OF_HOST: [&str; 3] = ["version", "sysctl-vm", "settings"];
        let mut of_host = vec![];
        let mut kept = vec![];
        for snapshot in snapshots {
            if keep(&snapshot) {
                kept.push(snapshot);
            } else {
                let files = snapshot.files.into_iter();
                of_host.extend(files.filter(|f| OF_HOST.contains(&f.name.as_str())));
            }
        }
        if let Some(first) = kept.first_mut() {
            for file in of_host {
                if first.content(&file.name).is_none() {
                    first.files.push(file);
                }
            }
        }
        self.recording.snapshots.append(&mut kept);
    }
}

impl WindowEvents {
    /// Number of events.
    pub fn len(&self) -> u64 {
        self.events
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Between which times the events are, in nanoseconds of the trace clock.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// Number of events of each kind in the segments that the window touches.
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// The tables of a batch, with the wanted fields, without events.
    fn tables(&self, wanted: Wanted) -> Vec<EventTable> {
        let mut tables = self.tables.clone();
        tables.iter_mut().for_each(|t| wanted.choose(t));
        tables
    }

    /// Gives the events of one segment after the other, in batches.
    pub(super) fn in_segments<E: From<Error>>(
        &self,
        wanted: Wanted,
        each: &mut dyn FnMut(Events) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let tables = self.tables(wanted);
        for part in &self.segments {
            part.each(
                &(0..=u64::MAX),
                wanted,
                &tables,
                &mut || Events::default(),
                each,
            )?;
        }
        Ok(())
    }

    /// Gives the events in the order of time, in batches, with what is wanted of them. What is outside of `times` may be
    /// left out. `memory` may give batches back whose events are no longer needed.
    ///
    /// # Errors
    /// If they cannot be read; and those of `each`.
    pub fn each<E: From<Error>>(
        &self,
        times: &RangeInclusive<u64>,
        wanted: Wanted,
        memory: &mut dyn FnMut() -> Events,
        each: &mut dyn FnMut(Events) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let tables = self.tables(wanted);
        // Events that those of the next segment may come before.
        let mut held = Events::default();
        for (i, part) in self.segments.iter().enumerate() {
            let next = self.segments.get(i + 1).map_or(u64::MAX, |n| n.span.0);
            part.each(times, wanted, &tables, memory, &mut |batch| {
                let last = batch.time.last().copied().unwrap_or(0);
                if held.is_empty() && last <= next {
                    return each(batch);
                }
                held.append(batch);
                held.sort_by_time(&mut []);
                let ready = held.time.partition_point(|&t| t <= last.min(next));
                let later = held.split_off(ready);
                match std::mem::replace(&mut held, later) {
                    ready if ready.is_empty() => Ok(()),
                    ready => each(ready),
                }
            })?;
        }
        match held.is_empty() {
            true => Ok(()),
            false => each(held),
        }
    }
}

impl Part {
    /// Gives its events within the window, and those of the parts of its file that touch `times`, in batches with the
    /// numbers and `tables` of the whole.
    fn each<E: From<Error>>(
        &self,
        times: &RangeInclusive<u64>,
        wanted: Wanted,
        tables: &[EventTable],
        memory: &mut dyn FnMut() -> Events,
        each: &mut dyn FnMut(Events) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let named = |e: Error| e.in_file(&self.path);
        let from = self.from.max(*times.start());
        let to = self.to.min(times.end().saturating_add(1));
        if self.span.0 >= to || self.span.1 < from {
            return Ok(());
        }
        let are_same = self.numbers.are_same(tables.len());
        let mut reader = Reader::open(&self.path)?;
        let spans: Vec<_> = reader.parts().map(|p| p.span).collect();
        for (i, span) in spans.into_iter().enumerate() {
            if span.is_some_and(|(first, last)| first >= to || last < from) {
                continue;
            }
            let mut batches = reader.batches(i, wanted).map_err(named)?;
            loop {
                let mut batch = match are_same {
                    true => memory(),
                    false => Events::default(),
                };
                if !batches.next(BATCH_EVENTS, &mut batch).map_err(named)? {
                    break;
                }
                batch.keep(self.from..self.to);
                if !are_same {
                    self.numbers.renumber(&mut batch, tables);
                }
                if !batch.is_empty() {
                    each(batch)?;
                }
            }
        }
        Ok(())
    }
}
