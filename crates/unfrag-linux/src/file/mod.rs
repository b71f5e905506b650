//! The `.unfrag` file: one file that holds a [`Recording`], losslessly.
//!
//! A ZIP container (`container`) of stored members: `manifest.json` (`manifest`), and a Parquet table for
//! everything that has rows (`table`, `table_read`; of snapshots: `snapshots`). Any tool that knows ZIP and Parquet reads it.
//! Numbers are stored as `columns` plans; `docs/file-format.md` describes all of it.
//!
//! The events of a long recording come in parts: [`Writer`] writes and [`Reader`] reads one at a time, so neither
//! holds more of them.
//!
//! Invariant: [`from_bytes`] gives back exactly what [`to_bytes`] was given, for any numbers and
//! strings, and takes no more memory than `manifest::least_size` allows for a file of that size.
//! Members carry checksums, so damage is noticed before anything is decoded; then `pages` checks the
//! decoder's input page by page.

mod batches;
mod check;
mod columns;
mod container;
mod manifest;
mod pages;
mod reader;
mod snapshots;
mod table;
mod table_read;
mod writer;

use std::io::{Cursor, Read, Seek};
use std::path::Path;

use crate::error::{Error, Result};
use crate::output::{Holds, Output};
use crate::recording::Recording;
use crate::target::Target;

pub use batches::{BATCH_EVENTS, Batches, Common, Wanted};
pub use reader::{PartFacts, Reader};
pub use writer::{PART_EVENTS, Writer};

/// First bytes of every `.unfrag` file: those of a ZIP container.
pub const MAGIC: &[u8] = b"PK\x03\x04";

/// Writes `recording` to `path`, which is a [`Target`]; gives the size of the file in bytes. A file appears there only
/// once it is complete, and only its owner may read it.
///
/// # Errors
/// As [`to_bytes`], and if the file cannot be written.
pub fn write(recording: &Recording, path: &Path) -> Result<u64> {
    let begun = Target::of(path).and_then(|to| Output::create(&to, Holds::Recording));
    let written = begun
        .map_err(Error::from)
        .and_then(|to| write_to(recording, to));
    written.map_err(|e| e.in_file(path))
}

/// Writes `recording` to an output, and completes it; gives the size of the file in bytes.
///
/// # Errors
/// As [`to_bytes`], and if the output cannot be written.
pub(crate) fn write_to(recording: &Recording, to: Output) -> Result<u64> {
    let mut writer = Writer::new(to);
    writer.events(&recording.events)?;
    Ok(writer.finish(recording)?.commit()?)
}

/// Reads the recording at `path`.
///
/// # Errors
/// As [`from_bytes`], and if the file cannot be read; names the file.
pub fn read(path: &Path) -> Result<Recording> {
    read_all(Reader::open(path)?).map_err(|e| e.in_file(path))
}

/// The bytes of the file that holds `recording`.
///
/// # Errors
/// If `recording` breaks the invariants that its types state (columns of different lengths, an
/// event of a kind or task that is not there, time that decreases), or holds a string of more than
/// 16 MiB.
pub fn to_bytes(recording: &Recording) -> Result<Vec<u8>> {
    let mut writer = Writer::new(Cursor::new(vec![]));
    writer.events(&recording.events)?;
    Ok(writer.finish(recording)?.into_inner())
}

/// The recording that the file with these bytes holds.
///
/// # Errors
/// If it is no such file, is of a later version, or is damaged; names the member.
pub fn from_bytes(bytes: &[u8]) -> Result<Recording> {
    read_all(Reader::new(Cursor::new(bytes))?)
}

fn read_all(mut reader: Reader<impl Read + Seek>) -> Result<Recording> {
    let mut recording = reader.rest()?;
    recording.snapshots = reader.snapshots()?;
    let parts = reader.parts().len();
    for part in 0..parts {
        recording.events.append(reader.part(part)?);
    }
    // Each part was checked by itself.
    if !recording.events.time.is_sorted() {
        return Err(Error::malformed("the time of the events decreases"));
    }
    Ok(recording)
}
