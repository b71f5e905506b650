//! Directories, archives and logs as a list of files, unpacked.
//!
//! Invariant: no more is kept than an [`Allowance`] allows for the bytes that were read, and no more is read than the limit
//! that [`open`] answers, whatever an archive declares.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::entry::Entry;
use super::skipped::Skipped;
use super::{hosts, index, logs, pasted};
use crate::content::Content;
use crate::error::{Error, Result};
use crate::kpageflags;
use crate::overfull::Overfull;
use crate::packed::{Allowance, unpack};
use crate::paste;
use crate::recording::Snapshot;

/// Bytes that an archive may tell of a file beside its header.
const MOST_TOLD: u64 = 64 << 10;
/// Bytes of a block of an archive.
const TAR_BLOCK: usize = 512;
/// Depth to which directories are searched.
const MAX_DEPTH: usize = 12;
/// Bytes that may be read of anything, to skip them or to pack them anew.
const BASE: u64 = 1 << 30;
/// Bytes that may be read for each packed byte beyond that; page flags of an idle host shrink to less than
/// a thousandth.
const BYTES_PER_BYTE: u64 = 4096;

/// Why a link is not read: what it points to may be another host's.
const A_LINK: &str = "a link; what it points to is not read";
/// Why a file without content is not read: an archive of procfs holds such files, as their sizes are 0.
const EMPTY: &str =
    "empty (tar keeps nothing of a file in /proc, whose size is 0: copy it with cat first)";

/// Why an archive in an archive, or deep in a directory, is not read.
const AN_ARCHIVE: &str = "an archive inside; give it by itself, or unpack it";
/// Why a file is not read whose name is none that is known.
const UNKNOWN_NAME: &str =
    "its name is not that of a file of procfs; give it by itself if it holds the text of one";
/// Files of unknown names that are told.
const MOST_UNKNOWN: usize = 5;

/// What was found in a source.
#[derive(Default)]
pub(super) struct Found {
    /// Files.
    pub entries: Vec<Entry>,
    /// Snapshots of pasted text.
    pub pasted: Vec<Snapshot>,
    /// What may belong to a snapshot, and was not read.
    pub skipped: Vec<Skipped>,
    /// Some of the files whose names say nothing, which is worth telling where nothing else was found.
    unknown: Vec<PathBuf>,
    /// How many these are.
    unknown_count: usize,
}

impl Found {
    fn skip(&mut self, directory: &[String], name: &str, why: &str) {
        let path: PathBuf = directory.iter().collect::<PathBuf>().join(name);
        self.skipped.push(Skipped {
            file: path.display().to_string(),
            why: why.to_owned(),
        });
    }

    /// Notes a file of which the name says nothing.
    fn pass_over(&mut self, directory: &[String], name: &str) {
        self.unknown_count += 1;
        if self.unknown.len() < MOST_UNKNOWN {
            let path = directory.iter().collect::<PathBuf>().join(name);
            self.unknown.push(path);
        }
    }

    /// The files whose names say nothing, as what was not read.
    pub(super) fn unknown(&self) -> Vec<Skipped> {
        let skipped = |file: String| Skipped {
            file,
            why: UNKNOWN_NAME.to_owned(),
        };
        let named = self.unknown.iter().map(|p| p.display().to_string());
        let more = self.unknown_count - self.unknown.len();
        let more = (more > 0).then(|| format!("{more} other files"));
        named.chain(more).map(skipped).collect()
    }
}

/// Reads all files of interest of a directory, archive, log or pasted text.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<()> {
    let metadata = fs::metadata(path).map_err(|e| Error::from(e).in_file(path))?;
    let mut allowance = Allowance::new();
    if metadata.is_dir() {
        let read = read_directory(path, &mut vec![], &mut allowance, found);
        return read.map_err(|e| e.in_file(path));
    }
    let name = path.file_name().unwrap_or(OsStr::new("")).to_string_lossy();
    let (unpacked, limit) = open(path, &allowance).map_err(|e| e.in_file(path))?;
    read_stream(&name, unpacked, (limit, allowance), found).map_err(|e| e.in_file(path))
}

