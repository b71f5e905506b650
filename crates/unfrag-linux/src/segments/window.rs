//! Windows of time, and the segments of a directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The fact with the nanoseconds to add to an event's time to get nanoseconds since 1970.
pub const EPOCH_OFFSET: &str = "epoch_offset_ns";
/// The fact with the identity of the boot.
pub const BOOT: &str = "boot_id";

/// The ending of a segment's name.
const ENDING: &str = ".unfrag";
/// Nanoseconds of a day.
pub(super) const DAY: u64 = 86_400_000_000_000;

/// A moment, as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds after the beginning of the recording.
    After(u64),
    /// Nanoseconds since 1970.
    At(u64),
    /// Nanoseconds after midnight, by the clock of whoever asks: the last such time of a day that the recording has.
    OfDay(u64),
}

/// A window of time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Where it begins; with the recording if `None`.
    pub from: Option<Moment>,
    /// Where it ends: what happens then is no longer in it. With the recording if `None`.
    pub to: Option<Moment>,
    /// Nanoseconds by which the clock of whoever asks is ahead of UTC at a date, in nanoseconds since 1970.
    pub ahead_of_utc: fn(u64) -> i64,
}

impl Default for Window {
    /// The whole recording, asked for by a clock of UTC.
    fn default() -> Window {
        Window {
            from: None,
            to: None,
            ahead_of_utc: |_| 0,
        }
    }
}

impl Window {
    /// Whether it is the whole recording.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

/// Where what is read begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With the window.
    Exact,
    /// With the last snapshot before it that has page flags, if there is one: what was in use then is known by them.
    PageFlags,
    /// With the recording or, of several segments, with the first one that the window touches: what was going on when it
    /// begins is known by that.
    Recorded,
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
