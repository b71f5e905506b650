//! Looks of days, and what they foretell.
//!
//! Invariant: this host as it is now is one look, of which nothing is foretold.

use super::evidence::is_own;
use super::snapshots::{in_window, is_stdin, name, of_stdin, snapshots, stdin_bytes};
use crate::doctor::gate::Need;
use crate::error::{Error, Result};
use crate::forecast::series::{is_range, samples};
use crate::forecast::{Forecast, Looks, forecast};
use crate::host::Unread;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use unfrag_linux::Error as InputError;
use unfrag_linux::segments::{Covered, Window};

/// Bytes of an answer of Prometheus, at the most.
const MOST: u64 = 1 << 30;

/// When a need of blocks fails, by the looks that an input holds.
///
/// # Errors
/// If it is this host, cannot be read, has no dates, or the need is of blocks that its host does not make.
pub fn foretold(
    path: &Path,
    window: &Window,
    need: Need,
    page_size: Option<u64>,
    seed: u64,
) -> Result<(Forecast, Option<Covered>)> {
    if is_own(path) {
        return Err(
            Error::question("this host as it is now is one look, which tells no trend").help(
                "give looks of some days: copies of /proc in directories that are named by their dates, or what unfrag record --keep made",
            ),
        );
    }
    let held = match range(path)? {
        Given::Range(_) if !window.is_all() => {
            let text = "a window is chosen of a range of Prometheus when it is asked for";
            return Err(Error::question(text).help("give start and end in the request"));
        }
        Given::Range(bytes) => {
            let samples = samples(&bytes, page_size).map_err(|e| e.about(path))?;
            let looks = Looks {
                samples: &samples,
                page_size,
                ..Looks::default()
            };
            let found = forecast(looks, &name(path), need, seed).map_err(|e| e.about(path))?;
            return Ok((found, None));
        }
        Given::Stdin(bytes) => in_window(of_stdin(&bytes)?, path, window)?,
        Given::Other => snapshots(path, window)?,
    };
    let empty = empty_looks(path);
    let not_read: Vec<Unread> = held.not_read.iter().cloned().chain(empty).collect();
    let looks = Looks {
        samples: &[],
        snapshots: &held.snapshots,
        not_read: &not_read,
        clock: held.clock,
        page_size,
    };
    let found = forecast(looks, &name(path), need, seed).map_err(|e| e.about(path))?;
    Ok((found, held.covered))
}

/// Directories that bear a date and hold nothing, as a full disk leaves them: looks that were lost.
fn empty_looks(path: &Path) -> Vec<Unread> {
    let Ok(inside) = path.read_dir() else {
        return vec![];
    };
    let is_empty = |p: &Path| p.read_dir().is_ok_and(|mut d| d.next().is_none());
    let mut names: Vec<String> = inside
        .flatten()
        .filter(|d| d.path().is_dir() && is_empty(&d.path()))
        .map(|d| d.file_name().to_string_lossy().into_owned())
        .filter(|name| unfrag_linux::snapshots::date(name).is_some())
        .collect();
    names.sort_unstable();
    let unread = |name: String| Unread {
        file: format!("{name}/buddyinfo"),
        why: "missing: its directory is empty".into(),
    };
    names.into_iter().map(unread).collect()
}

/// What an input is.
enum Given {
    /// An answer of Prometheus.
    Range(Vec<u8>),
    /// Standard input, which can be read once.
    Stdin(Vec<u8>),
    /// Anything else.
    Other,
}

fn range(path: &Path) -> Result<Given> {
    if is_stdin(path) {
        let bytes = stdin_bytes()?;
        return Ok(match is_range(&bytes) {
            true => Given::Range(bytes),
            false => Given::Stdin(bytes),
        });
    }
    if !path.is_file() {
        return Ok(Given::Other);
    }
    let error = |e: std::io::Error| InputError::from(e).in_file(path);
    let mut file = File::open(path).map_err(error)?;
    let mut bytes = vec![];
    file.by_ref()
        .take(64)
        .read_to_end(&mut bytes)
        .map_err(error)?;
    if !is_range(&bytes) {
        return Ok(Given::Other);
    }
    let length = file.metadata().map_err(error)?.len();
    if length > MOST {
        let text = format!("it is longer than {MOST} bytes");
        return Err(Error::question(text)
            .help("ask for fewer series, or a longer step")
            .in_file(path));
    }
    file.take(MOST).read_to_end(&mut bytes).map_err(error)?;
    Ok(Given::Range(bytes))
}
