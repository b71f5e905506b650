//! Reads the files of procfs that are there, one by one: a file that is missing or bad costs what it alone tells.
//!
//! Invariant: each file that is asked for is either read or named in [`Reader::unread`], with the reason.

use super::free_rows::{self, FreeSources, free_rows};
use super::whole;
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use unfrag_linux::content::STEP;
use unfrag_linux::procfs::{
    BuddyInfo, ExtfragIndex, MemInfo, Notes, PageTypeInfo, UnusableIndex, ZoneInfo, zoneinfo,
};
use unfrag_linux::{Error, Result};

/// More pages than any machine has.
const MOST_PAGES: u64 = 1 << 52;

/// Characters of a file that is shown where it could not be read.
const SHOWN: usize = 60;

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Its name.
    pub file: String,
    /// Why, and what is missing for it.
    pub why: String,
}

/// What was not read, as the end of an error's help; nothing if all was.
pub fn and_not_read(not_read: &[Unread]) -> String {
    /// Files that an error names.
    const MOST: usize = 5;
    let mut all: Vec<String> = not_read
        .iter()
        .take(MOST)
        .map(|u| format!("{}: {}", u.file, u.why))
        .collect();
    if not_read.len() > MOST {
        all.push(format!("and {} more", not_read.len() - MOST));
    }
    match all.is_empty() {
        true => String::new(),
        false => format!("; not read: {}", all.join("; ")),
    }
}

/// The files of a host, named as below `/proc`.
pub trait Files {
    /// The bytes of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// The bytes of a file that is too large to be held in memory.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn stream(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Cursor::new(self.read(name)?)))
    }
}

impl<F: Fn(&str) -> io::Result<Vec<u8>>> Files for F {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self(name)
    }
}

/// Reads files by name, and notes those that could not be.
pub struct Reader<'a> {
    files: &'a dyn Files,
    /// What could not be read, in the order of asking.
    pub unread: Vec<Unread>,
    /// The first file that is not what the kernel writes.
    pub first_error: Option<Error>,
}

