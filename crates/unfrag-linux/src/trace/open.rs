//! Opens a recording of a tracer, whichever format it has.
//!
//! Either all events are read into memory, or they are given away in batches while they are read.
//!
//! Invariant: the first bytes decide the format, never the file's name. A compressed file (zstd, gzip)
//! is opened as what it holds, even if it was compressed twice.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use crate::content;
use crate::error::{Error, Result};
use crate::no_room;
use crate::output;
use crate::packed::Allowance;
use crate::recording::{Events, Recording};
use crate::trace::event::batches::{BATCH, Batches};
use crate::trace::meter::{Meter, Metered};
use crate::trace::source::Source;
use crate::trace::{perfdata, text, tracedat, unpack};

/// What the reader knows beyond the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// `uname -r` of the recorded kernel, for formats that do not hold it (text). What the file says
    /// itself goes first.
    pub kernel_release: Option<&'a str>,
    /// Events of a batch that [`stream`] gives; some half a million if it is 0.
    pub batch: usize,
}

/// Most bytes read from something that is no regular file, such as a pipe.
const PIPE_CAP: u64 = 8 << 30;

/// How often a file may be compressed.
const MAX_LAYERS: u32 = 2;

const HELP: &str = "it should be a trace.dat of trace-cmd, a perf.data, or the text of \
     `trace-cmd report`, `perf script` or the kernel's `trace` file, as it is or compressed \
     with zstd or gzip";

/// Reads the recording at `path`: a `trace.dat`, a `perf.data` or trace text, plain or compressed.
///
/// # Errors
/// If the file cannot be read, or [`read`] fails; the error names the file.
pub fn open(path: &Path, options: &Options<'_>) -> Result<Recording> {
    let named = |e: Error| e.in_file(path);
    let data = read_file(path).map_err(|e| named(e.into()))?;
    read(&data, options).map_err(named)
}

/// Reads a recording from memory: a `trace.dat`, a `perf.data` or trace text, plain or compressed.
///
/// # Errors
/// If `data` has none of these formats, is cut off, or contradicts itself.
pub fn read(data: &[u8], options: &Options<'_>) -> Result<Recording> {
    read_layer(data, options, 0)
}

/// Reads the recording at `path` as [`open`] does, and gives its events to `give` in batches while it is read, in the
/// order of time; each batch has the tables of the one before, and perhaps more. The recording that is returned
/// has none of them.
///
/// What can be read but once, or is compressed and cannot be read from its beginning to its end, is unpacked first into
/// a file without a name in the temporary directory. The bytes of a `perf.data` are held in memory.
///
/// # Errors
/// As [`open`]; [`Cause::NotInBatches`](crate::error::Cause::NotInBatches) if the events have to be read as a whole;
/// and what `give` says.
pub fn stream(
    path: &Path,
    options: &Options<'_>,
    meter: &Meter,
    give: &mut dyn FnMut(Events) -> Result<()>,
) -> Result<Recording> {
    let named = |e: Error| e.in_file(path);
    let opened = (|| {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        Ok::<_, std::io::Error>((file, meta))
    })();
    let (file, meta) = opened.map_err(|e| named(e.into()))?;
    let limit = match options.batch {
        0 => BATCH,
        n => n,
    };
    let mut batches = Batches { limit, give };
    let input = match meta.is_file() {
        true => Input::File(file, meta.len()),
        false => Input::Stream(Box::new(Metered(file, meter.clone())), None),
    };
    stream_layer(input, options, meter, 0, &mut batches).map_err(named)
}

/// What is read: a file, or what comes but once and is packed in so many bytes.
enum Input {
    File(File, u64),
    Stream(Box<dyn Read>, Option<u64>),
}

fn stream_layer(
    input: Input,
    options: &Options<'_>,
    meter: &Meter,
    layer: u32,
    batches: &mut Batches<'_>,
) -> Result<Recording> {
    const LOOK: usize = 4096;
    let mut head = vec![0; LOOK];
    let (input, n) = match input {
        Input::File(file, len) => {
            let n = len.min(LOOK as u64) as usize;
            Source::File(&file, len).read(0, &mut head[..n])?;
            (Input::File(file, len), n)
        }
        Input::Stream(mut from, packed) => {
            let n = content::read_some(&mut from, &mut head)?;
            let whole = Cursor::new(head[..n].to_vec()).chain(from);
            (Input::Stream(Box::new(whole), packed), n)
        }
    };
    let format = Format::of(&head[..n]);
    match format {
        Format::TraceDat => {
            let (file, len) = input.into_file()?;
            // What was unpacked has been counted.
            let uncounted = Meter::default();
            let meter = if layer > 0 { &uncounted } else { meter };
            tracedat::stream(&Source::File(&file, len), meter, batches)
        }
        Format::PerfData => {
            let (file, len) = input.into_file()?;
            let data = Source::File(&file, len).bytes(0, len, "the file")?;
            if layer == 0 {
                meter.add(len);
            }
            perfdata::stream(&data, batches)
        }
        Format::Text => {
            let (mut from, size) = input.into_stream(meter);
            text::stream(&mut from, size, options.kernel_release, batches)
        }
        Format::Zstd | Format::Gzip if layer < MAX_LAYERS => {
            let (from, packed) = input.into_stream(meter);
            let allowance = Allowance::new();
            let from = BufReader::new(allowance.count(from));
            let unpacked: Box<dyn Read> = match format {
                Format::Zstd => Box::new(zstd::Decoder::with_buffer(from)?),
                _ => Box::new(flate2::bufread::MultiGzDecoder::new(from)),
            };
            let unpacked = allowance.bound(unpacked);
            let input = Input::Stream(Box::new(unpacked), Some(packed));
            stream_layer(input, options, meter, layer + 1, batches)
        }
        other => Err(other.refused()),
    }
}

