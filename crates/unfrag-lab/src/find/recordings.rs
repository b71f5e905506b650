//! Recordings from wherever they lie: an `.unfrag` file, or a raw trace and snapshots beside it.
//!
//! Invariant: the format is decided by what a file begins with, never by its name.

use crate::error::{Error as LabError, Remedy, Result};
use crate::input::{EventSource, FileEvents, Input, TraceEvents};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use unfrag_linux::recording::{Recording, Snapshot};
use unfrag_linux::segments::{self, Beginning, Covered, Extent, Window};
use unfrag_linux::{Error, file, open, snapshots};

/// Bytes of a trace up to which reading it into memory is better than reading it twice.
const SHORT: u64 = 2 << 20;

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
    events: Option<Box<dyn EventSource>>,
    /// What the window is, if one was chosen.
    pub covered: Option<Covered>,
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
            covered: None,
        }
    }

    /// Cuts one whose events are in memory down to a window.
    ///
    /// # Errors
    /// If nothing was recorded in the window, or a date is given and the recording has none.
    pub fn cut(&mut self, window: &Window, beginning: Beginning) -> Result<()> {
        self.covered = Some(segments::cut(&mut self.recording, window, beginning)?);
        Ok(())
    }

    /// The input of what takes so much memory for what it makes of the events, in bytes.
    pub fn input(&self, budget: u64) -> Input<'_> {
        let events: &dyn EventSource = match &self.events {
            Some(events) => &**events,
            None => &self.recording.events,
        };
        let from = self.covered.as_ref().map_or(0, |c| c.times().start);
        let within = self.covered.as_ref().map_or((None, None), Covered::within);
        Input::new(&self.recording, events, budget)
            .asked_from(from)
            .within(within)
    }
}

/// Whether the input at `path`, with which these are given, is a raw trace.
fn is_raw(path: &Path, beside: &[PathBuf]) -> Result<bool> {
    if segments::list(path)?.is_empty() && !is_unfrag(path)? {
        return Ok(true);
    }
    match beside.is_empty() {
        true => Ok(false),
        false => {
            let what = format!("{} holds its snapshots already", path.display());
            Err(LabError::question(what).remedy(Remedy::WithoutSnapshots))
        }
    }
}

/// Reads the window of an `.unfrag` file, of a directory of segments, or of a raw trace with the snapshots of `beside`;
/// and says what the window is.
///
/// # Errors
/// If either cannot be read, or an `.unfrag` file is given snapshots that it has already.
pub fn recording(
    path: &Path,
    beside: &[PathBuf],
    release: Option<&str>,
    window: &Window,
    beginning: Beginning,
) -> Result<(Recording, Covered)> {
    if is_raw(path, beside)? {
        let mut recording = raw(path, beside, release)?;
        let covered = segments::cut(&mut recording, window, beginning);
        return Ok((recording, covered.map_err(|e| e.in_file(path))?));
    }
    let (recording, covered) = segments::read(path, window, Extent::All, beginning)?;
    Ok((of_release(recording, release), covered))
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
    beginning: Beginning,
) -> Result<Streamed> {
    if is_raw(path, beside)? {
        let mut streamed = Streamed::of(raw(path, beside, release)?);
        let cut = streamed.cut(window, beginning);
        cut.map_err(|e| e.in_file(path))?;
        return Ok(streamed);
    }
    let (recording, events, covered) = FileEvents::open(path, window, beginning)?;
    Ok(Streamed {
        recording: of_release(recording, release),
        events: Some(Box::new(events)),
        covered: Some(covered),
    })
}

/// The same for what reads the events but once: those of a long trace stay in it, too, where the window is the whole of it.
///
/// # Errors
/// As there.
pub fn read_once(
    path: &Path,
    release: Option<&str>,
    window: &Window,
    beginning: Beginning,
) -> Result<Streamed> {
    let is_long = fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() > SHORT);
    if is_long
        && window.is_all()
        && is_raw(path, &[])?
        && let Some((recording, events)) = TraceEvents::open(path, release)?
    {
        let recording = of_release(recording, release);
        let covered = segments::whole(&recording, events.span());
        return Ok(Streamed {
            recording,
            events: Some(Box::new(events)),
            covered: Some(covered.map_err(|e| e.in_file(path))?),
        });
    }
    streamed(path, &[], release, window, beginning)
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
