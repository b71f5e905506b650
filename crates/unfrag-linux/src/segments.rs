//! A recording of days: a directory of segments, and a window of time over them or over one file.
//!
//! A segment is an `.unfrag` file, complete in itself. Its name begins with the date at which it begins, so the order of
//! names is that of time. The clock of events begins at boot; the fact [`EPOCH_OFFSET`] says how far it is from the date,
//! and [`BOOT`] which boot it was.
//!
//! Invariant: no more is read than the parts of the files that the window touches. What is read begins at a snapshot with
//! page flags, where there is one before the window, so that it can be replayed by itself.

use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::Hash;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file::Reader;
use crate::kpageflags;
use crate::recording::{EventTable, Events, FieldKind, Lost, Meta, Recording, Snapshot, Task};

/// The fact with the nanoseconds to add to an event's time to get nanoseconds since 1970.
pub const EPOCH_OFFSET: &str = "epoch_offset_ns";
/// The fact with the identity of the boot.
pub const BOOT: &str = "boot_id";

/// The ending of a segment's name.
const ENDING: &str = ".unfrag";
/// Nanoseconds of events before a snapshot, so that it lies within the trace.
const BEFORE: u64 = 1_000_000_000;

/// A moment, as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds after the beginning of the recording.
    After(u64),
    /// Nanoseconds since 1970.
    At(u64),
}

/// A window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Where it begins; with the recording if `None`.
    pub from: Option<Moment>,
    /// Where it ends: what happens then is no longer in it. With the recording if `None`.
    pub to: Option<Moment>,
}

impl Window {
    /// Whether it is the whole recording.
    pub fn is_all(&self) -> bool {
        *self == Window::default()
    }
}

/// The segments in a directory, in order; none of what is no directory.
///
/// # Errors
/// If the directory cannot be read.
pub fn list(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![]);
    }
    let named = |e: std::io::Error| Error::from(e).in_file(path);
    let mut all = vec![];
    for item in fs::read_dir(path).map_err(named)? {
        let item = item.map_err(named)?;
        if item.file_name().to_string_lossy().ends_with(ENDING) && item.path().is_file() {
            all.push(item.path());
        }
    }
    all.sort();
    Ok(all)
}

/// What is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Events and snapshots.
    All,
    /// Snapshots alone.
    Snapshots,
}

/// Reads the window of a file, or of a directory of segments. A window over several boots gives the last one of them:
/// their clocks have nothing in common.
///
/// # Errors
/// If a file cannot be read, nothing was recorded in the window, or a date is given and the recording has none.
pub fn read(path: &Path, window: &Window, extent: Extent) -> Result<Recording> {
    let files = match list(path)? {
        segments if segments.is_empty() => vec![path.to_owned()],
        segments => segments,
    };
    let mut segments = files
        .iter()
        .map(|p| Segment::open(p))
        .collect::<Result<Vec<_>>>()?;
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
    let chosen = choose(&mut segments, window).map_err(|e| e.in_file(path))?;
    let mut all = Joined::default();
    let are_several = chosen.len() > 1;
    for mut part in chosen {
        let place = part.segment.path.clone();
        // Snapshots of several segments have the same names.
        let stem = place.file_stem().unwrap_or_default().to_string_lossy();
        let prefix = if are_several {
            format!("{stem}/")
        } else {
            String::new()
        };
        part.read(&mut all, extent, &prefix)
            .map_err(|e| e.in_file(&place))?;
    }
    Ok(all.finish())
}

/// A segment of which only its manifest was read.
struct Segment {
    path: PathBuf,
    file: Reader<BufReader<File>>,
    meta: Meta,
    /// Times of its first and last event in its own clock.
    span: (u64, u64),
    /// Nanoseconds from its clock to the date.
    offset: Option<i64>,
}

impl Segment {
    fn open(path: &Path) -> Result<Segment> {
        let mut file = Reader::open(path)?;
        let meta = file.meta();
        let mut spans: Vec<_> = file.parts().map(|p| p.span).collect();
        // Files whose events are one part do not say its times.
        if let [None] = spans[..] {
            let events = file.part(0).map_err(|e| e.in_file(path))?;
            spans[0] = events
                .time
                .first()
                .copied()
                .zip(events.time.last().copied());
        }
        let first = spans.first().copied().flatten();
        let last = spans.last().copied().flatten();
        let span = first.zip(last).map_or((0, 0), |(a, b)| (a.0, b.1));
        Ok(Segment {
            path: path.to_owned(),
            offset: meta.facts.get(EPOCH_OFFSET).and_then(|n| n.parse().ok()),
            meta,
            file,
            span,
        })
    }

