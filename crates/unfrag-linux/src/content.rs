//! The bytes of a file of a snapshot.
//!
//! Page flags take a five-hundredth of a host's memory, and shrink to a hundredth of that, so they are
//! packed while they are read and unpacked while they are used.
//!
//! Invariant: two contents are equal if their bytes are, packed or not.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Write};

/// Bytes read or compared at a time; a multiple of eight, as `/proc/kpageflags` takes no others.
pub const STEP: usize = 256 << 10;

/// The bytes of a file, as they were read.
#[derive(Clone)]
pub struct Content(Form);

#[derive(Clone)]
enum Form {
    Plain(Vec<u8>),
    /// Compressed with zstd; its length before that.
    Packed(Vec<u8>, u64),
}

impl Content {
    /// Reads everything, and keeps it packed.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn pack(mut from: impl Read) -> io::Result<Content> {
        let mut packer = Packer::new()?;
        copy(&mut from, &mut packer)?;
        packer.finish()
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::Plain(bytes) => bytes.len() as u64,
            Form::Packed(_, len) => *len,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are not packed.
    pub fn plain(&self) -> Option<&[u8]> {
        match &self.0 {
            Form::Plain(bytes) => Some(bytes),
            Form::Packed(..) => None,
        }
    }

    /// The bytes as a zstd frame, if they are packed.
    pub fn packed(&self) -> Option<&[u8]> {
        match &self.0 {
            Form::Plain(_) => None,
            Form::Packed(bytes, _) => Some(bytes),
        }
    }

    /// All bytes at once.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match &self.0 {
            Form::Plain(bytes) => Cow::Borrowed(bytes),
            Form::Packed(packed, _) => {
                Cow::Owned(zstd::decode_all(&packed[..]).unwrap_or_else(|_| ours()))
            }
        }
    }

    /// The bytes one after the other, in bounded memory.
    pub fn reader(&self) -> Box<dyn Read + '_> {
        match &self.0 {
            Form::Plain(bytes) => Box::new(&bytes[..]),
            Form::Packed(packed, _) => match zstd::Decoder::with_buffer(&packed[..]) {
                Ok(decoder) => Box::new(decoder),
                Err(_) => ours(),
            },
        }
    }
}

fn ours<T>() -> T {
    unreachable!("what is packed was packed here")
}

/// Packs bytes that come in pieces.
pub struct Packer {
    to: zstd::Encoder<'static, Vec<u8>>,
    len: u64,
}

impl Packer {
    /// Level of zstd: page flags shrink nearly as far with the fastest as with slow ones.
    const LEVEL: i32 = 1;

    /// A packer without any bytes yet.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new() -> io::Result<Packer> {
        Ok(Packer {
            to: zstd::Encoder::new(vec![], Self::LEVEL)?,
            len: 0,
        })
    }

    /// The bytes that were written to it.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn finish(self) -> io::Result<Content> {
        let mut packed = self.to.finish()?;
        packed.shrink_to_fit();
        Ok(Content(Form::Packed(packed, self.len)))
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.len += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Copies everything, in steps of [`STEP`] bytes.
///
/// # Errors
/// If it cannot be read or written.
pub fn copy(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    let mut room = vec![0; STEP];
    loop {
        match read_some(from, &mut room)? {
            0 => return Ok(()),
            n => to.write_all(&room[..n])?,
        }
    }
}

/// Fills `room` as far as the bytes go; gives their number.
///
/// # Errors
/// If they cannot be read.
pub fn read_some(from: &mut dyn Read, room: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < room.len() {
        match from.read(&mut room[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

impl Default for Content {
    fn default() -> Self {
        Content(Form::Plain(vec![]))
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        if let (Some(a), Some(b)) = (self.plain(), other.plain()) {
            return a == b;
        }
        if self.len() != other.len() {
            return false;
        }
        let (mut a, mut b) = (self.reader(), other.reader());
        let (mut x, mut y) = (vec![0; STEP], vec![0; STEP]);
        loop {
            let read = (read_some(&mut a, &mut x), read_some(&mut b, &mut y));
            let (Ok(n), Ok(m)) = read else { return ours() };
            if x[..n] != y[..m] {
                return false;
            }
            if n == 0 {
                return true;
            }
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.plain() {
            Some(bytes) => fmt::Debug::fmt(&String::from_utf8_lossy(bytes), f),
            None => write!(f, "{} bytes, packed", self.len()),
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Content(Form::Plain(bytes))
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_come_back_and_equal_plain_ones() {
        let bytes: Vec<u8> = (0..3 * STEP as u32 + 5).map(|i| (i >> 9) as u8).collect();
        let packed = Content::pack(&bytes[..]).unwrap();
        assert_eq!(packed.len(), bytes.len() as u64);
        assert!(packed.packed().is_some_and(|p| p.len() < bytes.len() / 50));
        assert!(*packed.bytes() == bytes[..]);
        assert!(packed == Content::from(bytes.clone()));
        let mut other = bytes;
        *other.last_mut().unwrap() ^= 1;
        assert!(packed != Content::from(other));
        assert_ne!(packed, Content::from("short"));
    }
}
