//! Bytes that can be read at any place: a file, or what is in memory already.
//!
//! Invariant: reading beyond the end is an [`Error`] that names the offset, and takes no memory for it.

use std::borrow::Cow;
use std::fs::File;

use crate::error::{Error, Result};

/// A recording's bytes.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Memory(&'a [u8]),
    /// A file and its length.
    File(&'a File, u64),
}

impl<'a> Source<'a> {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Source::Memory(bytes) => bytes.len() as u64,
            Source::File(_, len) => *len,
        }
    }

    /// `size` bytes from `at` on; `what` names them in an error.
    pub fn bytes(&self, at: u64, size: u64, what: &'static str) -> Result<Cow<'a, [u8]>> {
        let left = self.len().saturating_sub(at);
        if size > left {
            return Err(Error::truncated(what, size, left).at(at));
        }
        Ok(match self {
            Source::Memory(bytes) if size > 0 => {
                Cow::Borrowed(&bytes[at as usize..(at + size) as usize])
            }
            Source::Memory(_) => Cow::Borrowed(&[]),
            Source::File(..) => {
                let mut room = vec![0; size as usize];
                self.read(at, &mut room)?;
                Cow::Owned(room)
            }
        })
    }

    /// Up to `most` bytes from the beginning.
    pub fn head(&self, most: u64) -> Result<Cow<'a, [u8]>> {
        self.bytes(0, self.len().min(most), "the beginning")
    }

    /// Fills `room` with the bytes from `at` on, which are there.
    pub fn read(&self, at: u64, room: &mut [u8]) -> Result<()> {
        match self {
            Source::Memory(bytes) => {
                let at = at as usize;
                room.copy_from_slice(&bytes[at..at + room.len()]);
                Ok(())
            }
            Source::File(file, _) => read_file(file, at, room),
        }
    }
}

#[cfg(unix)]
fn read_file(file: &File, at: u64, room: &mut [u8]) -> Result<()> {
    use std::os::unix::fs::FileExt;
    file.read_exact_at(room, at)
        .map_err(|e| Error::from(e).at(at))
}

#[cfg(not(unix))]
fn read_file(mut file: &File, at: u64, room: &mut [u8]) -> Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    let read = file
        .seek(SeekFrom::Start(at))
        .and_then(|_| file.read_exact(room));
    read.map_err(|e| Error::from(e).at(at))
}