    /// A date in this segment's clock.
    fn time_of(&self, date: u64) -> Option<u64> {
        Some(date.saturating_add_signed(-self.offset?))
    }
}

/// What is read of a segment: from when to when, in its own clock.
struct Chosen<'s> {
    segment: &'s mut Segment,
    from: u64,
    to: u64,
}

/// The segments that a window touches, and what of each.
fn choose<'s>(segments: &'s mut [Segment], window: &Window) -> Result<Vec<Chosen<'s>>> {
    let Some(first) = segments.first() else {
        return Err(Error::malformed("the directory has no segments"));
    };
    let (begin, offset) = (first.span.0, first.offset);
    // Dates, as far as the recording has them; else times of its clock.
    let date = |m: Moment| match (m, offset) {
        (Moment::After(ns), Some(offset)) => {
            Ok(begin.saturating_add_signed(offset).saturating_add(ns))
        }
        (Moment::After(ns), None) => Ok(begin.saturating_add(ns)),
        (Moment::At(date), Some(_)) => Ok(date),
        (Moment::At(_), None) => Err(Error::unsupported(
            "the recording does not say at what date it was made",
        )
        .help("give times from its beginning on, such as --from 90m --to 150m")),
    };
    let from = window.from.map(date).transpose()?;
    let to = window.to.map(date).transpose()?;
    let own = |s: &Segment, date: u64| match offset {
        Some(_) => s.time_of(date),
        None => Some(date),
    };
    let mut chosen = vec![];
    for segment in segments {
        let from = from.map_or(Some(0), |d| own(segment, d)).unwrap_or(0);
        let to = to
            .map_or(Some(u64::MAX), |d| own(segment, d))
            .unwrap_or(u64::MAX);
        if segment.span.0 < to && segment.span.1 >= from {
            chosen.push(Chosen { segment, from, to });
        }
    }
    let boot = |c: &Chosen<'_>| c.segment.meta.facts.get(BOOT).cloned();
    let last = chosen.last().map(boot);
    chosen.retain(|c| Some(boot(c)) == last);
    if chosen.is_empty() {
        return Err(
            Error::malformed("nothing was recorded in this window of time")
                .help("`unfrag inspect` shows from when to when the snapshots are"),
        );
    }
    Ok(chosen)
}

impl Chosen<'_> {
    fn read(&mut self, all: &mut Joined, extent: Extent, prefix: &str) -> Result<()> {
        let mut snapshots = self.segment.file.snapshots()?;
        for snapshot in &mut snapshots {
            snapshot.name.insert_str(0, prefix);
        }
        let offset = self.segment.meta.snapshot_offset_ns;
        let time = |s: &Snapshot| {
            let begin = s.files.iter().filter_map(|f| f.time).map(|t| t.0).min();
            begin.map(|t| t.saturating_add_signed(-offset))
        };
        if all.is_empty() && self.from > 0 {
            // A replay can begin at the flags of all page frames.
            let flagged = |s: &&Snapshot| s.content(kpageflags::NAME).is_some();
            let before = snapshots.iter().filter(flagged).filter_map(time);
            if let Some(at) = before.filter(|&t| t <= self.from).max() {
                self.from = at.saturating_sub(BEFORE);
            }
        }
        let within = |t: u64| (self.from..self.to).contains(&t);
        let rest = self.segment.file.rest()?;
        all.begin(&self.segment.meta, &rest);
        if extent == Extent::All {
            let parts: Vec<_> = self.segment.file.parts().collect();
            let mut before = 0;
            for (i, part) in parts.iter().enumerate() {
                let touches = part.span.is_none_or(|(a, b)| a < self.to && b >= self.from);
                if touches {
                    let events = self.segment.file.part(i)?;
                    all.add(events, before, self.from, self.to);
                }
                before += part.events;
            }
        }
        all.add_snapshots(snapshots, |s| time(s).is_none_or(within));
        Ok(())
    }
}

