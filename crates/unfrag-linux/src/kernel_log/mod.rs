//! Kernel logs: reports of failed allocations and of the OOM killer, in every form that kernels from 2.4 on print
//! and however the text was logged, mailed or pasted. `spec: K.1, K.2, K.3`
//!
//! From the bytes upwards: `utf16` (what Windows consoles save), `lines` (which lines may matter), `decode` and
//! `envelope` (what stood around a message), `statement` (what a message states), `wrap` and `assemble` (wrapped lines
//! put together), `fields` (its numbers), `holders` (tables of who holds memory), `headline`, `draft` and `open` (which report it belongs to), [`report`] (the
//! result). `host` opens the log of this host.
//!
//! Invariant: a log of any length is read in bounded memory; what looks like part of a report and was not understood
//! is [`Found::Skipped`]; no input panics.

mod assemble;
mod decode;
mod draft;
mod envelope;
mod fields;
mod headline;
mod holders;
#[cfg(target_os = "linux")]
pub mod host;
mod lines;
mod open;
pub mod report;
mod statement;
mod utf16;
mod wrap;

pub use assemble::Found;
pub use report::{Kind, Memory, Report, Zone};

use crate::error::Result;
use crate::packed::unpack;
use assemble::Assembler;
use decode::Decoder;
use lines::Lines;
use std::io::Read;

/// Reads a log, which may be packed (gzip, zstd, xz, bzip2), and gives each report and each line that was not understood to `sink`, in order.
///
/// # Errors
/// If the input cannot be read.
pub fn read(input: impl Read, sink: impl FnMut(Found)) -> Result<()> {
    let mut lines = Lines::new(utf16::Utf8::new(unpack(input)?));
    let mut decoder = Decoder::default();
    let mut assembler = Assembler::new(sink);
    loop {
        let is_idle = assembler.is_idle() && !decoder.is_holding();
        let Some((number, bytes, before)) = lines.next(is_idle)? else {
            break;
        };
        // The line before one with such a word may hold the first half of a beginning.
        if let Some(before) = before {
            decoder.decode(before, &mut |message| {
                assembler.take(number.saturating_sub(1), &message);
            });
        }
        decoder.decode(bytes, &mut |message| assembler.take(number, &message));
    }
    assembler.end();
    Ok(())
}
