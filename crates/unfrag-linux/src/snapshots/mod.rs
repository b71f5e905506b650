//! Dated copies of procfs: directories, archives and monitors' logs become snapshots.
//!
//! What is read:
//! - a directory or tar archive (plain, gzip, zstd) with one directory a snapshot, in it files
//!   named as in `/proc` (plain, gzip, zstd);
//! - logs as benchmark monitors write them: a file whose name contains `buddyinfo`, `vmstat` and so
//!   on, with a line `time: EPOCH` before each copy;
//! - a directory that holds such archives;
//! - the tree of a whole host, such as a sosreport or a must-gather, or its archive (xz and bzip2 too),
//!   with its release and its sysctls;
//! - text of one or more procfs files, as people paste it, of settings, and of tables of other tools that hold their
//!   numbers: known by its content, whatever its name;
//! - sysfs' files of nodes (`node0/meminfo`, `vmstat`, `numastat`), as one host.
//!
//! The time of a copy comes from the best source that any of them has, and from that one only, since
//! the clocks of sources differ: `index.tsv` (record, nanoseconds before and after reading), else the `uptime`
//! file beside it, else the directory's name if it is a date, else the files' modification times.
//!
//! Invariant: snapshots come in the order of their times, undated ones last in the order of their
//! names. The content of a file in a directory, archive or log, and of one that stands alone, is kept
//! byte for byte. Of directories and archives only files that [`KNOWN`] names are read, and those that tell
//! the same under another name.

pub(crate) mod dates;
mod decoration;
mod entry;
mod file_names;
mod foreign;
mod headings;
mod hosts;
mod index;
mod line;
mod lines;
mod logs;
mod pasted;
pub(crate) mod settings;
mod skipped;
mod source;
mod wrapped;

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::procfs::uptime;
use crate::recording::{Snapshot, SnapshotFile};
use entry::Entry;
use source::Found;

pub use file_names::KNOWN;
pub use skipped::Skipped;

/// Reads all snapshots of a directory, archive or log.
///
/// # Errors
/// If it cannot be read, if an archive is damaged or grows beyond any plausible size, or if an
/// `index.tsv`, an `uptime` or the time of a log is malformed. The error names the file.
pub fn read(path: &Path) -> Result<Vec<Snapshot>> {
    read_all(&[path])
}

/// Reads several sources as one: files of snapshots with the same name are put together, such as
/// an archive of page flags that lies beside an archive of everything else.
///
/// # Errors
/// As [`read`]; also if two sources hold the same file of the same snapshot.
pub fn read_all(paths: &[&Path]) -> Result<Vec<Snapshot>> {
    let mut found = Found::default();
    for path in paths {
        source::read(path, &mut found)?;
    }
    Ok(in_order(found, &mut vec![])?.0)
}

/// Reads an archive, a log or pasted text from memory, such as what came by standard input; `name` is
/// what errors call it.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(name: &str, bytes: &[u8]) -> Result<Vec<Snapshot>> {
    Ok(look_at_bytes(name, bytes)?.snapshots)
}

/// Snapshots, and what was there and was not read.
#[derive(Debug, Default)]
pub struct Reading {
    /// The snapshots, in order.
    pub snapshots: Vec<Snapshot>,
    /// What told the times of those in directories; `None` if there are none, or their files say it themselves.
    pub clock: Option<Clock>,
    /// Files that may belong to one, and were not read: empty ones, links, names that lead outside.
    pub skipped: Vec<Skipped>,
}

/// As [`read`], with what was not read.
///
/// # Errors
/// As there.
pub fn look(path: &Path) -> Result<Reading> {
    let mut found = Found::default();
    source::read(path, &mut found)?;
    looked(found)
}

/// As [`read_bytes`], with what was not read.
///
/// # Errors
/// As there.
pub fn look_at_bytes(name: &str, bytes: &[u8]) -> Result<Reading> {
    let mut found = Found::default();
    source::read_bytes(name, bytes, &mut found).map_err(|e| e.in_file(Path::new(name)))?;
    looked(found).map_err(|e| e.in_file(Path::new(name)))
}

fn looked(mut found: Found) -> Result<Reading> {
    let mut skipped = std::mem::take(&mut found.skipped);
    let unknown = found.unknown();
    let (snapshots, clock) = in_order(found, &mut skipped)?;
    if snapshots.is_empty() {
        skipped.extend(unknown);
    }
    Ok(Reading {
        snapshots,
        clock,
        skipped,
    })
}

fn in_order(found: Found, skipped: &mut Vec<Skipped>) -> Result<(Vec<Snapshot>, Option<Clock>)> {
    let (mut snapshots, clock) = assemble(hosts::arrange(found.entries, skipped))?;
    snapshots.extend(found.pasted);
    snapshots.sort_by_cached_key(|s| {
        let begin = s
            .files
            .iter()
            .filter_map(|f| f.time)
            .map(|(begin, _)| begin)
            .min();
        (begin.is_none(), begin, s.name.clone())
    });
    Ok((snapshots, clock))
}

/// Nanoseconds since 1970 of a date: ISO 8601, in UTC if no zone follows, or seconds since 1970. `None` if it is none.
pub fn date(text: &str) -> Option<u64> {
    dates::parse(text)
}

