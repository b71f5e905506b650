//! A cursor over untrusted bytes of either endianness.
//!
//! Invariant: reading past the end is an [`Error`] that names the offset, never a panic, and never
//! moves the cursor.

use crate::error::{Error, Result};

/// A cursor over `data`, which begins at byte `base` of the input.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    data: &'a [u8],
    pos: usize,
    base: u64,
    big_endian: bool,
}

impl<'a> Bytes<'a> {
    /// Starts at the first byte of `data`; errors give offsets from `base` on.
    pub fn new(data: &'a [u8], base: u64, big_endian: bool) -> Self {
        Bytes {
            data,
            pos: 0,
            base,
            big_endian,
        }
    }
    /// Offset of the next byte in the input.
    pub fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }
    /// Bytes left.
    pub fn left(&self) -> usize {
        self.data.len() - self.pos
    }
    /// The next `n` bytes; `what` names them in an error.
    pub fn take(&mut self, n: u64, what: &'static str) -> Result<&'a [u8]> {
        let left = self.left();
        match usize::try_from(n) {
            Ok(n) if n <= left => {
                let s = &self.data[self.pos..self.pos + n];
                self.pos += n;
                Ok(s)
            }
            _ => Err(Error::truncated(what, n, left as u64).at(self.offset())),
        }
    }
    /// Checks that `expected` comes next, and skips it.
    pub fn expect(&mut self, expected: &[u8], what: &'static str) -> Result<()> {
        let at = self.offset();
        if self.take(expected.len() as u64, what)? != expected {
            return Err(Error::malformed(format!("{what} is not where it should be")).at(at));
        }
        Ok(())
    }
    /// The bytes up to the next NUL, which is skipped.
    pub fn c_str(&mut self, what: &'static str) -> Result<&'a [u8]> {
        let rest = &self.data[self.pos..];
        let Some(n) = rest.iter().position(|&b| b == 0) else {
            return Err(
                Error::malformed(format!("{what} has no terminating zero byte")).at(self.offset()),
            );
        };
        self.pos += n + 1;
        Ok(&rest[..n])
    }
    /// The next byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8> {
        Ok(self.take(1, what)?[0])
    }
    /// The next two bytes as a number.
    pub fn u16(&mut self, what: &'static str) -> Result<u16> {
        Ok(u16_at(self.take(2, what)?, 0, self.big_endian))
    }
    /// The next four bytes as a number.
    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        Ok(u32_at(self.take(4, what)?, 0, self.big_endian))
    }
    /// The next eight bytes as a number.
    pub fn u64(&mut self, what: &'static str) -> Result<u64> {
        Ok(u64_at(self.take(8, what)?, 0, self.big_endian))
    }
}

/// The two bytes at `at`; the caller has checked that they are there.
#[inline]
pub(crate) fn u16_at(b: &[u8], at: usize, big_endian: bool) -> u16 {
    let v = [b[at], b[at + 1]];
    if big_endian {
        u16::from_be_bytes(v)
    } else {
        u16::from_le_bytes(v)
    }
}

/// The four bytes at `at`; the caller has checked that they are there.
#[inline]
pub(crate) fn u32_at(b: &[u8], at: usize, big_endian: bool) -> u32 {
    let v: [u8; 4] = b[at..at + 4].try_into().unwrap_or_default();
    if big_endian {
        u32::from_be_bytes(v)
    } else {
        u32::from_le_bytes(v)
    }
}

/// The eight bytes at `at`; the caller has checked that they are there.
#[inline]
pub(crate) fn u64_at(b: &[u8], at: usize, big_endian: bool) -> u64 {
    let v: [u8; 8] = b[at..at + 8].try_into().unwrap_or_default();
    if big_endian {
        u64::from_be_bytes(v)
    } else {
        u64::from_le_bytes(v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_names_the_offset_and_does_not_move() {
        let mut b = Bytes::new(&[1, 0, 2], 100, false);
        assert_eq!(b.u16("x").unwrap(), 1);
        let e = b.u32("the count").unwrap_err();
        assert_eq!(e.offset, Some(102));
        assert_eq!(b.u8("x").unwrap(), 2);
        assert!(b.take(u64::MAX, "x").is_err());
    }

    #[test]
    fn both_endiannesses() {
        let d = [0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(u64_at(&d, 0, true), 0x1_0000_0002);
        assert_eq!(u32_at(&d, 0, false), 0x0100_0000);
        assert_eq!(u16_at(&d, 2, true), 1);
    }
}
