//! Readers of packed data: gzip, zstd, xz and bzip2, told by their first bytes.
//!
//! Invariant: what is read is unpacked as it is read, in bounded memory; what is in none of these formats is given as it
//! is.

use lzma_rust2::XzReader;
use std::io::{Cursor, Read, Result};

/// Bytes that tell how data is packed.
const MAGIC: u64 = 6;
/// KiB that unpacking xz may take; its strongest setting takes 65 MiB.
const XZ_KIB: u32 = 256 << 10;

/// A reader of the unpacked data.
///
/// # Errors
/// If the beginning cannot be read.
pub(crate) fn unpack<'a>(mut packed: impl Read + 'a) -> Result<Box<dyn Read + 'a>> {
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
