//! Opens a recording of a tracer, whichever format it has.
//!
//! Invariant: the first bytes decide the format, never the file's name. A compressed file (zstd, gzip)
//! is opened as what it holds, even if it was compressed twice.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};
use crate::recording::Recording;
use crate::trace::{perfdata, text, tracedat, unpack};

/// What the reader knows beyond the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// `uname -r` of the recorded kernel, for formats that do not hold it (text). What the file says
    /// itself goes first.
    pub kernel_release: Option<&'a str>,
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

fn read_layer(data: &[u8], options: &Options<'_>, layer: u32) -> Result<Recording> {
    let packed = data.len() as u64;
    let unpacked = match Format::of(data) {
        Format::TraceDat => return tracedat::read(data),
        Format::PerfData => return perfdata::read(data),
        Format::Text => return text::read(data, options.kernel_release),
        Format::Empty => return Err(Error::malformed("the file is empty").at(0).help(HELP)),
        Format::Unknown => {
            return Err(Error::unsupported("a format that is not known")
                .at(0)
                .help(HELP));
        }
        Format::Zstd | Format::Gzip if layer == MAX_LAYERS => {
            return Err(Error::unsupported(format!(
                "a file compressed more than {MAX_LAYERS} times"
            )));
        }
        Format::Zstd => unpack::whole(zstd::Decoder::with_buffer(data)?, packed, "zstd")?,
        Format::Gzip => unpack::whole(flate2::bufread::MultiGzDecoder::new(data), packed, "gzip")?,
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
