//! An error of writing that says where, and how much was to be written.
//!
//! What the system says of a full disk names neither. Invariant: the kind of the error stays what it was.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::input_text::escaped_path;

/// Why something could not be written, where, and how much it was.
#[derive(Debug)]
pub struct NoRoom {
    place: String,
    bytes: Option<u64>,
    error: io::Error,
    /// Whether the place is the directory of temporary files.
    is_temporary: bool,
}

impl NoRoom {
    /// The reason of an error, if it is this one.
    pub fn of(e: &io::Error) -> Option<&NoRoom> {
        e.get_ref()?.downcast_ref()
    }

    /// The way out.
    pub fn help(&self) -> &'static str {
        match self.is_temporary {
            true => "set TMPDIR to a directory on a disk with room that you may write to",
            false => "free some space, or write elsewhere",
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.error.to_string();
        let said = text.split(" (os error ").next().unwrap_or(&text);
        write!(f, "{}: {said}", self.place)?;
        match self.bytes {
            Some(n) => write!(f, "; {n} bytes or more were to be written there"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NoRoom {}

/// An error of a temporary file into which `bytes` were to go.
pub fn temporary(error: io::Error, bytes: Option<u64>) -> io::Error {
    let dir = std::env::temp_dir();
    named(
        error,
        format!("a temporary file in {}", escaped_path(&dir)),
        bytes,
        true,
    )
}

/// An error of a file into which `bytes` were to go.
pub fn at(error: io::Error, path: &Path, bytes: Option<u64>) -> io::Error {
    named(error, escaped_path(path), bytes, false)
}

/// Whether a disk, or what a user may have of it, is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

fn named(error: io::Error, place: String, bytes: Option<u64>, is_temporary: bool) -> io::Error {
    if NoRoom::of(&error).is_some() {
        return error;
    }
    let kind = error.kind();
    let told = NoRoom {
        place,
        bytes,
        error,
        is_temporary,
    };
    io::Error::new(kind, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_and_the_size_are_said_and_the_kind_stays() {
        let full = io::Error::from_raw_os_error(28);
        let e = temporary(full, Some(5000));
        assert_eq!(e.kind(), ErrorKind::StorageFull);
        let said = e.to_string();
        assert!(said.starts_with("a temporary file in "), "{said}");
        assert!(
            said.ends_with("No space left on device; 5000 bytes or more were to be written there"),
            "{said}"
        );
        // The first who knows the place names it.
        assert_eq!(at(e, Path::new("other"), None).to_string(), said);
    }
}
