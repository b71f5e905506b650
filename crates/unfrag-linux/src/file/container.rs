//! The ZIP container: stored members, each with a checksum.

use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::manifest::{self, Manifest, Table, least_size, most_rows};
use super::table::{self, Source};
use crate::error::{Error, Result};

/// Member that makes a file as large as [`least_size`] asks for.
const PADDING: &str = "padding";

/// Members of a file to be written.
#[derive(Default)]
pub struct Writer {
    members: Vec<(String, Vec<u8>)>,
    rows: u64,
    bytes: u64,
}

impl Writer {
    /// Adds a table as the member `name` with `.parquet`, unless it is empty.
    pub fn table(&mut self, name: &str, columns: &[Source]) -> Result<Table> {
        let member = format!("{name}.parquet");
        let written = table::write(&member, columns)?;
        self.rows += written.table.rows;
        self.bytes += written.bytes;
        if let Some(content) = written.content {
            self.members.push((member, content));
        }
        Ok(written.table)
    }

    /// The file.
    pub fn finish(mut self, manifest: &Manifest) -> Result<Vec<u8>> {
        let json = serde_json::to_vec_pretty(manifest)
            .map_err(|e| Error::malformed(format!("{}: {e}", manifest::MEMBER)))?;
        self.members.insert(0, (manifest::MEMBER.to_owned(), json));
        let size: u64 = self
            .members
            .iter()
            .map(|(_, content)| content.len() as u64)
            .sum();
        // The kinds' rows count twice: they are events as well, in the manifest.
        let least = least_size(claimed_rows(manifest), self.bytes);
        if size < least {
            self.members
                .push((PADDING.to_owned(), vec![0; (least - size) as usize]));
        }
        let mut zip = ZipWriter::new(Cursor::new(Vec::with_capacity(size as usize + 65536)));
        for (name, content) in &self.members {
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .large_file(content.len() > u32::MAX as usize);
            zip.start_file(name.as_str(), options).map_err(failed)?;
            zip.write_all(content)?;
        }
        Ok(zip.finish().map_err(failed)?.into_inner())
    }
}

fn failed(e: zip::result::ZipError) -> Error {
    Error::malformed(format!("the container cannot be written: {e}"))
}

fn claimed_rows(manifest: &Manifest) -> u64 {
    manifest
        .tables()
        .map(|t| t.rows)
        .fold(0, u64::saturating_add)
}

/// A file being read.
pub struct Reader<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    size: u64,
}

impl<'a> Reader<'a> {
    /// Finds the members.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let damaged = |e| {
            Error::malformed(format!("no .unfrag file, or cut off: {e}"))
                .help("if it was copied, copy it again")
        };
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        Ok(Self {
            zip,
            size: bytes.len() as u64,
        })
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
