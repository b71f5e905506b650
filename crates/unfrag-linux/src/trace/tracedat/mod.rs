//! `trace.dat`: what trace-cmd records, file formats 6 and 7 (trace-cmd.dat(5)).
//!
//! A file is an initial header (`header`), then sections: one after another in format 6 (`v6`),
//! found through options in format 7 (`v7`). Both give the same `contents`: event formats, names
//! of tasks, and for each buffer and CPU where the sub-buffers of the kernel's ring buffer are (`window`, `ring`),
//! which `merge` turns into one sequence by time. `raw` decodes sub-buffers without a file.
//!
//! Invariant: every event of the file's top buffer (or of its first one, if it has no top buffer)
//! is kept, with all its fields as numbers; times are those of the trace clock as recorded, before
//! any shift that the file proposes for showing them.

mod contents;
mod header;
mod merge;
mod options;
#[cfg(target_os = "linux")]
pub(crate) mod raw;
mod ring;
mod v6;
mod v7;
mod window;

use crate::error::{Error, Result};
use crate::recording::Recording;
use crate::trace::event::batches::{Batches, all_at_once};
use crate::trace::event::format::EventFormat;
use crate::trace::meter::Meter;
use crate::trace::source::Source;
use contents::Contents;

pub use header::MAGIC;

/// Reads a `trace.dat`.
///
/// The gaps that the kernel reported become `meta.lost`; `uname -r` of the recorded host becomes
/// `meta.kernel_release`. If the file holds several buffers, the top one is read and `meta.facts`
/// names the others under `buffers not read`.
///
/// Fields become columns of raw numbers, or of strings where they are characters. An inline array of up
/// to 16 numbers becomes a column an element (`pair[0]`, ...); any other array or structure becomes a
/// string of its bytes in hexadecimal, and a kernel stack one of its addresses. Fields beyond the end of a record read as 0 or as the empty
/// string.
///
/// # Errors
/// If `data` is no `trace.dat` of format 6 or 7, is cut off, or contradicts itself.
pub fn read(data: &[u8]) -> Result<Recording> {
    let source = Source::Memory(data);
    all_at_once(|batches| stream(&source, &Meter::default(), batches))
}

/// Bytes in which the sections before the events are looked for first.
const HEAD: u64 = 1 << 20;
/// Bytes that they take at most.
const MOST_HEAD: u64 = 512 << 20;

/// Reads a `trace.dat`, and gives those events away that fill a batch.
///
/// # Errors
/// As [`read`], and if the events are too far out of order for batches.
pub(crate) fn stream(
    source: &Source<'_>,
    meter: &Meter,
    batches: &mut Batches<'_>,
) -> Result<Recording> {
    let mut size = HEAD;
    let contents = loop {
        let head = source.head(size)?;
        match contents(source, &head) {
            // The sections of format 6 have no lengths that are known before they are read.
            Err(_) if (head.len() as u64) < source.len() && size < MOST_HEAD => size *= 8,
            other => break other?,
        }
    };
    if let Some(text) = contents.text() {
        let mut recording = crate::trace::text::read(text, Some(&contents.meta.kernel_release))?;
        let source = contents.meta.source.clone();
        contents.complete_text_meta(&mut recording);
        recording.meta.source = format!("{source}, latency text");
        return Ok(recording);
    }
    merge::merge(contents, meter, batches)
}

/// What a file holds, of which `head` is the beginning.
fn contents<'a>(source: &Source<'a>, head: &[u8]) -> Result<Contents<'a>> {
    let (header, rest) = header::read(head, 0)?;
    match header.version {
        6 => v6::read(source, rest, &header),
        7 => v7::read(source, &header),
        v => Err(Error::unsupported(format!("trace.dat version {v}"))
            .at(MAGIC.len() as u64)
            .help("versions 6 and 7 are read; `trace-cmd convert` makes one from another")),
    }
}

/// The event formats of a `perf.data`: its tracing data are the head of a `trace.dat`.
pub(crate) struct TracingData {
    pub big_endian: bool,
    /// Bytes of a page of the host.
    pub page_size: u32,
    pub formats: Vec<EventFormat>,
}

/// Reads the tracing data of a `perf.data`, which begin at byte `base` of it.
pub(crate) fn read_tracing_data(data: &[u8], base: u64) -> Result<TracingData> {
    let (header, mut b) = header::read(data, base)?;
    contents::read_headers(&mut b, &header)?;
    let mut formats = Vec::new();
    contents::read_ftrace_formats(&mut b, &mut formats)?;
    contents::read_event_formats(&mut b, &mut formats)?;
    Ok(TracingData {
        big_endian: header.big_endian,
        page_size: header.page_size,
        formats,
    })
}
