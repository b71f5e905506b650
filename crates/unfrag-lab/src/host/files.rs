//! Reads the files of procfs that are there, one by one: a file that is missing or bad costs what it alone tells.
//!
//! Invariant: each file that is asked for is either read or named in [`Reader::unread`], with the reason.

use super::whole;
use super::zones::{Sources, check, zones};
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use unfrag_linux::content::STEP;
use unfrag_linux::procfs::{
    AllocInfo, BuddyInfo, ExtfragIndex, MemInfo, Notes, PageTypeInfo, UnusableIndex, ZoneInfo,
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

/// A file's text without the blanks around it; `None` if it cannot be read.
pub fn text(from: &dyn Files, name: &str) -> Option<String> {
    let bytes = from.read(name).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// What a question says of files that could not be read: each by name, with what is not known for it. Of files that are in
/// neither list nothing is said.
#[derive(Debug, Default)]
pub struct Lacking {
    /// Those that are named where they are not there, too.
    pub needed: &'static [(&'static str, &'static str)],
    /// Those that are named only where they are bad: others tell the same, or they alone are no evidence.
    pub further: &'static [(&'static str, &'static str)],
}

impl Lacking {
    /// Nothing is said of any file.
    pub const UNSAID: &'static Lacking = &Lacking {
        needed: &[],
        further: &[],
    };
}

/// Reads files by name, and notes those that could not be.
pub struct Reader<'a> {
    files: &'a dyn Files,
    lacking: &'a Lacking,
    /// What could not be read, in the order of asking.
    pub unread: Vec<Unread>,
    /// Of files that are not what the kernel writes, why, in the order of asking.
    pub errors: Vec<Error>,
}