/// The number of each item in `all`, whose numbers `known` holds; those that are new go behind the others.
fn numbers<T: Clone + Eq + Hash>(
    items: &[T],
    all: &mut Vec<T>,
    known: &mut HashMap<T, u32>,
) -> Vec<u32> {
    let number = |item: &T| {
        let next = all.len() as u32;
        let number = *known.entry(item.clone()).or_insert(next);
        if number == next {
            all.push(item.clone());
        }
        number
    };
    items.iter().map(number).collect()
}

/// Segments put together.
#[derive(Default)]
struct Joined {
    recording: Recording,
    tasks: HashMap<Task, u32>,
    strings: HashMap<String, u32>,
    /// Of the present segment: number of each task, string and table in the whole.
    task_of: Vec<u32>,
    string_of: Vec<u32>,
    table_of: Vec<u8>,
    lost: Vec<Lost>,
}

impl Joined {
    fn is_empty(&self) -> bool {
        self.recording.meta == Meta::default()
    }

    /// Begins a segment.
    fn begin(&mut self, meta: &Meta, rest: &Recording) {
        if self.is_empty() {
            self.recording.meta = Meta {
                lost: vec![],
                ..meta.clone()
            };
        }
        self.lost.clone_from(&meta.lost);
        let Recording { tasks, strings, .. } = &mut self.recording;
        self.task_of = numbers(&rest.tasks, tasks, &mut self.tasks);
        self.string_of = numbers(&rest.strings, strings, &mut self.strings);
        self.table_of.clear();
        for table in &rest.events.tables {
            let of = |t: &EventTable| {
                (&t.system, &t.name, &t.fields) == (&table.system, &table.name, &table.fields)
            };
            let tables = &mut self.recording.events.tables;
            let number = tables.iter().position(of).unwrap_or_else(|| {
                tables.push(EventTable {
                    columns: vec![vec![]; table.fields.len()],
                    ..table.clone()
                });
                tables.len() - 1
            });
            self.table_of.push(number.min(255) as u8);
        }
    }

    /// Adds the events of a part that are within the window; `before` events of its segment come before it.
    fn add(&mut self, mut part: Events, before: u64, from: u64, to: u64) {
        let end = part.time.partition_point(|&t| t < to);
        drop(part.split_off(end));
        let start = part.time.partition_point(|&t| t < from);
        let part = part.split_off(start);
        let (first, last) = (before + start as u64, before + end as u64);
        let all = &mut self.recording.events;
        let base = all.len() as u64;
        let gaps = self
            .lost
            .iter()
            .filter(|l| (first..=last).contains(&l.before_event));
        self.recording.meta.lost.extend(gaps.map(|l| Lost {
            before_event: base + l.before_event - first,
            ..*l
        }));
        all.time.extend(&part.time);
        all.cpu.extend(&part.cpu);
        all.task
            .extend(part.task.iter().map(|&t| self.task_of[t as usize]));
        all.flags.extend(&part.flags);
        all.preempt.extend(&part.preempt);
        all.kind
            .extend(part.kind.iter().map(|&k| self.table_of[usize::from(k)]));
        for (table, &to) in part.tables.iter().zip(&self.table_of) {
            let into = &mut all.tables[usize::from(to)];
            for ((field, column), into) in table
                .fields
                .iter()
                .zip(&table.columns)
                .zip(&mut into.columns)
            {
                let text =
                    |&v: &u64| u64::from(self.string_of.get(v as usize).copied().unwrap_or(0));
                match field.kind {
                    FieldKind::String => into.extend(column.iter().map(text)),
                    _ => into.extend(column),
                }
            }
        }
    }

    /// Adds the snapshots that are kept; what only others say of the host goes into the first of them.
    fn add_snapshots(&mut self, snapshots: Vec<Snapshot>, keep: impl Fn(&Snapshot) -> bool) {
        const OF_HOST: [&str; 2] = ["version", "sysctl-vm"];
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

    fn finish(mut self) -> Recording {
        // Buffers of the CPUs are emptied one after the other, so the ends of segments overlap by a little.
        if !self.recording.events.time.is_sorted() {
            self.recording
                .events
                .sort_by_time(&mut self.recording.meta.lost);
        }
        self.recording
    }
}