/// Reads an archive, log or pasted text from memory, as [`read`] does from a file called `name`.
pub(super) fn read_bytes(name: &str, bytes: &[u8], found: &mut Found) -> Result<()> {
    let limit = limit_of(bytes.len() as u64);
    let allowance = Allowance::new();
    let unpacked = unpack(allowance.count(bytes))?;
    read_stream(name, unpacked, (limit, allowance), found)
}

fn read_stream(
    name: &str,
    mut unpacked: Box<dyn Read + '_>,
    (limit, mut allowance): (u64, Allowance),
    found: &mut Found,
) -> Result<()> {
    let head = take_some(&mut unpacked, 512)?;
    let is_tar = head.get(257..262) == Some(b"ustar");
    let mut unpacked = Cursor::new(head).chain(unpacked);
    if is_tar || is_archive(name) {
        return read_tar(unpacked, limit, &mut allowance, found);
    }
    let content = allowance.keep_all(&mut unpacked, damaged)?;
    if logs::is_log(&content) {
        found.entries.push(Entry {
            directory: vec![],
            name: base_name(name).to_owned(),
            modified: None,
            content: content.into(),
        });
        return Ok(());
    }
    if let Some(pasted) = paste::read(&content) {
        let pasted = pasted?;
        found.pasted.extend(pasted.snapshots);
        found.skipped.extend(pasted.skipped);
        return Ok(());
    }
    // A program holds lines that look like those of procfs, as this one does.
    let snapshots = match content.starts_with(b"\x7fELF") {
        true => vec![],
        false => pasted::split(&content)?,
    };
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

fn read_directory(
    path: &Path,
    inner: &mut Vec<String>,
    allowance: &mut Allowance,
    found: &mut Found,
) -> Result<()> {
    let mut names = vec![];
    for item in fs::read_dir(path).map_err(|e| Error::from(e).in_file(path))? {
        let item = item.map_err(|e| Error::from(e).in_file(path))?;
        let kind = item
            .file_type()
            .map_err(|e| Error::from(e).in_file(&item.path()))?;
        match item.file_name().into_string() {
            Ok(name) => names.push((name, kind)),
            // Such a file is none of those wanted; what a directory holds may be.
            Err(name) if kind.is_dir() => {
                found.skip(inner, &name.to_string_lossy(), "a name that is not UTF-8");
            }
            Err(name) => found.pass_over(inner, &name.to_string_lossy()),
        }
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, kind) in names {
        let path = path.join(&name);
        if kind.is_dir() && inner.len() < MAX_DEPTH {
            inner.push(name);
            read_directory(&path, inner, allowance, found)?;
            inner.pop();
        } else if kind.is_dir() {
            found.skip(
                inner,
                &name,
                &format!("a directory more than {MAX_DEPTH} levels down"),
            );
        } else if kind.is_symlink() {
            if is_wanted(inner, &name) || is_archive(&name) || leads_to_host(&path, &name) {
                found.skip(inner, &name, A_LINK);
            } else {
                found.pass_over(inner, &name);
            }
        } else if kind.is_file() && is_archive(&name) {
            if inner.is_empty() {
                read_archive(&path, allowance, found).map_err(|e| e.in_file(&path))?;
            } else {
                found.skip(inner, &name, AN_ARCHIVE);
            }
        } else if !is_wanted(inner, &name) {
            found.pass_over(inner, &name);
        } else if !kind.is_file() {
            found.skip(inner, &name, "neither a file nor a directory");
        } else {
            let opened = match open(&path, allowance) {
                Err(_) if is_forbidden(&path) => {
                    found.skip(inner, &name, "only its owner or root may read it");
                    continue;
                }
                opened => opened,
            };
            let (mut unpacked, limit) = opened.map_err(|e| e.in_file(&path))?;
            let content = content_of(&name, &mut unpacked, limit, allowance);
            let content = content.map_err(|e| e.in_file(&path))?;
            if content.is_empty() {
                found.skip(inner, &name, EMPTY);
                continue;
            }
            let modified = fs::metadata(&path).and_then(|m| m.modified()).ok();
            let modified = modified.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            found.entries.push(Entry {
                directory: inner.clone(),
                name: base_name(&name).to_owned(),
                modified: modified.and_then(|d| u64::try_from(d.as_nanos()).ok()),
                content,
            });
        }
    }
    Ok(())
}

/// Whether a link is to a directory of files of procfs, or has the name of one.
fn leads_to_host(path: &Path, name: &str) -> bool {
    let holds = |inner: &str| {
        ["buddyinfo", "zoneinfo", "meminfo"]
            .iter()
            .any(|f| path.join(inner).join(f).exists())
    };
    name == "proc" || holds(".") || holds("proc")
}

fn read_archive(path: &Path, allowance: &mut Allowance, found: &mut Found) -> Result<()> {
    let (unpacked, limit) = open(path, allowance)?;
    read_tar(unpacked, limit, allowance, found)
}

fn read_tar(
    unpacked: impl Read,
    limit: u64,
    allowance: &mut Allowance,
    found: &mut Found,
) -> Result<()> {
    let mut archive = tar::Archive::new(Ended::new(unpacked.take(limit)));
    // Entries that only tell of the next one are read here: by itself the library keeps what they hold, however much.
    let mut long_name: Option<Vec<u8>> = None;
    for item in archive.entries().map_err(|e| damaged(&e))?.raw(true) {
        let mut item = item.map_err(|e| damaged(&e))?;
        let offset = item.raw_header_position();
        let kind = item.header().entry_type();
        if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
            let told = name_told(&mut item).map_err(|e| e.at(offset))?;
            long_name = told.or(long_name);
            continue;
        }
        if kind.is_gnu_longlink() || kind.is_pax_global_extensions() {
            continue;
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => item.path_bytes().into_owned(),
        };
        let path = Path::new(OsStr::from_bytes(&name));
        let Some((directory, name)) = components(path) else {
            // The names alone may tell that it is of a snapshot.
            let last = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let names: Vec<&str> = path.iter().filter_map(OsStr::to_str).collect();
            let directory: Vec<String> = names
                .iter()
                .rev()
                .skip(1)
                .rev()
                .map(|n| (*n).to_owned())
                .collect();
            if kind.is_file() && is_wanted(&directory, last) {
                let name = path.display().to_string();
                found.skip(
                    &[],
                    &name,
                    "its name leads outside of the archive, or too deep into it",
                );
            }
            continue;
        };
        if kind.is_file() && is_archive(&name) {
            found.skip(&directory, &name, AN_ARCHIVE);
            continue;
        }
        if !is_wanted(&directory, &name) {
            if kind.is_file() {
                found.pass_over(&directory, &name);
            }
            continue;
        }
        if !kind.is_file() {
            if kind.is_symlink() || kind.is_hard_link() {
                found.skip(&directory, &name, A_LINK);
            } else if !kind.is_dir() {
                found.skip(&directory, &name, "neither a file nor a directory");
            }
            continue;
        }
        // Whole seconds are all that the plain format has, and enough to sort by.
        let modified = item
            .header()
            .mtime()
            .ok()
            .and_then(|s| s.checked_mul(1_000_000_000));
        let content = if base_name(&name) == name {
            content_of(&name, &mut item, limit, allowance)
        } else {
            let packed = allowance.keep_all(&mut item, damaged);
            let packed = packed.map_err(|e| e.at(offset))?;
            // All of it was read already, and would allow as much at once as many files may need.
            let mut own = Allowance::new();
            let mut from = unpack(own.count(&packed[..]))?;
            content_of(&name, &mut from, limit, &mut own).and_then(|content| {
                allowance.keep(own.kept())?;
                Ok(content)
            })
        };
        let content = content.map_err(|e| e.at(offset))?;
        if content.is_empty() {
            found.skip(&directory, &name, EMPTY);
            continue;
        }
        let name = base_name(&name).to_owned();
        found.entries.push(Entry {
            directory,
            name,
            modified,
            content,
        });
    }
    // A part that ends between two entries reads as if it were whole.
    match archive.into_inner().is_ended() {
        true => Ok(()),
        false => Err(Error::malformed(
            "the archive is cut off: the blocks of zeros at its end are missing",
        )
        .help("copy it again; what is there can be unpacked with tar and given as a directory")),
    }
}

