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