impl<'a> Reader<'a> {
    /// A reader of these files.
    pub fn new(files: &'a dyn Files) -> Reader<'a> {
        Reader {
            files,
            unread: vec![],
            first_error: None,
        }
    }

    /// Those of the files that could not be read which are there.
    pub fn there(&self) -> Vec<Unread> {
        let is_there = |u: &&Unread| {
            let why = &u.why;
            !why.starts_with("not there") && !why.starts_with("not in the snapshot")
        };
        self.unread.iter().filter(is_there).cloned().collect()
    }

    /// Whether the file is there, with content.
    pub fn has(&self, file: &str) -> bool {
        self.files
            .read(file)
            .is_ok_and(|content| !content.is_empty())
    }

    /// Reads a file; `lacking` says what is not known without it.
    pub fn get<T>(
        &mut self,
        file: &str,
        lacking: &str,
        parse: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Option<T> {
        let why = match self.files.read(file) {
            // Some sandboxes give an empty file in place of a forbidden one.
            Ok(content) if content.is_empty() => "empty".to_owned(),
            Ok(content) => match parse(&content) {
                Ok(parsed) => return Some(parsed),
                Err(error) => {
                    let why = match beginning(&content) {
                        Some(line) => format!("{error}; it begins with `{line}`"),
                        None => error.to_string(),
                    };
                    let error = error.in_file(file.as_ref());
                    self.first_error.get_or_insert(error);
                    why
                }
            },
            Err(error) => cause(&error),
        };
        self.lacks(file, &why, lacking)
    }

    /// Reads a file that is too large to be held in memory.
    pub fn stream<T>(
        &mut self,
        file: &str,
        lacking: &str,
        parse: impl FnOnce(&mut dyn Read) -> Result<T>,
    ) -> Option<T> {
        let opened = self.files.stream(file).and_then(|from| {
            let mut from = BufReader::with_capacity(STEP, from);
            let is_empty = from.fill_buf()?.is_empty();
            Ok((!is_empty).then_some(from))
        });
        let why = match opened {
            Ok(None) => "empty".to_owned(),
            Ok(Some(mut from)) => match parse(&mut from) {
                Ok(parsed) => return Some(parsed),
                Err(error) => {
                    let why = error.to_string();
                    let error = error.in_file(file.as_ref());
                    self.first_error.get_or_insert(error);
                    why
                }
            },
            Err(error) => cause(&error),
        };
        self.lacks(file, &why, lacking)
    }

    /// Notes that a file is not there, and what is not known without it.
    fn lacks<T>(&mut self, file: &str, why: &str, lacking: &str) -> Option<T> {
        self.unread.push(Unread {
            file: file.to_owned(),
            why: format!("{why}: {lacking}"),
        });
        None
    }
}

/// What of files that were read was not: lines that were not understood, and an end that is missing.
pub fn partly(files: &[(&str, Option<&Notes>)]) -> Vec<String> {
    let mut all = vec![];
    for (file, notes) in files {
        let Some(notes) = notes else { continue };
        if let [first, rest @ ..] = notes.not_understood.as_slice() {
            let many = match rest.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            all.push(format!(
                "{file}: line {}{many} not understood (`{}`)",
                first.line,
                beginning(first.text.as_bytes()).unwrap_or_default()
            ));
        }
        if notes.cut {
            all.push(format!(
                "{file} ends within a line: what came after it is missing"
            ));
        }
    }
    all
}

/// An error of the operating system without its number.
fn cause(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::PermissionDenied => "only root may read it".into(),
        io::ErrorKind::NotFound => "not there".into(),
        _ => e.to_string(),
    }
}

/// The first line of a file, as far as it can be shown; none of a binary one.
fn beginning(content: &[u8]) -> Option<String> {
    let head = content.get(..4 * SHOWN).unwrap_or(content);
    let text = String::from_utf8_lossy(head);
    let line = text.lines().find(|l| !l.trim().is_empty())?;
    if line.contains(['\0', char::REPLACEMENT_CHARACTER]) {
        return None;
    }
    let shown = line.trim().chars().take(SHOWN);
    Some(
        shown
            .map(|c| if c.is_control() { '.' } else { c })
            .collect(),
    )
}

fn filled<T>(parsed: T, is_empty: bool) -> Result<T> {
    if is_empty {
        return Err(Error::malformed("no zone in it"));
    }
    Ok(parsed)
}

/// Reads `/proc/buddyinfo`.
///
/// # Errors
/// If it is not what the kernel writes, or holds numbers that no kernel has.
pub fn buddyinfo(content: &[u8]) -> Result<BuddyInfo> {
    let buddy = BuddyInfo::parse(content)?;
    free_rows::check(&free_rows(&FreeSources {
        buddy: Some(&buddy),
        ..FreeSources::default()
    }))?;
    let is_empty = buddy.zones.is_empty();
    filled(buddy, is_empty)
}

/// Reads `/proc/pagetypeinfo`.
///
/// # Errors
/// As [`buddyinfo`].
pub fn pagetypeinfo(content: &[u8]) -> Result<PageTypeInfo> {
    let types = PageTypeInfo::parse(content)?;
    free_rows::check(&free_rows(&FreeSources {
        types: Some(&types),
        ..FreeSources::default()
    }))?;
    let is_empty = types.free.is_empty() && types.blocks.rows.is_empty();
    filled(types, is_empty)
}

/// Reads debugfs' `extfrag/unusable_index`.
///
/// # Errors
/// As [`buddyinfo`].
pub fn unusable(content: &[u8]) -> Result<UnusableIndex> {
    let index = UnusableIndex::parse(content)?;
    free_rows::check(&free_rows(&FreeSources {
        unusable: Some(&index),
        ..FreeSources::default()
    }))?;
    let is_empty = index.zones.is_empty();
    filled(index, is_empty)
}

/// Reads debugfs' `extfrag/extfrag_index`.
///
/// # Errors
/// As [`buddyinfo`].
pub fn extfrag(content: &[u8]) -> Result<ExtfragIndex> {
    let index = ExtfragIndex::parse(content)?;
    free_rows::check(&free_rows(&FreeSources {
        extfrag: Some(&index),
        ..FreeSources::default()
    }))?;
    let is_empty = index.zones.is_empty();
    filled(index, is_empty)
}

/// Reads `/proc/zoneinfo`.
///
/// # Errors
/// As [`buddyinfo`].
pub fn zoneinfo(content: &[u8]) -> Result<ZoneInfo> {
    let zones = ZoneInfo::parse(content)?;
    for z in &zones.zones {
        let sizes = [
            "min", "low", "high", "boost", "spanned", "present", "managed",
        ];
        let sizes = sizes.iter().filter_map(|name| z.pages(name));
        let mut all = sizes.chain(z.protection.iter().copied()).chain([
            z.free,
            listed(z),
            z.start_pfn().unwrap_or(0),
        ]);
        if let Some(n) = all.find(|&n| n > MOST_PAGES) {
            let what = format!("a number of pages of node {}, zone {}", z.node, z.name);
            return Err(Error::too_large(what, n, MOST_PAGES));
        }
    }
    let is_empty = zones.zones.is_empty();
    filled(zones, is_empty)
}

/// Reads `/proc/meminfo`.
///
/// # Errors
/// If it is not what the kernel writes.
pub fn meminfo(content: &[u8]) -> Result<MemInfo> {
    let meminfo = MemInfo::parse(content)?;
    if meminfo.lines.is_empty() {
        return Err(Error::malformed("no amount in it"));
    }
    Ok(meminfo)
}

/// Pages on a zone's per-CPU lists; `None` where the text does not tell them to their end.
pub fn pcp_pages(zone: &zoneinfo::Zone) -> Option<u64> {
    let counts =
        |s: &zoneinfo::Pageset| s.fields.iter().filter(|(name, _)| *name == "count").count();
    let mut sets = zone.pagesets.iter().flatten();
    // Without the line that names a CPU, its numbers stand among those of another one, or of the zone.
    let is_told = zone.last.get("count").is_none() && sets.all(|s| counts(s) == 1);
    (whole::is_read_whole(zone) && is_told).then(|| listed(zone))
}

/// Pages on those per-CPU lists that the text has.
fn listed(zone: &zoneinfo::Zone) -> u64 {
    let sets = zone.pagesets.iter().flatten();
    sets.filter_map(|s| s.fields.get("count"))
        .fold(0, u64::saturating_add)
}

/// A sum over zones; `None` if one of them does not say.
pub fn of_all(
    zones: Option<&ZoneInfo>,
    of: impl Fn(&zoneinfo::Zone) -> Option<u64>,
) -> Option<u64> {
    let each = zones?.zones.iter();
    each.map(of)
        .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
}
