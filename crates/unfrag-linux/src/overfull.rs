//! What is said when more comes out of packed bytes than is kept of them.

use std::fmt;
use std::io;

/// The way out.
pub(crate) const HELP: &str =
    "this looks like a decompression bomb; if it is not, unpack it yourself first, and give that";

/// More came out of packed bytes than is kept of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overfull {
    /// Bytes that came out so far.
    pub size: u64,
    /// Bytes that are kept of as many packed ones.
    pub limit: u64,
}

impl Overfull {
    /// The reason of an error of reading, if it is this one.
    pub fn of(e: &io::Error) -> Option<Overfull> {
        e.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for Overfull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overfull { size, limit } = self;
        write!(f, "{size} bytes are unpacked so far, and {limit} are kept")
    }
}

impl std::error::Error for Overfull {}
