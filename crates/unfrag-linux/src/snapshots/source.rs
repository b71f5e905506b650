//! Directories, archives and logs as a list of files, unpacked.
//!
//! Invariant: no more is unpacked than the limit that [`open`] answers, whatever an archive declares.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::entry::Entry;
use super::{hosts, index, logs, pasted};
use crate::content::Content;
use crate::error::{Error, Result};
use crate::kpageflags;
use crate::packed::unpack;
use crate::recording::Snapshot;

/// Depth to which directories are searched.
const MAX_DEPTH: usize = 8;
/// Bytes that anything may unpack to.
const BASE: u64 = 1 << 30;
/// Bytes that each packed byte may unpack to beyond that; page flags of an idle host shrink to less than
/// a thousandth.
const BYTES_PER_BYTE: u64 = 4096;

/// What was found in a source.
#[derive(Default)]
pub(super) struct Found {
    /// Files.
    pub entries: Vec<Entry>,
    /// Snapshots of pasted text.
    pub pasted: Vec<Snapshot>,
}

/// Reads all files of interest of a directory, archive, log or pasted text.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<()> {
    let metadata = fs::metadata(path).map_err(|e| Error::from(e).in_file(path))?;
    if metadata.is_dir() {
        let read = read_directory(path, &mut vec![], &mut found.entries);
        return read.map_err(|e| e.in_file(path));
    }
    let name = path.file_name().unwrap_or(OsStr::new("")).to_string_lossy();
    let (unpacked, limit) = open(path).map_err(|e| e.in_file(path))?;
    read_stream(&name, unpacked, limit, found).map_err(|e| e.in_file(path))
}

/// Reads an archive, log or pasted text from memory, as [`read`] does from a file called `name`.
pub(super) fn read_bytes(name: &str, bytes: &[u8], found: &mut Found) -> Result<()> {
    let limit = limit_of(bytes.len() as u64);
    read_stream(name, unpack(bytes)?, limit, found)
}

fn read_stream(
    name: &str,
    mut unpacked: Box<dyn Read + '_>,
    limit: u64,
    found: &mut Found,
) -> Result<()> {
    let head = take_some(&mut unpacked, 512)?;
    let is_tar = head.get(257..262) == Some(b"ustar");
    let mut unpacked = Cursor::new(head).chain(unpacked);
    if is_tar || is_archive(name) {
        return read_tar(unpacked, limit, &mut found.entries);
    }
    let content = take(&mut unpacked, limit)?;
    if logs::is_log(&content) {
        found.entries.push(Entry {
            directory: vec![],
            name: base_name(name).to_owned(),
            modified: None,
            content: content.into(),
        });
        return Ok(());
    }
    let snapshots = pasted::split(&content)?;
    if snapshots.is_empty() {
        return Err(Error::unsupported(
            "neither a directory, nor a tar archive, nor a log with `time:` lines, nor text of a procfs file",
        )
        .help(
            "give a directory of dated procfs copies, an archive of one, such as a sosreport, \
             or the text of /proc/buddyinfo",
        ));
    }
    found.pasted.extend(snapshots);
    Ok(())
}

fn is_archive(name: &str) -> bool {
    [
        ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".txz", ".tar.bz2", ".tbz2",
    ]
    .iter()
    .any(|ending| name.ends_with(ending))
}

/// A file's name without what its packing adds.
fn base_name(name: &str) -> &str {
    [".gz", ".zst", ".xz", ".bz2"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name)
}

/// Whether a file of this name may belong to a snapshot, be a log, or say when a copy was made.
fn is_wanted(directory: &[String], name: &str) -> bool {
    let base = base_name(name);
    base == index::NAME || logs::file_of(base).is_some() || hosts::is_wanted(directory, base)
}

fn read_directory(path: &Path, inner: &mut Vec<String>, entries: &mut Vec<Entry>) -> Result<()> {
    let mut names = vec![];
    for item in fs::read_dir(path).map_err(|e| Error::from(e).in_file(path))? {
        let item = item.map_err(|e| Error::from(e).in_file(path))?;
        let kind = item
            .file_type()
            .map_err(|e| Error::from(e).in_file(&item.path()))?;
        // A name that is not UTF-8 is none of those wanted.
        if let Ok(name) = item.file_name().into_string() {
            names.push((name, kind));
        }
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, kind) in names {
        let path = path.join(&name);
        if kind.is_dir() && inner.len() < MAX_DEPTH {
            inner.push(name);
            read_directory(&path, inner, entries)?;
            inner.pop();
        } else if kind.is_file() && inner.is_empty() && is_archive(&name) {
            read_archive(&path, entries).map_err(|e| e.in_file(&path))?;
        } else if kind.is_file() && is_wanted(inner, &name) {
            let (mut unpacked, limit) = open(&path).map_err(|e| e.in_file(&path))?;
            let content = content_of(&name, &mut unpacked, limit).map_err(|e| e.in_file(&path))?;
            let modified = fs::metadata(&path).and_then(|m| m.modified()).ok();
            let modified = modified.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            entries.push(Entry {
                directory: inner.clone(),
                name: base_name(&name).to_owned(),
                modified: modified.and_then(|d| u64::try_from(d.as_nanos()).ok()),
                content,
            });
        }
    }
    Ok(())
}

