//! Readers of packed data: gzip, zstd, xz and bzip2, told by their first bytes; and how much may come out of them.
//!
//! Invariant: what is read is unpacked as it is read, in bounded memory; what is in none of these formats is given as it
//! is. Whoever keeps what comes out asks an [`Allowance`], which grows with the packed bytes that were read so far. So a
//! few packed bytes that stand for very many cost an error and some tens of MB, in any format, however often they are
//! packed.

use crate::error::{Error, Result};
use crate::overfull::Overfull;
use lzma_rust2::XzReader;
use std::cell::Cell;
use std::io::{self, BufRead, Cursor, Read};
use std::rc::Rc;

/// Bytes that tell how data is packed.
const MAGIC: u64 = 6;
/// KiB that unpacking xz may take; its strongest setting takes 65 MiB.
const XZ_KIB: u32 = 256 << 10;

/// Bytes that may be kept of anything.
const BASE: u64 = 16 << 20;
/// Bytes that may be kept for each packed byte beyond that. Traces and logs shrink by 5 to 60 times, and hundreds of
/// copies of procfs by 120 (xz, zstd); one byte over and over again by 230 (the fastest gzip) to 30,000 times (zstd).
const BYTES_PER_BYTE: u64 = 200;

/// A reader of the unpacked data.
///
/// # Errors
/// If the beginning cannot be read.
pub(crate) fn unpack<'a>(mut packed: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut magic = vec![];
    (&mut packed).take(MAGIC).read_to_end(&mut magic)?;
    let whole = Cursor::new(magic.clone()).chain(packed);
    Ok(if magic.starts_with(&[0x1f, 0x8b]) {
        Box::new(flate2::read::MultiGzDecoder::new(whole))
    } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::stream::read::Decoder::new(whole)?)
    } else if magic.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        Box::new(XzReader::new_mem_limit(whole, true, XZ_KIB))
    } else if magic.starts_with(b"BZh") {
        Box::new(bzip2::read::MultiBzDecoder::new(whole))
    } else {
        Box::new(whole)
    })
}

/// How much may be kept of what is unpacked.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    /// Packed bytes that were read so far.
    packed: Rc<Cell<u64>>,
    /// Bytes that were kept so far.
    kept: u64,
}

impl Allowance {
    /// Nothing is read yet.
    pub fn new() -> Allowance {
        Allowance::default()
    }

    /// A reader of packed bytes, or of bytes that are in no such format, that adds to the allowance.
    pub fn count<R>(&self, from: R) -> Counted<R> {
        Counted {
            from,
            count: self.packed.clone(),
        }
    }

    /// Bytes that may be kept in all.
    fn limit(&self) -> u64 {
        let share = self.packed.get().saturating_mul(BYTES_PER_BYTE);
        share.saturating_add(BASE)
    }

    /// Bytes that were kept so far.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// So many more bytes are kept.
    ///
    /// # Errors
    /// If they are more than the packed bytes allow.
    pub fn keep(&mut self, bytes: u64) -> std::result::Result<(), Overfull> {
        self.kept = self.kept.saturating_add(bytes);
        let limit = self.limit();
        match self.kept > limit {
            true => Err(Overfull {
                size: self.kept,
                limit,
            }),
            false => Ok(()),
        }
    }

    /// A reader that keeps what it gives.
    pub fn bound<R>(self, from: R) -> Bounded<R> {
        Bounded {
            from,
            allowance: self,
        }
    }

    /// Keeps everything that a reader gives.
    ///
    /// # Errors
    /// If that is more than is allowed, or cannot be read; `damaged` says of what is damaged.
    pub fn keep_all(
        &mut self,
        from: &mut dyn Read,
        damaged: impl Fn(&io::Error) -> Error,
    ) -> Result<Vec<u8>> {
        let mut kept = vec![];
        let mut room = vec![0; 64 << 10];
        loop {
            let n = match from.read(&mut room) {
                Ok(0) => return Ok(kept),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Overfull::of(&e).map_or_else(|| damaged(&e), Error::from)),
            };
            self.keep(n as u64)?;
            kept.try_reserve(n).map_err(io::Error::from)?;
            kept.extend_from_slice(&room[..n]);
        }
    }
}

/// A reader that counts what it gives.
pub(crate) struct Counted<R> {
    from: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(room)?;
        self.count.set(self.count.get() + n as u64);
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.from.fill_buf()
    }
    fn consume(&mut self, n: usize) {
        self.from.consume(n);
        self.count.set(self.count.get() + n as u64);
    }
}

/// A reader that gives no more than an [`Allowance`] allows; its error then is an [`Overfull`].
pub(crate) struct Bounded<R> {
    from: R,
    allowance: Allowance,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(room)?;
        self.allowance
            .keep(n as u64)
            .map_err(|over| io::Error::new(io::ErrorKind::FileTooLarge, over))?;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn zeros(mut to: impl Write, mib: usize) {
        for _ in 0..mib {
            to.write_all(&vec![0; 1 << 20]).unwrap();
        }
    }

    /// So many MiB of zeros in each format, by its name.
    fn bombs(mib: usize) -> Vec<(&'static str, Vec<u8>)> {
        let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
        zeros(&mut gzip, mib);
        let mut zstd = zstd::Encoder::new(vec![], 1).unwrap();
        zeros(&mut zstd, mib);
        let options = lzma_rust2::XzOptions::with_preset(0);
        let mut xz = lzma_rust2::XzWriter::new(vec![], options).unwrap();
        zeros(&mut xz, mib);
        let mut bzip2 = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::fast());
        zeros(&mut bzip2, mib);
        vec![
            ("gzip", gzip.finish().unwrap()),
            ("zstd", zstd.finish().unwrap()),
            ("xz", xz.finish().unwrap()),
            ("bzip2", bzip2.finish().unwrap()),
        ]
    }

    fn kept(packed: &[u8]) -> Result<Vec<u8>> {
        let mut allowance = Allowance::new();
        let mut from = unpack(allowance.count(packed))?;
        allowance.keep_all(&mut from, |e| Error::malformed(e.to_string()))
    }

    #[test]
    fn a_bomb_is_refused_soon_in_each_format_and_what_is_small_is_kept() {
        for (name, bomb) in bombs(200) {
            let e = kept(&bomb).unwrap_err().to_string();
            assert!(e.contains("the limit is"), "{name}: {e}");
            let size = e.split_whitespace().find_map(|w| {
                let digits: String = w.chars().filter(char::is_ascii_digit).collect();
                digits.parse::<u64>().ok().filter(|&n| n > BASE)
            });
            assert!(size.is_some_and(|n| n < 100 << 20), "{name}: {e}");
        }
        for (name, packed) in bombs(10) {
            assert_eq!(kept(&packed).unwrap().len(), 10 << 20, "{name}");
        }
    }

    #[test]
    fn what_is_not_packed_is_kept_whole() {
        let text = b"not packed at all\n".repeat(1 << 20);
        let mut allowance = Allowance::new();
        // More than any base, and as many bytes as were read.
        for _ in 0..4 {
            let mut from = unpack(allowance.count(&text[..])).unwrap();
            let kept = allowance.keep_all(&mut from, |e| Error::malformed(e.to_string()));
            assert_eq!(kept.unwrap().len(), text.len());
        }
    }
}
