//! The events of an `.unfrag` file, which are read as often as they are needed.

use super::EventSource;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::BufReader;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use unfrag_linux::file::{BATCH_EVENTS, PartFacts, Reader, Wanted};
use unfrag_linux::recording::{Events, Recording};

/// Batches that are decoded ahead.
const AHEAD: usize = 2;

type FileReader = Reader<BufReader<File>>;

/// The events of an `.unfrag` file.
pub struct FileEvents {
    path: PathBuf,
    /// Readers that are not in use.
    readers: Mutex<Vec<FileReader>>,
    parts: Vec<PartFacts>,
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
            readers: Mutex::new(vec![reader]),
        };
        Ok((recording, events))
    }

    fn readers(&self) -> std::sync::MutexGuard<'_, Vec<FileReader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes batches, and hands them over; their memory comes back.
    fn decode(
        &self,
        times: &RangeInclusive<u64>,
        wanted: Wanted,
        to: &SyncSender<Result<Events>>,
        back: &Receiver<Events>,
    ) -> Result<()> {
        let free = self.readers().pop();
        let mut reader = match free {
            Some(reader) => reader,
            None => Reader::open(&self.path)?,
        };
        let named = |e: unfrag_linux::Error| Error::from(e.in_file(&self.path));
        for (i, part) in self.parts.iter().enumerate() {
            let misses = |(first, last)| first > *times.end() || last < *times.start();
            if part.span.is_some_and(misses) {
                continue;
            }
            let mut batches = reader.batches(i, wanted).map_err(named)?;
            loop {
                let mut batch = back.try_recv().unwrap_or_default();
                if !batches.next(BATCH_EVENTS, &mut batch).map_err(named)? {
                    break;
                }
                // Nobody waits for it after an error.
                if to.send(Ok(batch)).is_err() {
                    return Ok(());
                }
            }
        }
        self.readers().push(reader);
        Ok(())
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
        let (to, batches) = sync_channel(AHEAD);
        let (give_back, back) = channel();
        let mut span = None;
        std::thread::scope(|s| {
            let times = &times;
            s.spawn(move || {
                if let Err(e) = self.decode(times, wanted, &to, &back) {
                    let _ = to.send(Err(e));
                }
            });
            // Also if it ends early: nobody receives any more then.
            let batches = batches;
            while let Ok(batch) = batches.recv() {
                let batch = batch?;
                if let Some((first, last)) = batch.span()? {
                    span = Some((span.map_or(first, |(first, _)| first), last));
                }
                each(&batch)?;
                let _ = give_back.send(batch);
            }
            Ok::<(), Error>(())
        })?;
        if times == (0..=u64::MAX) {
            self.span.get_or_init(|| span);
        }
        Ok(())
    }
}