fn read_archive(path: &Path, entries: &mut Vec<Entry>) -> Result<()> {
    let (unpacked, limit) = open(path)?;
    read_tar(unpacked, limit, entries)
}

fn read_tar(unpacked: impl Read, limit: u64, entries: &mut Vec<Entry>) -> Result<()> {
    let mut archive = tar::Archive::new(unpacked.take(limit));
    let mut left = limit;
    for item in archive.entries().map_err(damaged)? {
        let mut item = item.map_err(damaged)?;
        let offset = item.raw_header_position();
        if !item.header().entry_type().is_file() {
            continue;
        }
        let inner = item.path().map_err(damaged)?.into_owned();
        let Some((directory, name)) = components(&inner) else {
            continue;
        };
        if !is_wanted(&directory, &name) {
            continue;
        }
        // Whole seconds are all that the plain format has, and enough to sort by.
        let modified = item
            .header()
            .mtime()
            .ok()
            .and_then(|s| s.checked_mul(1_000_000_000));
        let content = if base_name(&name) == name {
            content_of(&name, &mut item, left)
        } else {
            let packed = take(&mut item, left).map_err(|e| e.at(offset))?;
            left -= packed.len() as u64;
            content_of(&name, &mut unpack(&packed[..])?, left)
        };
        let content = content.map_err(|e| e.at(offset))?;
        left -= content.len();
        let name = base_name(&name).to_owned();
        entries.push(Entry {
            directory,
            name,
            modified,
            content,
        });
    }
    Ok(())
}

fn damaged(error: std::io::Error) -> Error {
    Error::malformed(format!("the archive is damaged or cut off: {error}"))
}

/// Directory and name of a path in an archive; `None` if it is none that an archive should hold.
fn components(path: &Path) -> Option<(Vec<String>, String)> {
    let mut names = vec![];
    for component in path.components() {
        match component {
            std::path::Component::Normal(name) => names.push(name.to_str()?.to_owned()),
            std::path::Component::CurDir => {}
            _ => return None,
        }
    }
    let name = names.pop()?;
    (names.len() <= MAX_DEPTH).then_some((names, name))
}

/// Opens a file that may be packed; gives also the number of bytes that it may unpack to.
fn open(path: &Path) -> Result<(Box<dyn Read>, u64)> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok((unpack(BufReader::new(file))?, limit_of(size)))
}

/// Bytes that a source of `size` bytes may unpack to.
fn limit_of(size: u64) -> u64 {
    size.saturating_mul(BYTES_PER_BYTE).saturating_add(BASE)
}

/// Up to `most` bytes of the beginning of `reader`.
fn take_some(reader: &mut impl Read, most: u64) -> Result<Vec<u8>> {
    let mut head = vec![];
    reader.take(most).read_to_end(&mut head).map_err(damaged)?;
    Ok(head)
}

/// The content of the file called `name`, if it is no more than `limit` bytes; page flags are packed.
fn content_of(name: &str, reader: &mut dyn Read, limit: u64) -> Result<Content> {
    if base_name(name) != kpageflags::NAME {
        return Ok(take(reader, limit)?.into());
    }
    let content = Content::pack(reader.take(limit.saturating_add(1))).map_err(damaged)?;
    check_size(content.len(), limit)?;
    Ok(content)
}

/// Everything that `reader` gives, if it is no more than `limit` bytes.
fn take(reader: &mut dyn Read, limit: u64) -> Result<Vec<u8>> {
    let mut content = vec![];
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(damaged)?;
    check_size(content.len() as u64, limit)?;
    Ok(content)
}

fn check_size(size: u64, limit: u64) -> Result<()> {
    if size > limit {
        return Err(Error::too_large("the unpacked size in bytes", size, limit)
            .help("this looks like a decompression bomb; if it is not, unpack it yourself first"));
    }
    Ok(())
}
