//! What a replay reads: a recording, with events that come in batches.
//!
//! A recording of days does not fit in memory. Its events are read as often as they are needed, a batch at a time, and
//! what is made of them is kept in compact columns ([`store`]): in memory up to a budget, and in unnamed files beyond.
//!
//! Invariant: however its events come, and whatever the budget, a recording gives the same replay.

pub mod bits;
pub(crate) mod running_sum;
pub mod store;

use crate::error::Result;
use std::fs::File;
use std::io::BufReader;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use store::Room;
use unfrag_linux::file::{self, BATCH_EVENTS, Reader, Wanted};
use unfrag_linux::recording::{Events, Recording};

/// The events of a recording, which come in batches.
pub trait EventSource: Sync {
    /// Number of events.
    fn len(&self) -> u64;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Times of the first and last event, in nanoseconds of the trace clock; `None` without events.
    ///
    /// # Errors
    /// If they cannot be read.
    fn span(&self) -> Result<Option<(u64, u64)>>;

    /// Number of events of each kind of the recording.
    fn rows(&self) -> Vec<u64>;

    /// Gives the events one batch after the other, in the order of time, with what is wanted of them at least. What is outside
    /// of `times` may be left out.
    ///
    /// # Errors
    /// If they cannot be read; and those of `each`.
    fn each(
        &self,
        times: RangeInclusive<u64>,
        wanted: Wanted,
        each: &mut dyn FnMut(&Events) -> Result<()>,
    ) -> Result<()>;
}

impl EventSource for Events {
    fn len(&self) -> u64 {
        self.time.len() as u64
    }

    fn span(&self) -> Result<Option<(u64, u64)>> {
        Ok(self.time.first().copied().zip(self.time.last().copied()))
    }

    fn rows(&self) -> Vec<u64> {
        let mut rows = vec![0; self.tables.len()];
        self.kind.iter().for_each(|&k| rows[usize::from(k)] += 1);
        rows
    }

    fn each(
        &self,
        _: RangeInclusive<u64>,
        _: Wanted,
        each: &mut dyn FnMut(&Events) -> Result<()>,
    ) -> Result<()> {
        each(self)
    }
}

/// The events of an `.unfrag` file.
pub struct FileEvents {
    path: PathBuf,
    reader: Mutex<Reader<BufReader<File>>>,
    parts: Vec<file::PartFacts>,
    rows: Vec<u64>,
    /// Times of the first and last event, once they are known.
    span: OnceLock<Option<(u64, u64)>>,
}

impl FileEvents {
    /// Opens the file at `path`; gives the recording without its events, too.
    ///
    /// # Errors
    /// If it cannot be read; names the file.
    pub fn open(path: &Path) -> Result<(Recording, FileEvents)> {
        let mut reader = Reader::open(path)?;
        let named = |e: unfrag_linux::Error| e.in_file(path);
        let mut recording = reader.rest().map_err(named)?;
        recording.snapshots = reader.snapshots().map_err(named)?;
        let events = FileEvents {
            path: path.to_owned(),
            parts: reader.parts().collect(),
            rows: reader.rows(),
            span: OnceLock::new(),
            reader: Mutex::new(reader),
        };
        Ok((recording, events))
    }
}

impl EventSource for FileEvents {
    fn len(&self) -> u64 {
        self.parts.iter().map(|p| p.events).sum()
    }

    fn span(&self) -> Result<Option<(u64, u64)>> {
        if self.span.get().is_none() {
            // Files of one part may not say it.
            let times_alone = Wanted {
                common: &[],
                field: &|_, _| false,
            };
            self.each(0..=u64::MAX, times_alone, &mut |_| Ok(()))?;
        }
        Ok(self.span.get().copied().flatten())
    }

    fn rows(&self) -> Vec<u64> {
        self.rows.clone()
    }

    fn each(
        &self,
        times: RangeInclusive<u64>,
        wanted: Wanted,
        each: &mut dyn FnMut(&Events) -> Result<()>,
    ) -> Result<()> {
        let mut span = None;
        for (i, part) in self.parts.iter().enumerate() {
            let misses = |(first, last)| first > *times.end() || last < *times.start();
            if part.span.is_some_and(misses) {
                continue;
            }
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let named = |e: unfrag_linux::Error| e.in_file(&self.path);
            let mut batches = reader.batches(i, wanted).map_err(named)?;
            while let Some(batch) = batches.next(BATCH_EVENTS).map_err(named)? {
                if let Some((first, last)) = batch.span()? {
                    span = Some((span.map_or(first, |(first, _)| first), last));
                }
                each(batch)?;
            }
        }
        if times == (0..=u64::MAX) {
            self.span.get_or_init(|| span);
        }
        Ok(())
    }
}

/// A recording to replay.
#[derive(Clone)]
pub struct Input<'r> {
    /// The recording; its events are in `events`.
    pub recording: &'r Recording,
    /// The events.
    pub events: &'r dyn EventSource,
    /// Memory for what is made of them.
    pub(crate) room: Arc<Room>,
}

/// Memory for what is made of a recording's events, in bytes, if nothing else is asked for: ten million operations.
pub const MEMORY_BUDGET: u64 = 128 << 20;

impl<'r> From<&'r Recording> for Input<'r> {
    fn from(recording: &'r Recording) -> Input<'r> {
        Input::new(recording, &recording.events, MEMORY_BUDGET)
    }
}

impl<'r> Input<'r> {
    /// A recording whose events come from a source; `budget` is the memory for what is made of them, in bytes.
    pub fn new(recording: &'r Recording, events: &'r dyn EventSource, budget: u64) -> Input<'r> {
        Input {
            recording,
            events,
            room: Arc::new(Room::new(budget)),
        }
    }

    /// Whether there are events of this name with this field.
    pub(crate) fn happened(&self, name: &str, field: &str) -> bool {
        let tables = &self.recording.events.tables;
        let has = |field_of: &unfrag_linux::recording::EventTable| {
            field_of.name == name && field_of.fields.iter().any(|f| f.name == field)
        };
        tables
            .iter()
            .zip(self.events.rows())
            .any(|(t, rows)| rows > 0 && has(t))
    }
}