impl<'a> Reader<'a> {
    /// A reader of these files.
    pub fn new(files: &'a dyn Files, lacking: &'a Lacking) -> Reader<'a> {
        Reader {
            files,
            lacking,
            unread: vec![],
            errors: vec![],
        }
    }

    /// The files that it reads.
    pub fn files(&self) -> &'a dyn Files {
        self.files
    }

    /// Those of the files that could not be read which are there.
    pub fn there(&self) -> Vec<Unread> {
        let is_there = |u: &&Unread| {
            let why = &u.why;
            !why.starts_with("not there") && !why.starts_with("not in the snapshot")
        };
        self.unread.iter().filter(is_there).cloned().collect()
    }

    /// Reads a file.
    pub fn get<T>(&mut self, file: &str, parse: impl FnOnce(&[u8]) -> Result<T>) -> Option<T> {
        let content = match self.files.read(file) {
            // Some sandboxes give an empty file in place of a forbidden one.
            Ok(content) if content.is_empty() => return self.is_absent(file, "empty"),
            Ok(content) => content,
            Err(error) => return self.is_absent(file, &cause(&error)),
        };
        let begins = |error: &Error| match beginning(&content) {
            Some(line) => format!("{error}; it begins with `{line}`"),
            None => error.to_string(),
        };
        let parsed = parse(&content);
        parsed.map_err(|e| self.is_bad(file, begins(&e), e)).ok()
    }

    /// Reads a file that is too large to be held in memory.
    pub fn stream<T>(
        &mut self,
        file: &str,
        parse: impl FnOnce(&mut dyn Read) -> Result<T>,
    ) -> Option<T> {
        let opened = self.files.stream(file).and_then(|from| {
            let mut from = BufReader::with_capacity(STEP, from);
            let is_empty = from.fill_buf()?.is_empty();
            Ok((!is_empty).then_some(from))
        });
        let mut from = match opened {
            Ok(None) => return self.is_absent(file, "empty"),
            Ok(Some(from)) => from,
            Err(error) => return self.is_absent(file, &cause(&error)),
        };
        let parsed = parse(&mut from);
        parsed.map_err(|e| self.is_bad(file, e.to_string(), e)).ok()
    }

    fn is_absent<T>(&mut self, file: &str, why: &str) -> Option<T> {
        self.lacks(file, why, self.lacking.needed);
        None
    }

    fn is_bad(&mut self, file: &str, why: String, error: Error) {
        self.lacks(file, &why, self.lacking.needed);
        self.lacks(file, &why, self.lacking.further);
        self.errors.push(error.in_file(file.as_ref()));
    }

    /// Notes that a file could not be read, and what is not known without it.
    fn lacks(&mut self, file: &str, why: &str, named: &[(&str, &str)]) {
        if let Some((_, lacking)) = named.iter().find(|(name, _)| *name == file) {
            self.unread.push(Unread {
                file: file.to_owned(),
                why: format!("{why}: {lacking}"),
            });
        }
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

/// Refuses a file that tells no zone, or numbers that no kernel has.
fn sound(from: &Sources, is_empty: bool) -> Result<()> {
    check(&zones(from))?;
    match is_empty {
        true => Err(Error::malformed("no zone in it")),
        false => Ok(()),
    }
}

/// Reads `/proc/buddyinfo`.
///
/// # Errors
/// If it is not what the kernel writes, or holds numbers that no kernel has.
pub fn buddyinfo(content: &[u8]) -> Result<BuddyInfo> {
    let read = BuddyInfo::parse(content)?;
    let from = Sources {
        buddy: Some(&read),
        ..Sources::default()
    };
    sound(&from, read.zones.is_empty())?;
    Ok(read)
}

/// Reads `/proc/pagetypeinfo`.
///
/// # Errors
/// As [`buddyinfo`].
pub fn pagetypeinfo(content: &[u8]) -> Result<PageTypeInfo> {
    let read = PageTypeInfo::parse(content)?;
    let from = Sources {
        types: Some(&read),
        ..Sources::default()
    };
    let is_empty = read.free.is_empty() && read.blocks.rows.is_empty();
    sound(&from, is_empty)?;
    Ok(read)
}

/// Reads debugfs' `extfrag/unusable_index`.
///
/// # Errors
/// As [`buddyinfo`].
pub fn unusable(content: &[u8]) -> Result<UnusableIndex> {
    let read = UnusableIndex::parse(content)?;
    let from = Sources {
        unusable: Some(&read),
        ..Sources::default()
    };
    sound(&from, read.zones.is_empty())?;
    Ok(read)
}

/// Reads debugfs' `extfrag/extfrag_index`.
///
/// # Errors
/// As [`buddyinfo`].
pub fn extfrag(content: &[u8]) -> Result<ExtfragIndex> {
    let read = ExtfragIndex::parse(content)?;
    let from = Sources {
        extfrag: Some(&read),
        ..Sources::default()
    };
    sound(&from, read.zones.is_empty())?;
    Ok(read)
}

/// Reads `/proc/zoneinfo`.
///
/// # Errors
/// As [`buddyinfo`].
pub fn zoneinfo(content: &[u8]) -> Result<ZoneInfo> {
    let info = ZoneInfo::parse(content)?;
    for z in &info.zones {
        let sizes = [
            "min", "low", "high", "boost", "spanned", "present", "managed",
        ];
        let sizes = sizes.iter().filter_map(|name| z.pages(name));
        let mut all = sizes.chain(z.protection.iter().copied()).chain([
            z.free,
            whole::listed(z),
            z.start_pfn().unwrap_or(0),
        ]);
        if let Some(n) = all.find(|&n| n > MOST_PAGES) {
            let what = format!("a number of pages of node {}, zone {}", z.node, z.name);
            return Err(Error::too_large(what, n, MOST_PAGES));
        }
    }
    match info.zones.is_empty() {
        true => Err(Error::malformed("no zone in it")),
        false => Ok(info),
    }
}

/// Reads `/proc/allocinfo`.
///
/// # Errors
/// If it is not what the kernel writes, or of a version whose rows may mean something else.
pub fn allocinfo(content: &[u8]) -> Result<AllocInfo> {
    let read = AllocInfo::parse(content)?;
    match read.unknown_format() {
        Some(why) => Err(Error::malformed(why)),
        None => Ok(read),
    }
}

/// What a reader of allocinfo's places must know of them, a clause each.
pub fn of_allocinfo(read: &AllocInfo) -> Vec<String> {
    let mut all = vec![];
    if read.sites.is_empty() {
        all.push("allocinfo has no place in it: who allocated it not known".to_owned());
    } else if !read.is_headed {
        all.push(
            "allocinfo comes without its heading: its columns are taken for size and calls"
                .to_owned(),
        );
    }
    let inaccurate = read.sites.iter().filter(|s| s.is_inaccurate()).count();
    if inaccurate > 0 {
        all.push(format!(
            "allocinfo: the kernel marks {inaccurate} places as inaccurate (accurate:no): they hold more than it says"
        ));
    }
    all
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
