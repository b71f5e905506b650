//! Decompression with caps.
//!
//! Invariant: the output is never larger than [`cap`] allows for the input, whatever the input
//! declares, so a decompression bomb costs an error and a bounded amount of memory.

use std::io::Read;

use crate::error::{Error, Result};
use crate::packed::{Allowance, Counted};

/// Output allowed for any input, in bytes.
const BASE: u64 = 16 << 20;
/// Output allowed for each byte of input beyond that; traces shrink by 5 to 60 times.
const BYTES_PER_BYTE: u64 = 256;
/// Output allowed at most, in bytes.
const MAX: u64 = 32 << 30;

const HELP: &str =
    "this looks like a decompression bomb; if it is not, decompress it yourself first";

/// The most bytes that `packed` bytes may decompress to.
pub(crate) fn cap(packed: u64) -> u64 {
    packed
        .saturating_mul(BYTES_PER_BYTE)
        .saturating_add(BASE)
        .min(MAX)
}

/// A compression that readers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Zstd,
    /// zlib's format inside a trace.dat.
    Zlib,
}

/// Appends to `out` the `unpacked` bytes that the block `packed` declares to hold, of which
/// at most `cap` bytes in all may come.
pub(crate) fn block(
    packing: Packing,
    packed: &[u8],
    unpacked: u64,
    cap: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let old = out.len();
    let size = (old as u64).saturating_add(unpacked);
    if size > cap {
        return Err(Error::too_large("the decompressed size in bytes", size, cap).help(HELP));
    }
    out.resize(size as usize, 0);
    let target = &mut out[old..];
    let got = match packing {
        Packing::Zstd => zstd::bulk::decompress_to_buffer(packed, target)
            .map_err(|e| Error::malformed(format!("zstd data is damaged: {e}")))?,
        Packing::Zlib => {
            let mut z = flate2::Decompress::new(true);
            z.decompress(packed, target, flate2::FlushDecompress::Finish)
                .map_err(|e| Error::malformed(format!("zlib data is damaged: {e}")))?;
            z.total_out() as usize
        }
    };
    if got as u64 != unpacked {
        return Err(Error::malformed(format!(
            "compressed data holds {got} bytes where {unpacked} are announced"
        )));
    }
    Ok(())
}

/// Everything that a reader of a whole compressed file gives. `unpacker` makes one of the packed bytes.
pub(crate) fn whole<'a, R: Read + 'a>(
    packed: &'a [u8],
    unpacker: impl FnOnce(Counted<&'a [u8]>) -> std::io::Result<R>,
    what: &str,
) -> Result<Vec<u8>> {
    let damaged = |e: &std::io::Error| Error::malformed(format!("{what} data is damaged: {e}"));
    let mut allowance = Allowance::new();
    let mut from = unpacker(allowance.count(packed))?;
    allowance.keep_all(&mut from, damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_declares_too_much_or_something_else_is_refused() {
        let packed = zstd::bulk::compress(&[7; 100], 1).unwrap();
        let mut out = vec![1];
        block(Packing::Zstd, &packed, 100, 1000, &mut out).unwrap();
        assert_eq!(out.len(), 101);
        assert!(block(Packing::Zstd, &packed, 99, 1000, &mut out).is_err());
        assert!(block(Packing::Zstd, &packed, u64::MAX, 1000, &mut out).is_err());
        assert!(block(Packing::Zlib, &packed, 100, 1000, &mut out).is_err());
    }

    #[test]
    fn a_bomb_is_refused_after_a_bounded_amount_of_output() {
        let e = whole(b"ten bytes!", |_| Ok(std::io::repeat(0)), "zstd").unwrap_err();
        assert!(e.to_string().contains("the limit is"), "{e}");
    }
}