impl Input {
    /// A file that holds it.
    fn into_file(self) -> Result<(File, u64)> {
        match self {
            Input::File(file, len) => Ok((file, len)),
            Input::Stream(mut from, _) => {
                let mut file = output::unnamed()?;
                if let Err(e) = content::copy(&mut from, &mut file) {
                    let written = file.metadata().map(|m| m.len()).ok();
                    return Err(match e.raw_os_error().is_some() && no_room::is_full(&e) {
                        true => no_room::temporary(e, written).into(),
                        false => e.into(),
                    });
                }
                let len = file.metadata()?.len();
                Ok((file, len))
            }
        }
    }

    /// Its bytes one after the other, and how many they may be.
    fn into_stream(self, meter: &Meter) -> (Box<dyn Read>, u64) {
        match self {
            Input::File(file, len) => (Box::new(Metered(file, meter.clone())), len),
            Input::Stream(from, packed) => (from, packed.map_or(PIPE_CAP, unpack::cap)),
        }
    }
}

fn read_layer(data: &[u8], options: &Options<'_>, layer: u32) -> Result<Recording> {
    let unpacked = match Format::of(data) {
        Format::TraceDat => return tracedat::read(data),
        Format::PerfData => return perfdata::read(data),
        Format::Text => return text::read(data, options.kernel_release),
        other @ (Format::Empty | Format::Unknown) => return Err(other.refused()),
        other @ (Format::Zstd | Format::Gzip) if layer == MAX_LAYERS => {
            return Err(other.refused());
        }
        Format::Zstd => unpack::whole(data, zstd::Decoder::with_buffer, "zstd")?,
        Format::Gzip => {
            let gzip = |from| Ok(flate2::bufread::MultiGzDecoder::new(from));
            unpack::whole(data, gzip, "gzip")?
        }
    };
    read_layer(&unpacked, options, layer + 1)
}

/// Format of a file, as its first bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    TraceDat,
    PerfData,
    Text,
    Zstd,
    Gzip,
    Empty,
    Unknown,
}

impl Format {
    /// The error of a file with nothing that could be read in it.
    fn refused(self) -> Error {
        match self {
            Format::Empty => Error::malformed("the file is empty").at(0).help(HELP),
            Format::Zstd | Format::Gzip => {
                Error::unsupported(format!("a file compressed more than {MAX_LAYERS} times"))
            }
            _ => Error::unsupported("a format that is not known")
                .at(0)
                .help(HELP),
        }
    }

    fn of(data: &[u8]) -> Format {
        let begins = |magic: &[u8]| data.starts_with(magic);
        if data.is_empty() {
            Format::Empty
        } else if begins(tracedat::MAGIC) {
            Format::TraceDat
        } else if begins(perfdata::MAGIC) || begins(perfdata::MAGIC_BIG_ENDIAN) {
            Format::PerfData
        } else if begins(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Format::Zstd
        } else if begins(&[0x1f, 0x8b]) {
            Format::Gzip
        } else if looks_like_text(data) {
            Format::Text
        } else {
            Format::Unknown
        }
    }
}

/// Whether the first KiB holds no control characters but white space.
fn looks_like_text(data: &[u8]) -> bool {
    let control = |b: &u8| *b < b' ' && !matches!(b, b'\n' | b'\r' | b'\t');
    !data.iter().take(1024).any(control)
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    let cap = if meta.is_file() { u64::MAX } else { PIPE_CAP };
    let mut data = Vec::new();
    let size = usize::try_from(meta.len()).unwrap_or(usize::MAX);
    data.try_reserve_exact(size.min(isize::MAX as usize))?;
    file.take(cap).read_to_end(&mut data)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_formats_are_refused() {
        let none = Options::default();
        for data in [
            &b""[..],
            b"\x7fELF\x02\x01",
            b"\x28\xb5\x2f\xfdx",
            b"\x1f\x8bx",
        ] {
            let e = read(data, &none).unwrap_err();
            assert!(!e.to_string().is_empty());
        }
        let e = open(Path::new("no such file"), &none).unwrap_err();
        assert_eq!(e.file.as_deref(), Some(Path::new("no such file")));
    }
}