/// The day and the time of `seconds` since 1970, in UTC, such as `2026-11-28 06:00:00`.
pub fn day_and_time(seconds: u64) -> String {
    let of_day = seconds % 86_400;
    format!(
        "{} {:02}:{:02}:{:02}",
        dates::date(seconds),
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Reads the log of a monitor from memory: `time: EPOCH` lines, each before a copy of `file`.
///
/// # Errors
/// Names the byte at which a time is malformed, or that the text does not begin with a time.
pub fn parse_log(file: &str, text: &[u8]) -> Result<Vec<Snapshot>> {
    let copies = logs::split(text)?;
    Ok(copies
        .into_iter()
        .map(|copy| copy.into_snapshot(file))
        .collect())
}

/// A source of times; better ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// `index.tsv`.
    Index,
    /// The `uptime` files.
    Uptime,
    /// The directories' names.
    Name,
    /// The files' modification times, which copies of them need not keep.
    Modified,
}

/// The files of one directory, and what tells their time.
#[derive(Default)]
struct Directory {
    files: Vec<(SnapshotFile, Option<u64>)>,
    uptime: Option<u64>,
    date: Option<u64>,
}

fn assemble(entries: Vec<Entry>) -> Result<(Vec<Snapshot>, Option<Clock>)> {
    let mut indexes = vec![];
    let mut directories: BTreeMap<Vec<String>, Directory> = BTreeMap::new();
    let mut logged: BTreeMap<(u64, String), Snapshot> = BTreeMap::new();
    for entry in entries {
        if entry.name == index::NAME {
            let times = index::parse(entry.text()).map_err(|e| e.in_file(&entry.path()))?;
            indexes.push((entry.directory, times));
        } else if logs::is_log(entry.text()) {
            add_log(&entry, &mut logged)?;
        } else if KNOWN.contains(&entry.name.as_str()) || entry.name.contains('/') {
            // Only `hosts` gives names of settings, such as `sys/vm/NAME`.
            add_file(entry, &mut directories)?;
        }
    }
    let indexed = |directory: &[String], file: &str| {
        indexes.iter().find_map(|(base, times)| {
            let inner = directory.strip_prefix(&base[..])?;
            times.get(&index::key(inner, file)).copied()
        })
    };
    let mut best = None;
    for (directory, found) in &directories {
        let has_index = found
            .files
            .iter()
            .any(|(f, _)| indexed(directory, &f.name).is_some());
        let clocks = [
            has_index.then_some(Clock::Index),
            found.uptime.map(|_| Clock::Uptime),
            found.date.map(|_| Clock::Name),
            Some(Clock::Modified),
        ];
        best = best.into_iter().chain(clocks.into_iter().flatten()).min();
    }
    // Names need not repeat what all directories share, such as `snap`.
    let shared = shared_prefix(directories.keys());
    let mut snapshots: Vec<Snapshot> = logged.into_values().collect();
    for (directory, found) in directories {
        let mut files = vec![];
        for (mut file, modified) in found.files {
            file.time = match best {
                Some(Clock::Index) => indexed(&directory, &file.name),
                Some(Clock::Uptime) => found.uptime.map(|t| (t, t)),
                Some(Clock::Name) => found.date.map(|t| (t, t)),
                Some(Clock::Modified) | None => modified.map(|t| (t, t)),
            };
            files.push(file);
        }
        if best == Some(Clock::Index) {
            files.sort_by_key(|f| (f.time.is_none(), f.time));
        }
        let name = match directory[shared..].join("/") {
            name if name.is_empty() => ".".to_owned(),
            name => name,
        };
        snapshots.push(Snapshot { name, files });
    }
    Ok((snapshots, best))
}

/// How many leading components all directories share, their last ones not counted.
fn shared_prefix<'a>(directories: impl Iterator<Item = &'a Vec<String>>) -> usize {
    let all: Vec<_> = directories.collect();
    let most = all
        .iter()
        .map(|d| d.len().saturating_sub(1))
        .min()
        .unwrap_or(0);
    let is_shared = |&i: &usize| all.iter().all(|d| d[i] == all[0][i]);
    (0..most).take_while(is_shared).count()
}

fn add_file(entry: Entry, directories: &mut BTreeMap<Vec<String>, Directory>) -> Result<()> {
    let path = entry.path();
    let date = entry.directory.last().and_then(|name| dates::parse(name));
    let found = directories.entry(entry.directory.clone()).or_default();
    if found.files.iter().any(|(f, _)| f.name == entry.name) {
        return Err(
            Error::malformed("a second file of this name in the same snapshot")
                .in_file(&path)
                .help("give each source on its own"),
        );
    }
    found.date = date;
    if entry.name == "uptime" {
        found.uptime = Some(uptime::parse(entry.text()).map_err(|e| e.in_file(&path))?);
    }
    let file = SnapshotFile {
        name: entry.name,
        time: None,
        content: entry.content,
    };
    found.files.push((file, entry.modified));
    Ok(())
}

fn add_log(entry: &Entry, logged: &mut BTreeMap<(u64, String), Snapshot>) -> Result<()> {
    let Some(file) = logs::file_of(&entry.name) else {
        return Ok(());
    };
    for copy in logs::split(entry.text()).map_err(|e| e.in_file(&entry.path()))? {
        let key = (copy.time, entry.directory.join("/"));
        let copy = copy.into_snapshot(file);
        logged
            .entry(key)
            .or_insert_with(|| Snapshot {
                files: vec![],
                ..copy.clone()
            })
            .files
            .extend(copy.files);
    }
    Ok(())
}
