//! Recordings from wherever they lie: an `.unfrag` file, or a raw trace and snapshots beside it.
//!
//! Invariant: the format is decided by what a file begins with, never by its name.

use crate::error::{Error as LabError, Remedy, Result};
use crate::input::{EventSource, FileEvents, Input};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use unfrag_linux::recording::{Recording, Snapshot};
use unfrag_linux::segments::{self, Extent, Window};
use unfrag_linux::{Error, file, open, snapshots};

/// Whether a file is an `.unfrag` file. What is no regular file is none: its first bytes can be read
/// but once.
///
/// # Errors
/// If it cannot be read.
pub fn is_unfrag(path: &Path) -> Result<bool> {
    let meta = fs::metadata(path).map_err(|e| Error::from(e).in_file(path))?;
    if !meta.is_file() {
        return Ok(false);
    }
    let mut begin = vec![];
    let read =
        File::open(path).and_then(|f| f.take(file::MAGIC.len() as u64).read_to_end(&mut begin));
    read.map_err(|e| Error::from(e).in_file(path))?;
    Ok(begin == file::MAGIC)
}

/// A recording whose events may come from its file, in batches.
pub struct Streamed {
    /// All but its events, if those stay in their file.
    pub recording: Recording,
    /// `None` where the recording holds its events.
    events: Option<FileEvents>,
}

impl Streamed {
    /// Whether its events are still in its file.
    pub fn is_in_file(&self) -> bool {
        self.events.is_some()
    }

    /// One whose events are in memory.
    pub fn of(recording: Recording) -> Streamed {
        Streamed {
            recording,
            events: None,
        }
    }

    /// The input of what takes so much memory for what it makes of the events, in bytes.
    pub fn input(&self, budget: u64) -> Input<'_> {
        let events: &dyn EventSource = match &self.events {
            Some(events) => events,
            None => &self.recording.events,
        };
        Input::new(&self.recording, events, budget)
    }
}

/// Whether the input at `path`, with which these are given, is a raw trace.
fn is_raw(path: &Path, beside: &[PathBuf], window: &Window) -> Result<bool> {
    if segments::list(path)?.is_empty() && !is_unfrag(path)? {
        return match window.is_all() {
            true => Ok(true),
            false => Err(LabError::no_window(Remedy::Import)),
        };
    }
    match beside.is_empty() {
        true => Ok(false),
        false => {
            let what = format!("{} holds its snapshots already", path.display());
            Err(LabError::question(what).remedy(Remedy::WithoutSnapshots))
        }
    }
}

/// Reads an `.unfrag` file or a directory of segments, of either the window alone, or a raw trace with the snapshots of
/// `beside`.
///
/// # Errors
/// If either cannot be read, or an `.unfrag` file is given snapshots that it has already.
pub fn recording(
    path: &Path,
    beside: &[PathBuf],
    release: Option<&str>,
    window: &Window,
) -> Result<Recording> {
    if is_raw(path, beside, window)? {
        return raw(path, beside, release);
    }
    let recording = segments::read(path, window, Extent::All)?;
    Ok(of_release(recording, release))
}

/// The same, but the events of `.unfrag` files stay in them.
///
/// # Errors
/// As there.
pub fn streamed(
    path: &Path,
    beside: &[PathBuf],
    release: Option<&str>,
    window: &Window,
) -> Result<Streamed> {
    if is_raw(path, beside, window)? {
        return Ok(Streamed {
            recording: raw(path, beside, release)?,
            events: None,
        });
    }
    let (recording, events) = FileEvents::open(path, window)?;
    Ok(Streamed {
        recording: of_release(recording, release),
        events: Some(events),
    })
}

/// A recording that says which kernel it is of, if either does.
fn of_release(mut recording: Recording, release: Option<&str>) -> Recording {
    if let Some(release) = release
        && recording.meta.kernel_release.is_empty()
    {
        recording.meta.kernel_release = release.to_owned();
    }
    recording
}

/// Reads a raw trace with the snapshots beside it. The kernel's release is what the trace says, else
/// what `/proc/version` among the snapshots says, else `release`.
///
/// # Errors
/// If the trace or the snapshots cannot be read.
pub fn raw(path: &Path, beside: &[PathBuf], release: Option<&str>) -> Result<Recording> {
    let mut beside = Beside::read(beside, release)?;
    let recording = open(path, &beside.options())?;
    Ok(beside.complete(recording))
}

/// What is known beside a raw trace.
pub struct Beside {
    snapshots: Vec<Snapshot>,
    release: Option<String>,
}

impl Beside {
    /// Reads the snapshots; the kernel's release is what `/proc/version` among them says, else `release`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn read(paths: &[PathBuf], release: Option<&str>) -> Result<Beside> {
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let snapshots = match paths.is_empty() {
            true => vec![],
            false => snapshots::read_all(&paths)?,
        };
        let version = snapshots
            .iter()
            .find_map(|s| release_of(s.file("version")?));
        Ok(Beside {
            release: version.or(release.map(str::to_owned)),
            snapshots,
        })
    }

    /// How the trace is to be read.
    pub fn options(&self) -> unfrag_linux::Options<'_> {
        unfrag_linux::Options {
            kernel_release: self.release.as_deref(),
            ..unfrag_linux::Options::default()
        }
    }

    /// The trace's recording with the snapshots, which it takes.
    pub fn complete(&mut self, mut recording: Recording) -> Recording {
        if recording.meta.kernel_release.is_empty() {
            recording.meta.kernel_release = self.release.clone().unwrap_or_default();
        }
        recording.snapshots = std::mem::take(&mut self.snapshots);
        recording
    }
}

/// What tells one input from another: a file's content, or the names and sizes of a directory's segments.
///
/// # Errors
/// If it cannot be read.
pub fn identity(path: &Path) -> io::Result<Box<dyn Read>> {
    let segments = segments::list(path).unwrap_or_default();
    if segments.is_empty() {
        return Ok(Box::new(File::open(path)?));
    }
    let mut lines = String::new();
    for segment in segments {
        let name = segment.file_name().unwrap_or_default().to_string_lossy();
        lines += &format!("{name} {}\n", fs::metadata(&segment)?.len());
    }
    Ok(Box::new(io::Cursor::new(lines)))
}

/// The release in the text of `/proc/version`.
fn release_of(version: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(version).ok()?;
    let rest = text.strip_prefix("Linux version ")?;
    Some(rest.split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_third_word_of_proc_version() {
        let text = b"Linux version 6.1.0-56-cloud-amd64 (debian-kernel@lists.debian.org)";
        assert_eq!(release_of(text).as_deref(), Some("6.1.0-56-cloud-amd64"));
        assert_eq!(release_of(b"FreeBSD"), None);
        assert_eq!(release_of(b"Linux version "), None);
    }
}
