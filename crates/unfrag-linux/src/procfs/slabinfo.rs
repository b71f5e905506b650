//! `/proc/slabinfo`: slab caches with their objects and slabs (`spec: 7.4`).
//!
//! A cache's name may hold spaces; a row is therefore read from its end.

use super::notes::{self, Notes, read_lines};
use super::row::text_of;
use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;
use unfrag_slab::CacheInfo;

/// Bytes of the pages that a cache has in a table which tells bytes alone, as `slabtop` prints it.
pub const TABLE_PAGE: u64 = 4096;

const PAGES_OF: &str = ", pages of ";

const TUNABLES: &str = " : tunables ";
const SLABDATA: &str = " : slabdata ";

/// The file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlabInfo {
    /// The version, from `slabinfo - version: `.
    pub version: String,
    /// The second line, which names the columns.
    pub columns: String,
    /// One row a cache.
    pub caches: Vec<Cache>,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

/// A slab cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// Name.
    pub name: String,
    /// Objects in use (SLUB counts all objects of per-CPU slabs).
    pub active_objs: u64,
    /// Objects that its slabs have room for.
    pub num_objs: u64,
    /// Bytes an object takes, with padding.
    pub objsize: u32,
    /// Objects a slab.
    pub objperslab: u32,
    /// Base pages a slab.
    pub pagesperslab: u32,
    /// Objects a CPU may hold; 0 with SLUB.
    pub limit: u32,
    /// Objects moved at a time; 0 with SLUB.
    pub batchcount: u32,
    /// Factor of the size of the CPUs' shared list; 0 with SLUB.
    pub sharedfactor: u32,
    /// Slabs with an object in use.
    pub active_slabs: u64,
    /// All its slabs.
    pub num_slabs: u64,
    /// Objects on the CPUs' shared list; 0 with SLUB.
    pub sharedavail: u64,
    /// Further columns of a debug kernel, as they stand; empty otherwise.
    pub statistics: String,
}

impl Cache {
    /// Pages of all its slabs, where no slab has fewer than `least`.
    ///
    /// SLUB takes a slab of the fewest pages that hold an object where it cannot get one of the usual size, which is the only
    /// one that `pagesperslab` tells. The objects that all slabs have room for tell how many are so small.
    pub fn pages(&self, least: u64) -> u64 {
        let (slabs, usual) = (self.num_slabs, u64::from(self.pagesperslab));
        let (size, room) = (u64::from(self.objsize), u64::from(self.objperslab));
        let all = slabs.saturating_mul(usual);
        // Objects fill more than half of a slab, whose pages are a power of two.
        let page = (room * size).checked_div(usual).unwrap_or(0);
        let page = page.max(1).next_power_of_two();
        let small = size.div_ceil(page).next_power_of_two().max(least);
        let room_of_small = (small * page).checked_div(size).unwrap_or(room);
        if small >= usual || room_of_small >= room {
            return all;
        }
        let missing = slabs.saturating_mul(room).saturating_sub(self.num_objs);
        // The two numbers are of one moment only nearly, and so may leave a rest.
        let smaller = (missing / (room - room_of_small)).min(slabs);
        all - smaller * (usual - small)
    }
}

/// Caches that are told for their size, however they grew.
pub const LARGEST: usize = 4;

/// Pages from which on a cache is one of the [`LARGEST`], of the pages of all; one at least.
pub fn pages_of_large(sizes: impl Iterator<Item = u64>) -> u64 {
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable_by_key(|&n| std::cmp::Reverse(n));
    sizes.get(LARGEST - 1).copied().unwrap_or(0).max(1)
}

impl Default for SlabInfo {
    fn default() -> Self {
        Self {
            version: "2.1".to_owned(),
            columns: "# name            <active_objs> <num_objs> <objsize> <objperslab> \
                      <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> \
                      : slabdata <active_slabs> <num_slabs> <sharedavail>"
                .to_owned(),
            caches: vec![],
            notes: Notes::default(),
        }
    }
}

impl From<&CacheInfo> for Cache {
    /// The row of a modelled cache.
    fn from(c: &CacheInfo) -> Cache {
        Cache {
            name: c.name.to_string(),
            active_objs: c.active_objects,
            num_objs: c.total_objects,
            objsize: c.size,
            objperslab: c.objects_per_slab,
            pagesperslab: 1 << c.order,
            limit: c.limit,
            batchcount: c.batch,
            sharedfactor: c.shared_factor,
            active_slabs: c.active_slabs,
            num_slabs: c.total_slabs,
            sharedavail: c.shared_available,
            statistics: String::new(),
        }
    }
}

