//! A host's memory as a few lines of text for an issue or a chat, and back.
//!
//! The text is words such as `MemFree:1048576k`, a file of procfs after the other. It is put together again whatever a
//! mailer, a chat or Markdown made of its lines: marks of quotes, lists, tables and fences are no words, and where a line
//! is broken says nothing.
//!
//! - `known`: the names that may be in it. `words`: a word, and the sum over several. `write`: a snapshot as words.
//!   `read`: words as a snapshot, with the files of which they were made.
//!
//! Invariant: a name is in the text only if it is on a list here, so that it names no program, no host and no path. What
//! was damaged on its way is refused by name, never read as another number.

mod known;
mod read;
mod words;
mod write;

pub use read::read;
pub use write::{Paste, write};

/// Bytes of the text at most.
pub const MOST: usize = 8 << 10;

/// Characters of a line at most: mailers break longer ones at 72, with the marks of two quotes before it.
const WIDTH: usize = 66;

/// The first word.
const BEGIN: &str = "unfragpaste:1";
/// The key of the last word, which has the number of parts.
const END: &str = "unfragend";

/// The parts, those first without which the others tell least.
const PARTS: [&str; 9] = [
    "host",
    "buddyinfo",
    "zoneinfo",
    "meminfo",
    "vmstat",
    "settings",
    "pagetypeinfo",
    "before",
    "slabinfo",
];
