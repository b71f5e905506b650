//! A recording of days: a directory of segments, and a window of time over them or over one file.
//!
//! A segment is an `.unfrag` file, complete in itself. Its name begins with the date at which it begins, so the order of
//! names is that of time. The clock of events begins at boot; the fact [`EPOCH_OFFSET`] says how far it is from the date,
//! and [`BOOT`] which boot it was.
//!
//! - `segment`: a segment, and which of them a window touches. `names`: one numbering of tasks, strings and kinds of
//!   events for several. `stream`: the events of a window, in batches: [`Open`].
//!
//! Invariant: no more is read than the parts of the files that the window touches. What is read begins at a snapshot with
//! page flags, where there is one before the window, so that it can be replayed by itself.

mod names;
mod segment;
mod stream;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file::Wanted;
use crate::recording::Recording;

pub use stream::{Open, WindowEvents};

/// The fact with the nanoseconds to add to an event's time to get nanoseconds since 1970.
pub const EPOCH_OFFSET: &str = "epoch_offset_ns";
/// The fact with the identity of the boot.
pub const BOOT: &str = "boot_id";

/// The ending of a segment's name.
const ENDING: &str = ".unfrag";
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
    let open = Open::new(path, window)?;
    let mut recording = open.recording;
    if extent == Extent::All {
        let events = &mut recording.events;
        open.events.in_segments(Wanted::ALL, &mut |batch| {
            events.append(batch);
            Ok::<(), Error>(())
        })?;
        // Buffers of the CPUs are emptied one after the other, so the ends of segments overlap by a little.
        if !events.time.is_sorted() {
            events.sort_by_time(&mut recording.meta.lost);
        }
    }
    Ok(recording)
}
