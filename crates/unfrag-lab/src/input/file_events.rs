//! The events of an `.unfrag` file, or of a window of a recording of days, which are read as often as they are needed.

use super::source::EventSource;
use crate::error::{Error, Result};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use unfrag_linux::file::Wanted;
use unfrag_linux::recording::{Events, Recording};
use unfrag_linux::segments::{Beginning, Covered, Open, Window, WindowEvents};

/// Batches that are decoded ahead.
const AHEAD: usize = 2;

/// The events of a window.
pub struct FileEvents(WindowEvents);

impl FileEvents {
    /// Opens the window of a file, or of a directory of segments; gives the recording without its events, and what the window is, too.
    ///
    /// # Errors
    /// If it cannot be read; names the file.
    pub fn open(
        path: &Path,
        window: &Window,
        beginning: Beginning,
    ) -> Result<(Recording, FileEvents, Covered)> {
        let Open {
            recording,
            events,
            covered,
        } = Open::new(path, window, beginning)?;
        Ok((recording, FileEvents(events), covered))
    }

    /// Decodes batches, and hands them over; their memory comes back.
    fn decode(
        &self,
        times: &RangeInclusive<u64>,
        wanted: Wanted,
        to: &SyncSender<Result<Events>>,
        back: &Receiver<Events>,
    ) {
        let mut memory = || back.try_recv().unwrap_or_default();
        let decoded = self.0.each(times, wanted, &mut memory, &mut |batch| {
            // Nobody waits for it after an error.
            to.send(Ok(batch)).map_err(|_| Stopped::Unwanted)
        });
        if let Err(Stopped::Failed(e)) = decoded {
            let _ = to.send(Err(e));
        }
    }
}

/// Why decoding stopped.
enum Stopped {
    Failed(Error),
    Unwanted,
}

impl From<unfrag_linux::Error> for Stopped {
    fn from(e: unfrag_linux::Error) -> Stopped {
        Stopped::Failed(e.into())
    }
}

impl EventSource for FileEvents {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.0.span()
    }

    fn rows(&self) -> Vec<u64> {
        self.0.rows().to_vec()
    }

    fn each(
        &self,
        times: RangeInclusive<u64>,
        wanted: Wanted,
        each: &mut dyn FnMut(&Events) -> Result<()>,
    ) -> Result<()> {
        let (to, batches) = sync_channel(AHEAD);
        let (give_back, back) = channel();
        std::thread::scope(|s| {
            let times = &times;
            s.spawn(move || self.decode(times, wanted, &to, &back));
            // Also if it ends early: nobody receives any more then.
            let batches = batches;
            while let Ok(batch) = batches.recv() {
                let batch: Events = batch?;
                each(&batch)?;
                let _ = give_back.send(batch);
            }
            Ok(())
        })
    }
}
