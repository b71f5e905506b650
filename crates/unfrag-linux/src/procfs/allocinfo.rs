//! `/proc/allocinfo`: bytes and calls by the place in the kernel's source that allocated them (6.10 and later, with
//! `CONFIG_MEM_ALLOC_PROFILING`; `spec: 7.9`).
//!
//! A slab page and the objects in it are both counted, each at its own place, so a sum over all places counts memory of
//! slab caches twice.

use super::notes::{self, Notes, read_lines};
use super::row::text_of;
use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;

const HEAD: &str = "allocinfo - version: ";

/// The file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocInfo {
    /// The version, from `allocinfo - version: `.
    pub version: String,
    /// The second line, which names the columns.
    pub columns: String,
    /// Whether the first two lines are there: rows that `sort` or `grep` chose come without them.
    pub is_headed: bool,
    /// One row a place.
    pub sites: Vec<Site>,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

/// A place in the source that allocates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Bytes that it allocated and nobody freed. The kernel adds up the CPUs' shares without stopping them, so a place that
    /// holds little may show less than nothing.
    pub bytes: i64,
    /// Allocations that nobody freed.
    pub calls: u64,
    /// The file, such as `mm/slub.c`.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The module, if it is not the kernel itself.
    pub module: Option<String>,
    /// The function.
    pub function: String,
    /// What later versions say behind it, as it stands; empty otherwise.
    pub further: String,
}

impl Site {
    /// Whether the kernel marks its numbers as inaccurate (version 2.0: it could not note some allocations).
    pub fn is_inaccurate(&self) -> bool {
        self.further.split_whitespace().any(|w| w == "accurate:no")
    }

    /// The place as the file writes it, such as `mm/slub.c:2480 func:alloc_slab_page`.
    pub fn tag(&self) -> String {
        let Site {
            file,
            line,
            function,
            ..
        } = self;
        match &self.module {
            Some(module) => format!("{file}:{line} [{module}] func:{function}"),
            None => format!("{file}:{line} func:{function}"),
        }
    }
}

impl Default for AllocInfo {
    fn default() -> Self {
        Self {
            version: "1.0".to_owned(),
            columns: "#     <size>  <calls> <tag info>".to_owned(),
            is_headed: true,
            sites: vec![],
            notes: Notes::default(),
        }
    }
}