/// A reader that knows whether what was read ends as archives do: with a block of zeros.
struct Ended<R> {
    inner: R,
    /// Zeros read last.
    zeros: usize,
}

impl<R> Ended<R> {
    fn new(inner: R) -> Self {
        Ended { inner, zeros: 0 }
    }

    fn is_ended(&self) -> bool {
        self.zeros >= TAR_BLOCK
    }
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        let zeros = buf[..n].iter().rev().take_while(|b| **b == 0).count();
        self.zeros = match zeros == n {
            true => self.zeros.saturating_add(n),
            false => zeros,
        };
        Ok(n)
    }
}

/// The name of the next entry, as an entry before it tells it.
fn name_told(item: &mut tar::Entry<'_, impl Read>) -> Result<Option<Vec<u8>>> {
    if item.size() > MOST_TOLD {
        return Err(Error::too_large(
            "the size in bytes of what an archive tells of a file",
            item.size(),
            MOST_TOLD,
        )
        .help("make the archive anew, or unpack it and give the directory"));
    }
    if !item.header().entry_type().is_gnu_longname() {
        let Some(told) = item.pax_extensions().map_err(|e| damaged(&e))? else {
            return Ok(None);
        };
        let path = told.flatten().find(|t| t.key_bytes() == b"path");
        return Ok(path.map(|t| t.value_bytes().to_owned()));
    }
    let mut name = vec![];
    item.read_to_end(&mut name).map_err(|e| damaged(&e))?;
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    name.truncate(end);
    Ok(Some(name))
}

