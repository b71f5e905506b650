//! The events of a raw trace, which is read anew each time that they are asked for.
//!
//! Invariant: memory does not grow with the trace. Each reading gives the same events, or an error.

use super::source::EventSource;
use crate::error::{Error, Result};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use unfrag_linux::error::Cause;
use unfrag_linux::file::Wanted;
use unfrag_linux::recording::{Events, Recording};
use unfrag_linux::{Meter, Options, stream};

/// Events that are in memory at a time.
const BATCH: usize = 1 << 16;

/// The events of a trace.
pub struct TraceEvents {
    path: PathBuf,
    release: Option<String>,
    span: Option<(u64, u64)>,
    rows: Vec<u64>,
}

impl TraceEvents {
    /// Reads a trace once for all but its events, and to count these. `None` if it has to be read as a whole.
    ///
    /// # Errors
    /// If it cannot be read; names the file.
    pub fn open(path: &Path, release: Option<&str>) -> Result<Option<(Recording, TraceEvents)>> {
        let mut events = TraceEvents {
            path: path.to_owned(),
            release: release.map(str::to_owned),
            span: None,
            rows: vec![],
        };
        let mut span = None;
        let mut rows = vec![];
        let read = events.stream(&mut |batch| {
            rows.resize(batch.tables.len(), 0);
            batch.kind.iter().for_each(|&k| rows[usize::from(k)] += 1);
            if let Some((first, last)) = batch.span() {
                span = Some((span.map_or(first, |s: (u64, u64)| s.0), last));
            }
            Ok(())
        });
        let recording = match read {
            Err(e) if matches!(e.cause, Cause::NotInBatches(_)) => return Ok(None),
            read => read?,
        };
        rows.resize(recording.events.tables.len(), 0);
        (events.span, events.rows) = (span, rows);
        Ok(Some((recording, events)))
    }

    fn stream(
        &self,
        give: &mut dyn FnMut(Events) -> unfrag_linux::Result<()>,
    ) -> unfrag_linux::Result<Recording> {
        let options = Options {
            kernel_release: self.release.as_deref(),
            batch: BATCH,
        };
        stream(&self.path, &options, &Meter::default(), give)
    }
}

impl EventSource for TraceEvents {
    fn len(&self) -> u64 {
        self.rows.iter().sum()
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    fn rows(&self) -> Vec<u64> {
        self.rows.clone()
    }

    fn each(
        &self,
        _: RangeInclusive<u64>,
        _: Wanted,
        each: &mut dyn FnMut(&Events) -> Result<()>,
    ) -> Result<()> {
        let mut left = self.len();
        let mut failed = None;
        let changed = || unfrag_linux::Error::malformed("it was changed while it was read");
        let read = self.stream(&mut |batch| {
            left = match left.checked_sub(batch.len() as u64) {
                Some(left) if batch.tables.len() <= self.rows.len() => left,
                _ => return Err(changed()),
            };
            each(&batch).map_err(|e| {
                failed = Some(e);
                changed()
            })
        });
        match (failed, read) {
            (Some(e), _) => Err(e),
            (None, Err(e)) => Err(e.into()),
            (None, Ok(_)) if left > 0 => Err(Error::from(changed().in_file(&self.path))),
            (None, Ok(_)) => Ok(()),
        }
    }
}
