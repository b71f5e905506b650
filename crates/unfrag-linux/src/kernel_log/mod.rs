//! Kernel logs: reports of failed allocations and of the OOM killer, in every form that kernels from 2.4 on print
//! and however the text was logged, mailed or pasted. `spec: K.1, K.2, K.3`
//!
//! From the bytes upwards: `utf16` (what Windows consoles save), `sign` (whether it is a log at all), `lines` and `phrases` (which lines may matter), `decode` and `json`
//! (the text of a line), `clock`, `loggers`, `envelope`, `anchor`, `shape` and `frame` (what stands around a message), `sources` (the host
//! that it comes from), `statement` (what it states), `wrap` and `assemble` (wrapped lines put together), `fields` (its
//! numbers), `holders` (tables of who holds memory), `headline`, `draft`, `pairs`, `around` and `open` (which report it belongs to), [`report`] and [`event`] (the results).
//! `reader` puts these together; `host` opens the log of this host.
//!
//! Invariant: a log of any length is read in bounded memory; what looks like part of a report and was not understood
//! is [`Found::Skipped`]; no input panics.

mod anchor;
mod around;
mod assemble;
mod clock;
mod decode;
mod draft;
mod envelope;
pub mod event;
mod fields;
mod frame;
mod headline;
mod holders;
#[cfg(target_os = "linux")]
pub mod host;
mod json;
mod lines;
mod loggers;
mod open;
mod pairs;
mod phrases;
mod reader;
pub mod report;
mod shape;
mod sign;
mod sources;
mod statement;
mod utf16;
mod wrap;

pub use event::Event;
pub use open::Found;
pub use report::{Kind, Memory, Report, Zone};

use crate::error::Result;
use crate::packed::unpack;
use std::io::Read;

/// Reads a log, which may be packed (gzip, zstd, xz, bzip2), and gives each report and each line that was not understood to `sink`, in order.
/// Whether it has a line of a kernel: a text without one tells nothing.
///
/// # Errors
/// If the input cannot be read.
pub fn read(input: impl Read, sink: impl FnMut(Found)) -> Result<bool> {
    let mut text = sign::Watched::new(utf16::Utf8::new(unpack(input)?));
    reader::read(&mut text, sink)?;
    Ok(text.has_line())
}
