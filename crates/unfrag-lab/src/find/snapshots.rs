//! Snapshots from wherever they lie: a path, or standard input as `-`.
//!
//! Invariant: standard input is read once, to its end, and no further than 4 GiB; what is read is told by what it begins
//! with, never by a name.

use super::recordings::is_unfrag;
use crate::error::{Error as LabError, Result};
use crate::host::Unread;
use std::io::{self, Read};
use std::path::Path;
use unfrag_linux::recording::{Recording, Snapshot};
use unfrag_linux::segments::{self, Beginning, Covered, Extent, Window};
use unfrag_linux::snapshots::{Clock, Reading, Skipped};
use unfrag_linux::{Error, file, snapshots};

/// Bytes that are read of standard input at most.
const MOST: u64 = 4 << 30;

/// What standard input is called in messages.
pub const STDIN: &str = "standard input";

/// Whether a path means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What an input is called.
pub fn name(path: &Path) -> String {
    match is_stdin(path) {
        true => STDIN.to_owned(),
        false => path.display().to_string(),
    }
}

/// What an input holds.
pub struct Held {
    /// Its snapshots, in order.
    pub snapshots: Vec<Snapshot>,
    /// The recording, of an `.unfrag` file with events.
    pub recording: Option<Recording>,
    /// What may belong to a snapshot and was not read, and why.
    pub not_read: Vec<Unread>,
    /// What told the times of snapshots in directories.
    pub clock: Option<Clock>,
    /// What the window is.
    pub covered: Option<Covered>,
}

impl From<Reading> for Held {
    fn from(reading: Reading) -> Held {
        let unread = |s: Skipped| Unread {
            file: s.file,
            why: s.why,
        };
        Held {
            snapshots: reading.snapshots,
            recording: None,
            not_read: reading.skipped.into_iter().map(unread).collect(),
            clock: reading.clock,
            covered: None,
        }
    }
}

/// What a directory, an archive, a pasted text or an `.unfrag` file holds.
///
/// # Errors
/// If it cannot be read, or nothing in it is known.
pub fn read(path: &Path) -> Result<Held> {
    if is_stdin(path) {
        return of_stdin(&stdin_bytes()?);
    }
    match !path.is_dir() && is_unfrag(path)? {
        true => Ok(split(file::read(path)?)),
        false => Ok(snapshots::look(path)?.into()),
    }
}

/// All of standard input.
pub(super) fn stdin_bytes() -> Result<Vec<u8>> {
    let mut bytes = vec![];
    let stdin = io::stdin().lock();
    stdin
        .take(MOST)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::from(e).in_file(STDIN.as_ref()))?;
    if bytes.len() as u64 == MOST {
        let what = format!("{STDIN} is longer than {MOST} bytes");
        return Err(LabError::question(what).help("write it to a file, and give that"));
    }
    Ok(bytes)
}

/// What was read from there.
pub(super) fn of_stdin(bytes: &[u8]) -> Result<Held> {
    match bytes.starts_with(file::MAGIC) {
        true => Ok(split(
            file::from_bytes(bytes).map_err(|e| e.in_file(STDIN.as_ref()))?,
        )),
        false => Ok(snapshots::look_at_bytes(STDIN, bytes)?.into()),
    }
}

/// The snapshots of the window of an input; of an `.unfrag` file with the recording, where all of it was asked for.
///
/// # Errors
/// As [`read`], and if no snapshot was taken in the window.
pub fn snapshots(path: &Path, window: &Window) -> Result<Held> {
    let are_segments = !segments::list(path)?.is_empty();
    if !are_segments && window.is_all() {
        return read(path);
    }
    if !are_segments && (is_stdin(path) || path.is_dir() || !is_unfrag(path)?) {
        return in_window(read(path)?, path, window);
    }
    let (recording, covered) = segments::read(path, window, Extent::Snapshots, Beginning::Exact)?;
    Ok(Held {
        snapshots: recording.snapshots,
        recording: None,
        not_read: vec![],
        clock: None,
        covered: Some(covered),
    })
}

/// What of it lies in a window.
pub(super) fn in_window(mut held: Held, path: &Path, window: &Window) -> Result<Held> {
    if window.is_all() {
        return Ok(held);
    }
    let covered = match &mut held.recording {
        Some(recording) => {
            let covered = segments::cut(recording, window, Beginning::Exact);
            held.snapshots.clone_from(&recording.snapshots);
            covered
        }
        None => segments::keep(&mut held.snapshots, window),
    };
    held.covered = Some(covered.map_err(|e| e.in_file(name(path).as_ref()))?);
    Ok(held)
}

fn split(mut recording: Recording) -> Held {
    let has_events = !recording.events.is_empty();
    let snapshots = match has_events {
        true => recording.snapshots.clone(),
        false => std::mem::take(&mut recording.snapshots),
    };
    Held {
        snapshots,
        recording: has_events.then_some(recording),
        not_read: vec![],
        clock: None,
        covered: None,
    }
}

/// The snapshot of this name.
///
/// # Errors
/// If there is none; names those that there are.
pub fn named<'a>(all: &'a [Snapshot], name: &str, source: &str) -> Result<&'a Snapshot> {
    all.iter().find(|s| s.name == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
        LabError::question(format!("{source} has no snapshot `{name}`"))
            .help(format!("it has {}", list(&names)))
    })
}

/// Names, or the ends of a long list of them.
fn list(names: &[&str]) -> String {
    match names {
        [] => "none at all".into(),
        [first, second, third, .., last] if names.len() > 8 => {
            format!("{}: {first}, {second}, {third} … {last}", names.len())
        }
        names => names.join(", "),
    }
}