fn damaged(error: &std::io::Error) -> Error {
    Overfull::of(error).map_or_else(
        || Error::malformed(format!("the archive is damaged or cut off: {error}")),
        Error::from,
    )
}

/// Directory and name of a path in an archive; `None` if it is none that an archive should hold.
fn components(path: &Path) -> Option<(Vec<String>, String)> {
    let mut names = vec![];
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?.to_owned()),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let name = names.pop()?;
    (names.len() <= MAX_DEPTH).then_some((names, name))
}

/// Whether this user may not read a file.
fn is_forbidden(path: &Path) -> bool {
    File::open(path).is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Opens a file that may be packed; gives also the number of bytes that may be read of it.
fn open(path: &Path, allowance: &Allowance) -> Result<(Box<dyn Read>, u64)> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let packed = BufReader::new(allowance.count(file));
    Ok((unpack(packed)?, limit_of(size)))
}

/// Bytes that may be read of a source of `size` bytes.
fn limit_of(size: u64) -> u64 {
    size.saturating_mul(BYTES_PER_BYTE).saturating_add(BASE)
}

/// Up to `most` bytes of the beginning of `reader`.
fn take_some(reader: &mut impl Read, most: u64) -> Result<Vec<u8>> {
    let mut head = vec![];
    let read = reader.take(most).read_to_end(&mut head);
    read.map_err(|e| damaged(&e))?;
    Ok(head)
}

/// The content of the file called `name`. Page flags are packed anew as they are read, so only their number is bounded,
/// by `limit`; all else is kept as it is.
fn content_of(
    name: &str,
    reader: &mut dyn Read,
    limit: u64,
    allowance: &mut Allowance,
) -> Result<Content> {
    if base_name(name) != kpageflags::NAME {
        return Ok(allowance.keep_all(reader, damaged)?.into());
    }
    let content = Content::pack(reader.take(limit.saturating_add(1))).map_err(|e| damaged(&e))?;
    if content.len() > limit {
        let size = content.len();
        return Err(Error::too_large("the unpacked size in bytes", size, limit)
            .help("this looks like a decompression bomb; if it is not, unpack it yourself first"));
    }
    Ok(content)
}
