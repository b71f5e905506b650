//! The ZIP container: stored members, each with a checksum.

use std::io::{Read, Seek, SeekFrom, Write};

use parquet::errors::ParquetError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::manifest::{self, Manifest, Table, least_size, most_rows};
use super::table::{self, Source};
use crate::error::{Error, Result};

/// Member that makes a file as large as [`least_size`] asks for.
const PADDING: &str = "padding";

/// A file that is being written, member by member.
pub struct Writer<W: Write + Seek + Send> {
    zip: ZipWriter<Quiet<W>>,
    bytes: u64,
    /// Bytes of all members so far.
    size: u64,
}

impl<W: Write + Seek + Send> Writer<W> {
    /// A file without members.
    pub fn new(to: W) -> Self {
        Writer {
            zip: ZipWriter::new(Quiet::new(to)),
            bytes: 0,
            size: 0,
        }
    }

    /// Adds a table as the member `name` with `.parquet`, unless it is empty.
    pub fn table(&mut self, name: &str, columns: &[Source]) -> Result<Table> {
        let member = format!("{name}.parquet");
        let design = table::design(&member, columns)?;
        self.bytes += design.bytes;
        if design.table.member.is_some() {
            // A member of which only its end shows how large it is.
            let is_large = design.bytes > u64::from(u32::MAX) / 2 || design.table.rows > 1 << 28;
            self.member(&member, is_large, |to| {
                table::write(to, columns, &design).map_err(|e| match e {
                    ParquetError::External(e) => match e.downcast::<std::io::Error>() {
                        Ok(e) => Error::from(*e),
                        Err(e) => Error::malformed(format!("{member}: {e}")),
                    },
                    e => Error::malformed(format!("{member}: {e}")),
                })
            })?;
        }
        Ok(design.table)
    }

    /// Adds a member.
    fn member(
        &mut self,
        name: &str,
        is_large: bool,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(is_large);
        self.zip.start_file(name, options).map_err(failed)?;
        let mut counted = Counted {
            to: &mut self.zip,
            bytes: 0,
        };
        write(&mut counted)?;
        self.size += counted.bytes;
        Ok(())
    }

    /// Ends the file with its manifest.
    pub fn finish(mut self, manifest: &Manifest) -> Result<W> {
        let json = serde_json::to_vec_pretty(manifest)
            .map_err(|e| Error::malformed(format!("{}: {e}", manifest::MEMBER)))?;
        self.member(manifest::MEMBER, false, |to| Ok(to.write_all(&json)?))?;
        // The kinds' rows count twice: they are events as well, in the manifest.
        let least = least_size(claimed_rows(manifest), self.bytes);
        if self.size < least {
            let padding = vec![0; (least - self.size) as usize];
            self.member(PADDING, false, |to| Ok(to.write_all(&padding)?))?;
        }
        self.zip.finish().map_err(failed)?.sound()
    }
}

/// Reports its first error, and takes everything after it without one: a `ZipWriter` that is dropped still tries to end
/// its file, and prints what goes wrong then.
struct Quiet<W> {
    to: W,
    position: u64,
    has_failed: bool,
}

impl<W> Quiet<W> {
    fn new(to: W) -> Self {
        Quiet {
            to,
            position: 0,
            has_failed: false,
        }
    }

    /// What was written to.
    fn sound(self) -> Result<W> {
        match self.has_failed {
            true => Err(Error::malformed("it could not be written")),
            false => Ok(self.to),
        }
    }

    fn noted<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        // An interrupted write is tried again.
        let is_final = |e: &std::io::Error| e.kind() != std::io::ErrorKind::Interrupted;
        self.has_failed |= done.as_ref().is_err_and(is_final);
        done
    }
}

impl<W: Write> Write for Quiet<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = match self.has_failed {
            true => bytes.len(),
            false => {
                let done = self.to.write(bytes);
                self.noted(done)?
            }
        };
        self.position += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        if self.has_failed {
            return Ok(());
        }
        let done = self.to.flush();
        self.noted(done)
    }
}

impl<W: Seek> Seek for Quiet<W> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        if !self.has_failed {
            let done = self.to.seek(to);
            self.position = self.noted(done)?;
            return Ok(self.position);
        }
        self.position = match to {
            SeekFrom::Start(n) => n,
            SeekFrom::Current(by) => self.position.saturating_add_signed(by),
            SeekFrom::End(_) => self.position,
        };
        Ok(self.position)
    }
}

/// Counts what is written.
struct Counted<'a, W> {
    to: &'a mut W,
    bytes: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.bytes += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

fn failed(e: zip::result::ZipError) -> Error {
    if let zip::result::ZipError::Io(e) = e {
        return e.into();
    }
    Error::malformed(format!("the container cannot be written: {e}"))
}

fn claimed_rows(manifest: &Manifest) -> u64 {
    manifest
        .tables()
        .map(|t| t.rows)
        .fold(0, u64::saturating_add)
}

/// A file being read.
pub struct Reader<R: Read + Seek> {
    zip: ZipArchive<R>,
    size: u64,
}

impl<R: Read + Seek> Reader<R> {
    /// Finds the members.
    pub fn open(mut from: R) -> Result<Self> {
        let size = from.seek(SeekFrom::End(0))?;
        let damaged = |e| {
            Error::malformed(format!("no .unfrag file, or cut off: {e}"))
                .help("if it was copied, copy it again")
        };
        let zip = ZipArchive::new(from).map_err(damaged)?;
        Ok(Self { zip, size })
    }

    /// The manifest; it claims no more than a file of this size may hold.
    pub fn manifest(&mut self) -> Result<Manifest> {
        let manifest = Manifest::parse(&self.member(manifest::MEMBER)?)?;
        let rows = claimed_rows(&manifest);
        let limit = most_rows(self.size);
        if rows > limit {
            return Err(Error::too_large(
                "the number of rows for a file of this size",
                rows,
                limit,
            ));
        }
        Ok(manifest)
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The content of the member `name`, whose checksum was right.
    pub fn member(&mut self, name: &str) -> Result<Vec<u8>> {
        let missing = |e| Error::malformed(format!("{name}: {e}"));
        let mut member = self.zip.by_name(name).map_err(missing)?;
        if member.compression() != CompressionMethod::Stored {
            return Err(Error::unsupported(format!("{name} is compressed"))
                .help("store the members when packing the container anew (zip -0)"));
        }
        if member.size() > self.size {
            return Err(Error::truncated(name.to_owned(), member.size(), self.size));
        }
        let mut content = Vec::with_capacity(member.size() as usize);
        let size = self.size;
        Read::by_ref(&mut member)
            .take(size)
            .read_to_end(&mut content)
            .map_err(|e| Error::malformed(format!("{name}: {e}")))?;
        Ok(content)
    }
}
