//! The error of all readers and writers: what is wrong, where, and what to do about it.
//!
//! Invariant: an error names as much of file, byte offset, cause and way out as is known where it
//! arose. Callers add what only they know with [`Error::in_file`] and [`Error::at`], which never
//! overwrite what is there. No reader panics, whatever its input is. What a message quotes of an input is shown escaped.

use crate::input_text::{escaped_lines, escaped_path};
use crate::no_room::NoRoom;
use crate::overfull::{self, Overfull};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// A reader's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be read or written, where, and what to do about it.
#[derive(Debug)]
pub struct Error {
    /// The file, if the input came from one.
    pub file: Option<PathBuf>,
    /// Byte offset in the input (after decompression, if the whole input was compressed).
    pub offset: Option<u64>,
    /// What is wrong.
    pub cause: Cause,
    /// The way out, as a sentence; empty if there is none to offer.
    pub help: Cow<'static, str>,
}

/// What is wrong with an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The input ends before what it announces.
    #[error("{what} needs {needed} bytes, but only {available} are left")]
    Truncated {
        /// What was being read.
        what: Cow<'static, str>,
        /// Bytes it needs.
        needed: u64,
        /// Bytes that are there.
        available: u64,
    },
    /// The input contradicts its format.
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// The input is well formed, but nothing here reads it.
    #[error("{0}")]
    Unsupported(Cow<'static, str>),
    /// The events have to be read into memory as a whole, for the reason that is named.
    #[error("the events cannot be read in batches: {0}")]
    NotInBatches(&'static str),
    /// The input asks for more than a limit allows.
    #[error("{what} is {size}, and the limit is {limit}")]
    TooLarge {
        /// What is too large, with its unit.
        what: Cow<'static, str>,
        /// The size asked for.
        size: u64,
        /// The limit.
        limit: u64,
    },
}

impl Error {
    /// An error of the given cause, with nothing else known yet.
    pub fn new(cause: Cause) -> Self {
        Error {
            file: None,
            offset: None,
            cause,
            help: Cow::Borrowed(""),
        }
    }
    /// The input contradicts its format.
    pub fn malformed(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Cause::Malformed(what.into()))
    }
    /// The input is well formed, but nothing here reads it.
    pub fn unsupported(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Cause::Unsupported(what.into()))
    }
    /// The input ends `needed - available` bytes too early.
    pub fn truncated(what: impl Into<Cow<'static, str>>, needed: u64, available: u64) -> Self {
        Self::new(Cause::Truncated {
            what: what.into(),
            needed,
            available,
        })
        .help("the file is cut off: copy it again, or record it again")
    }
    /// The input asks for `size` where `limit` is the most allowed.
    pub fn too_large(what: impl Into<Cow<'static, str>>, size: u64, limit: u64) -> Self {
        Self::new(Cause::TooLarge {
            what: what.into(),
            size,
            limit,
        })
    }
    /// Adds the byte offset, unless it is known already.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset.get_or_insert(offset);
        self
    }
    /// Adds the file, unless it is known already.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.to_path_buf());
        self
    }
    /// Whether a file is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(&self.cause, Cause::Io(e) if e.kind() == std::io::ErrorKind::NotFound)
    }
    /// Whether a disk was full.
    pub(crate) fn is_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(&self.cause, Cause::Io(e) if matches!(e.kind(), StorageFull | QuotaExceeded))
    }
    /// Adds the way out, unless there is one already.
    #[must_use]
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        if self.help.is_empty() {
            self.help = help.into();
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", escaped_path(file))?;
        }
        if let Some(offset) = self.offset {
            write!(f, "byte {offset}: ")?;
        }
        f.write_str(&escaped_lines(&self.cause.to_string()))?;
        if !self.help.is_empty() {
            write!(f, " ({})", escaped_lines(&self.help))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Io(e) => Some(e),
            _ => None,
        }
    }
}

impl From<Overfull> for Error {
    fn from(over: Overfull) -> Error {
        let what = "the unpacked size in bytes, so far,";
        Error::too_large(what, over.size, over.limit).help(overfull::HELP)
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        if let Some(over) = Overfull::of(&e) {
            return over.into();
        }
        let help = NoRoom::of(&e).map_or("", NoRoom::help);
        Self::new(Cause::Io(e)).help(help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_file_offset_cause_and_way_out() {
        let e = Error::truncated("the header", 16, 3)
            .at(5)
            .at(9)
            .in_file(Path::new("t.dat"));
        assert_eq!(
            e.to_string(),
            "t.dat: byte 5: the header needs 16 bytes, but only 3 are left \
             (the file is cut off: copy it again, or record it again)"
        );
    }
}