impl SlabInfo {
    /// The file of modelled caches.
    pub fn of<'a>(caches: impl IntoIterator<Item = &'a CacheInfo>) -> SlabInfo {
        SlabInfo {
            caches: caches.into_iter().map(Cache::from).collect(),
            ..SlabInfo::default()
        }
    }

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
        let mut scan = Scan::new("slabinfo", bytes);
        if bytes.contains(&b'\r') {
            return Err(scan.error("no kernel ends a line with a carriage return"));
        }
        scan.expect("slabinfo - version: ")?;
        let version = scan.line()?.to_owned();
        if !scan.sees("#") {
            return Err(scan.error("expected the names of the columns"));
        }
        let columns = scan.line()?.to_owned();
        let mut caches = vec![];
        while !scan.is_at_end() {
            let at = scan.offset();
            let line = scan.line()?;
            let cache = read_cache(line);
            caches.push(cache.ok_or_else(|| scan.error_at(at, format!("no cache: {line:?}")))?);
        }
        Ok(Self {
            version,
            columns,
            caches,
            notes: Notes::default(),
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let mut read = Self::default();
        let notes = read_lines(source, |line, ended| {
            if let Some(version) = line.strip_prefix("slabinfo - version: ") {
                read.version = version.to_owned();
            } else if line.starts_with("# name ") {
                read.columns = line.to_owned();
            } else {
                read.caches.push(read_cache(line).filter(|_| ended)?);
            }
            Some(())
        });
        read.notes = notes;
        (!read.caches.is_empty()).then_some(read)
    }

    /// The text.
    pub fn write(&self) -> String {
        self.notes.apply(text_of(|out| {
            writeln!(
                out,
                "slabinfo - version: {}\n{}",
                self.version, self.columns
            )?;
            for c in &self.caches {
                write!(out, "{:<17} {:>6} {:>6}", c.name, c.active_objs, c.num_objs)?;
                write!(
                    out,
                    " {:>6} {:>4} {:>4}",
                    c.objsize, c.objperslab, c.pagesperslab
                )?;
                write!(out, "{TUNABLES}{:>4} {:>4}", c.limit, c.batchcount)?;
                write!(out, " {:>4}", c.sharedfactor)?;
                write!(out, "{SLABDATA}{:>6} {:>6}", c.active_slabs, c.num_slabs)?;
                writeln!(out, " {:>6}{}", c.sharedavail, c.statistics)?;
            }
            Ok(())
        }))
    }

    /// The version of a file made from a table that tells bytes, in pages of `bytes`.
    pub fn version_with_pages(bytes: u64) -> String {
        format!("2.1{PAGES_OF}{bytes}")
    }

    /// Bytes in a page of this file, if it was made from a table that tells bytes; else its pages are the host's.
    pub fn table_page(&self) -> Option<u64> {
        self.version.split_once(PAGES_OF)?.1.trim().parse().ok()
    }

    /// Bytes that the slabs of all caches are multiples of, where the table tells bytes: no page is larger. `None` for a
    /// table of pages, and for a few caches, which may all have large slabs.
    pub fn unit(&self) -> Option<u64> {
        /// Caches of which some have slabs of one page on any host.
        const SOME: usize = 8;
        let page = self.table_page()?;
        let sizes = self.caches.iter().filter(|c| c.num_slabs > 0);
        let sizes: Vec<u64> = sizes
            .map(|c| u64::from(c.pagesperslab).saturating_mul(page))
            .filter(|&n| n > 0)
            .collect();
        let least = *sizes.iter().min()?;
        let is_multiple = sizes.iter().all(|n| n % least == 0);
        (sizes.len() >= SOME || least == page).then_some(if is_multiple { least } else { page })
    }

    /// The cache called `name`.
    pub fn cache(&self, name: &str) -> Option<&Cache> {
        self.caches.iter().find(|c| c.name == name)
    }
}

fn read_cache(line: &str) -> Option<Cache> {
    let (objects, rest) = line.split_once(TUNABLES)?;
    let (tunables, slabs) = rest.split_once(SLABDATA)?;
    let (slabs, statistics) = match slabs.find(" : ") {
        Some(at) => slabs.split_at(at),
        None => (slabs, ""),
    };
    let mut rest = objects;
    let mut last = || {
        let (before, word) = rest.trim_end().rsplit_once(' ')?;
        rest = before;
        Some(word)
    };
    let pagesperslab = last()?.parse().ok()?;
    let objperslab = last()?.parse().ok()?;
    let objsize = last()?.parse().ok()?;
    let num_objs = last()?.parse().ok()?;
    let active_objs = last()?.parse().ok()?;
    let mut tunables = tunables.split_ascii_whitespace();
    let mut slabs = slabs.split_ascii_whitespace();
    Some(Cache {
        name: rest.trim().to_owned(),
        active_objs,
        num_objs,
        objsize,
        objperslab,
        pagesperslab,
        limit: tunables.next()?.parse().ok()?,
        batchcount: tunables.next()?.parse().ok()?,
        sharedfactor: tunables.next()?.parse().ok()?,
        active_slabs: slabs.next()?.parse().ok()?,
        num_slabs: slabs.next()?.parse().ok()?,
        sharedavail: slabs.next()?.parse().ok()?,
        statistics: statistics.to_owned(),
    })
}