impl AllocInfo {
    /// Reads the text: strictly if it is as the kernel writes it, else line by line.
    ///
    /// # Errors
    /// If no line of it is understood; names the first byte that does not fit the format.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        notes::read(
            bytes,
            Self::parse_strictly,
            Self::parse_leniently,
            Self::write,
            |read| &mut read.notes,
        )
    }

    fn parse_strictly(bytes: &[u8]) -> Result<Self, Error> {
        let mut scan = Scan::new("allocinfo", bytes);
        if bytes.contains(&b'\r') {
            return Err(scan.error("no kernel ends a line with a carriage return"));
        }
        scan.expect(HEAD)?;
        let version = scan.line()?.to_owned();
        if !scan.sees("#") {
            return Err(scan.error("expected the names of the columns"));
        }
        let columns = scan.line()?.to_owned();
        let mut sites = vec![];
        while !scan.is_at_end() {
            let at = scan.offset();
            let line = scan.line()?;
            let site = read_site(line);
            sites.push(site.ok_or_else(|| scan.error_at(at, format!("no place: {line:?}")))?);
        }
        Ok(Self {
            version,
            columns,
            is_headed: true,
            sites,
            notes: Notes::default(),
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let mut read = Self {
            is_headed: false,
            ..Self::default()
        };
        let notes = read_lines(source, |line, ended| {
            if let Some(version) = line.strip_prefix(HEAD) {
                (read.version, read.is_headed) = (version.to_owned(), true);
            } else if line.starts_with('#') && line.contains("<size>") {
                (read.columns, read.is_headed) = (line.to_owned(), true);
            } else {
                read.sites.push(read_site(line).filter(|_| ended)?);
            }
            Some(())
        });
        read.notes = notes;
        (!read.sites.is_empty()).then_some(read)
    }

    /// Why its rows may mean something else than is known here: another version, or other columns.
    pub fn unknown_format(&self) -> Option<String> {
        if !matches!(self.version.trim(), "1.0" | "2.0") {
            return Some(format!(
                "version {:?} of it is not known (1.0 and 2.0 are)",
                self.version
            ));
        }
        let columns: Vec<&str> = self.columns.split_whitespace().collect();
        (!columns.starts_with(&["#", "<size>", "<calls>", "<tag"])).then(|| {
            format!(
                "its columns are {:?}, and `<size> <calls> <tag info>` is known",
                self.columns
            )
        })
    }

    /// The text.
    pub fn write(&self) -> String {
        self.notes.apply(text_of(|out| {
            writeln!(out, "{HEAD}{}", self.version)?;
            writeln!(out, "{}", self.columns)?;
            self.sites.iter().try_for_each(|site| {
                let (bytes, calls) = (site.bytes, site.calls);
                writeln!(out, "{bytes:>12} {calls:>8} {}{}", site.tag(), site.further)
            })
        }))
    }
}

/// A row: `<size> <calls> file:line [module] func:name`, the module only where there is one.
fn read_site(line: &str) -> Option<Site> {
    let (bytes, rest) = line.trim_start().split_once(' ')?;
    let (calls, rest) = rest.trim_start().split_once(' ')?;
    // A path may hold blanks, and the words behind it none.
    let (place, function) = rest.rsplit_once(" func:")?;
    let (place, module) = match place.strip_suffix(']').and_then(|p| p.rsplit_once(" [")) {
        Some((place, module)) => (place, Some(module.to_owned())),
        None => (place, None),
    };
    let (file, line) = place.rsplit_once(':')?;
    let end = function.find(' ').unwrap_or(function.len());
    let (function, further) = function.split_at(end);
    if file.is_empty() || function.is_empty() {
        return None;
    }
    Some(Site {
        bytes: bytes.parse().ok()?,
        calls: calls.parse().ok()?,
        file: file.to_owned(),
        line: line.parse().ok()?,
        module,
        function: function.to_owned(),
        further: further.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
allocinfo - version: 1.0
#     <size>  <calls> <tag info>
           0        0 init/main.c:1314 func:do_initcalls
   121634816    29696 mm/slub.c:2480 func:alloc_slab_page
        -512        0 net/core/dev.c:9 func:netdev_queue
     2097152      512 drivers/gpu/drm/x.c:77 [xgpu] func:x_alloc
";

    #[test]
    fn a_place_has_its_file_module_and_function() {
        let read = AllocInfo::parse(TEXT.as_bytes()).unwrap();
        assert_eq!(read.write(), TEXT);
        assert!(read.notes.not_understood.is_empty());
        let [_, slab, negative, module] = &read.sites[..] else {
            panic!("{:?}", read.sites)
        };
        assert_eq!(slab.tag(), "mm/slub.c:2480 func:alloc_slab_page");
        assert_eq!((slab.bytes, slab.calls), (121_634_816, 29_696));
        assert_eq!(negative.bytes, -512);
        assert_eq!(module.module.as_deref(), Some("xgpu"));
        assert_eq!(module.function, "x_alloc");
    }

    #[test]
    fn a_row_in_which_the_text_ends_and_words_of_later_versions_do_no_harm() {
        let cut = &TEXT[..TEXT.len() - 3];
        let read = AllocInfo::parse(cut.as_bytes()).unwrap();
        assert_eq!((read.sites.len(), read.notes.cut), (3, true));
        assert_eq!(read.write(), cut);
        let later = TEXT
            .replace("1.0", "2.0")
            .replace("x_alloc", "x_alloc accurate:no");
        let read = AllocInfo::parse(later.as_bytes()).unwrap();
        assert_eq!(read.write(), later);
        assert_eq!(read.sites[3].function, "x_alloc");
        assert!(read.sites[3].is_inaccurate() && !read.sites[0].is_inaccurate());
        assert!(AllocInfo::parse(b"MemFree: 4 kB\n").is_err());
    }

    #[test]
    fn a_version_or_columns_that_are_not_known_are_told() {
        let of = |text: &str| AllocInfo::parse(text.as_bytes()).unwrap();
        assert_eq!(of(TEXT).unknown_format(), None);
        assert_eq!(of(&TEXT.replace("1.0", "2.0")).unknown_format(), None);
        for later in ["1.1", "3.0"] {
            assert!(of(&TEXT.replace("1.0", later)).unknown_format().is_some());
        }
        let other = TEXT.replace("<size>  <calls>", "<calls>  <size>");
        assert!(of(&other).unknown_format().is_some());
        let rows = TEXT.lines().skip(2).map(|l| format!("{l}\n"));
        let rows = of(&rows.collect::<String>());
        assert!(!rows.is_headed && of(TEXT).is_headed);
    }
}
