//! The initial header. Both formats share it up to the page size; format 7 adds the compression and the
//! place of the options.

use crate::error::{Error, Result};
use crate::trace::bytes::Bytes;
use crate::trace::unpack::Packing;

/// What every `trace.dat` begins with.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The initial header of a file.
pub(super) struct Header {
    /// File format version.
    pub version: u32,
    pub big_endian: bool,
    /// Bytes of a `long` of the host's user space.
    pub long_size: u8,
    /// Bytes of a page of the host.
    pub page_size: u32,
    /// Format 7: how sections are compressed; `Err` holds a name that nothing here reads.
    pub packing: std::result::Result<Option<Packing>, String>,
    /// Format 7: where the first options section is.
    pub options_at: u64,
}

/// Reads the header at the start of `data`, which is byte `base` of the file; also gives the cursor
/// behind it.
pub(super) fn read(data: &[u8], base: u64) -> Result<(Header, Bytes<'_>)> {
    let mut b = Bytes::new(data, base, false);
    b.expect(MAGIC, "the magic of a trace.dat")?;
    let version = std::str::from_utf8(b.c_str("the version")?)
        .ok()
        // perf's tracing data say `0.6` where trace-cmd says `6`.
        .and_then(|v| v.strip_prefix("0.").unwrap_or(v).parse().ok())
        .ok_or_else(|| Error::malformed("the version is not a number").at(base))?;
    let big_endian = match b.u8("the endianness")? {
        0 => false,
        1 => true,
        e => return Err(Error::malformed(format!("endianness {e}, not 0 or 1")).at(b.offset() - 1)),
    };
    let long_size = b.u8("the size of a long")?;
    if long_size != 4 && long_size != 8 {
        let e = Error::malformed(format!("a long of {long_size} bytes, not 4 or 8"));
        return Err(e.at(b.offset() - 1));
    }
    let at = data.len() - b.left();
    let mut b = Bytes::new(&data[at..], base + at as u64, big_endian);
    let page_size = b.u32("the page size")?;
    if !page_size.is_power_of_two() || !(512..=1 << 20).contains(&page_size) {
        let e = Error::malformed(format!("a page size of {page_size} bytes"));
        return Err(e.at(b.offset() - 4));
    }
    let mut header = Header {
        version,
        big_endian,
        long_size,
        page_size,
        packing: Ok(None),
        options_at: 0,
    };
    if version >= 7 {
        let name = b.c_str("the compression's name")?;
        b.c_str("the compression's version")?;
        header.packing = match name {
            b"none" | b"" => Ok(None),
            b"zstd" => Ok(Some(Packing::Zstd)),
            b"zlib" => Ok(Some(Packing::Zlib)),
            other => Err(String::from_utf8_lossy(other).into_owned()),
        };
        header.options_at = b.u64("the offset of the options")?;
    }
    Ok((header, b))
}
