//! Directories, archives and logs as a list of files, unpacked.
//!
//! Invariant: no more is unpacked than the limit that [`open`] answers, whatever an archive declares.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{index, logs};
use crate::error::{Error, Result};

/// Depth to which directories are searched.
const MAX_DEPTH: usize = 4;
/// Bytes that anything may unpack to.
const BASE: u64 = 1 << 30;
/// Bytes that each packed byte may unpack to beyond that; page flags of an idle host shrink to less than
/// a thousandth.
const BYTES_PER_BYTE: u64 = 4096;

/// A file.
pub(super) struct Entry {
    /// Components of its directory's path, from the source's root on.
    pub directory: Vec<String>,
    /// Its name, without `.gz` and `.zst`.
    pub name: String,
    /// When it was changed, in nanoseconds since 1970.
    pub modified: Option<u64>,
    /// Its content, unpacked.
    pub content: Vec<u8>,
}

impl Entry {
    /// Its path inside the source.
    pub fn path(&self) -> PathBuf {
        self.directory.iter().collect::<PathBuf>().join(&self.name)
    }
}

/// Reads all files of interest of a directory, archive or log.
pub(super) fn read(path: &Path, entries: &mut Vec<Entry>) -> Result<()> {
    let metadata = fs::metadata(path).map_err(|e| Error::from(e).in_file(path))?;
    if metadata.is_dir() {
        return read_directory(path, &mut vec![], entries).map_err(|e| e.in_file(path));
    }
    let name = path.file_name().unwrap_or(OsStr::new("")).to_string_lossy();
    if is_archive(&name) {
        return read_archive(path, entries).map_err(|e| e.in_file(path));
    }
    let (mut unpacked, limit) = open(path).map_err(|e| e.in_file(path))?;
    let content = take(&mut unpacked, limit).map_err(|e| e.in_file(path))?;
    if logs::is_log(&content) {
        let name = base_name(&name).to_owned();
        entries.push(Entry {
            directory: vec![],
            name,
            modified: None,
            content,
        });
        return Ok(());
    }
    Err(Error::unsupported("neither a directory, nor a tar archive, nor a log with `time:` lines")
        .in_file(path)
        .help("give a directory of dated procfs copies, or an archive named .tar, .tar.gz or .tar.zst"))
}

fn is_archive(name: &str) -> bool {
    [".tar", ".tar.gz", ".tgz", ".tar.zst"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// A file's name without what its packing adds.
fn base_name(name: &str) -> &str {
    name.strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(name)
}

/// Whether a file of this name may belong to a snapshot, be a log, or say when a copy was made.
fn is_wanted(name: &str) -> bool {
    let base = base_name(name);
    base == index::NAME || logs::file_of(base).is_some()
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
        } else if kind.is_file() && is_wanted(&name) {
            let (mut unpacked, limit) = open(&path).map_err(|e| e.in_file(&path))?;
            let content = take(&mut unpacked, limit).map_err(|e| e.in_file(&path))?;
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
        if !is_wanted(&name) {
            continue;
        }
        // Whole seconds are all that the plain format has, and enough to sort by.
        let modified = item
            .header()
            .mtime()
            .ok()
            .and_then(|s| s.checked_mul(1_000_000_000));
        let mut content = take(&mut item, left).map_err(|e| e.at(offset))?;
        left -= content.len() as u64;
        if base_name(&name) != name {
            let unpacked = take(&mut unpack_as(&content, &content[..])?, left);
            content = unpacked.map_err(|e| e.at(offset))?;
            left -= content.len() as u64;
        }
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
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let limit = size.saturating_mul(BYTES_PER_BYTE).saturating_add(BASE);
    let mut magic = [0; 4];
    let known = read_up_to(&mut file, &mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    Ok((unpack_as(&magic[..known], BufReader::new(file))?, limit))
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// Unpacks `packed`, which begins with `magic`.
fn unpack_as<'a>(magic: &[u8], packed: impl Read + 'a) -> Result<Box<dyn Read + 'a>> {
    Ok(if magic.starts_with(&[0x1f, 0x8b]) {
        Box::new(flate2::read::MultiGzDecoder::new(packed))
    } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::stream::read::Decoder::new(packed)?)
    } else {
        Box::new(packed)
    })
}

/// Everything that `reader` gives, if it is no more than `limit` bytes.
fn take(reader: &mut dyn Read, limit: u64) -> Result<Vec<u8>> {
    let mut content = vec![];
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(damaged)?;
    if content.len() as u64 > limit {
        return Err(
            Error::too_large("the unpacked size in bytes", content.len() as u64, limit).help(
                "this looks like a decompression bomb; if it is not, unpack it yourself first",
            ),
        );
    }
    Ok(content)
}
