//! A host's memory as a few lines of text for an issue or a chat, and back.
//!
//! The text is words such as `MemFree:1048576k`, a file of procfs after the other. It is put together again whatever a
//! mailer, a chat or Markdown made of its lines: marks of quotes, lists, tables and fences are no words, and where a line
//! is broken says nothing.
//!
//! - `form`: the frame of the text. `known` and `counters`: the names that may be in it. `words`: a word, and the sum over
//!   several. `write`: a snapshot as words. `plain`: what mails and web pages made of a text, as plain text again. `read`:
//!   words as a snapshot, and `files`: those of a part as the file of which they were made.
//!
//! Invariant: a name is in the text only if it is on a list here, so that it names no program, no host and no path. What
//! was damaged on its way is refused by name, never read as another number.

mod counters;
mod files;
mod form;
mod known;
mod plain;
mod read;
mod words;
mod write;

pub use form::MOST;
pub use read::{Mark, Pasted, is_of_several, read};
pub use write::{Earlier, Paste, write};
