//! The fragmentation indexes of memory at one moment, from the procfs files of a recording or of this host.
//!
//! - [`files`]: the files that are there, each read by itself. [`mod@free_rows`]: the free blocks of each zone, from
//!   whichever of them tells.
//! - [`compare`]: two moments, and what differs. [`text`], [`changes`]: one moment or several, and a comparison, as text.
//!
//! Invariant: every number is the kernel's own, or made from free blocks by the formulas of
//! [`unfrag::stat`]; what could not be read is named in [`Moment::unread`], never guessed.

pub mod changes;
pub mod compare;
pub mod files;
pub mod free_rows;
pub mod text;
pub mod whole;

use crate::geometry::{self, Counts, Geometry, PageSizeFrom};
use files::{Reader, of_all, pcp_pages};
use free_rows::{FreeRow, FreeSources, free_rows};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use unfrag_linux::procfs::{PageTypeInfo, ZoneInfo};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::{Error, Result};

pub use files::Unread;

/// What `unfrag inspect` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// Where it came from: a file's or directory's name.
    pub source: String,
    /// The moments, in order.
    pub snapshots: Vec<Moment>,
    /// What was there and was not read, with the reason; left out if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<Unread>,
}

/// Memory at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Moment {
    /// Name of the snapshot.
    pub name: String,
    /// Bytes in a page.
    pub page_size: u64,
    /// How that is known.
    pub page_size_from: PageSizeFrom,
    /// Bytes in a huge page.
    pub huge_page_bytes: u64,
    /// Order of a huge page.
    pub huge_order: u8,
    /// One for each populated zone.
    pub zones: Vec<ZoneState>,
    /// Assumptions, and files that contradict each other.
    pub notes: Vec<String>,
    /// Files that could not be read, and why.
    pub unread: Vec<Unread>,
}

/// A zone at one moment. Indexes stand at the number of their order.
#[derive(Clone, Debug, Serialize)]
pub struct ZoneState {
    /// Node id.
    pub node: u32,
    /// Zone name, such as `DMA32`.
    pub zone: String,
    /// Pages that the allocator manages; `null` without zoneinfo.
    pub managed_pages: Option<u64>,
    /// Pages on the buddy lists; `null` if only indexes were read.
    pub free_pages: Option<u64>,
    /// Pages on per-CPU lists; `null` where zoneinfo is missing, or does not tell them to their end.
    pub pcp_pages: Option<u64>,
    /// min, low, high and boost, in pages, as far as the kernel has them.
    pub watermarks: BTreeMap<String, u64>,
    /// Free blocks of each order; `null` if only indexes were read.
    pub free_blocks: Option<Vec<u64>>,
    /// Free blocks of the first orders, where no file tells those of the others; left out where `free_blocks` has all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first_free_blocks: Vec<u64>,
    /// Free pages by migrate type; `null` without pagetypeinfo.
    pub free_by_type: Option<BTreeMap<String, FreeOfType>>,
    /// Whether the kernel stopped counting, so that more may be free.
    pub is_capped: bool,
    /// Free blocks of a huge page's size (a larger block counts as several).
    pub free_huge_blocks: Option<u64>,
    /// Share of free memory that a request of the order cannot use, 0 to 1.
    pub unusable_index: Vec<f64>,
    /// Why a request of the order would fail: towards 0 for lack of memory, towards 1 for
    /// fragmentation; -1 where a block is free.
    pub fragmentation_index: Vec<f64>,
    /// Percent of free memory outside blocks of a huge page's size: the score of proactive compaction. Its
    /// order is 9 on most hosts, and `huge_order` of the moment on all.
    pub extfrag_for_order_9: Option<u64>,
    /// Pageblocks of each type; `null` without pagetypeinfo.
    pub pageblocks: Option<BTreeMap<String, u64>>,
}

/// What is free in pageblocks of one migrate type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreeOfType {
    /// Free pages.
    pub pages: u64,
    /// Free blocks of each order.
    pub blocks: Vec<u64>,
    /// Whether the kernel stopped counting, so that more may be free.
    pub is_capped: bool,
}

/// The moment that a snapshot holds. `page_size` in bytes goes before what the files tell.
///
/// # Errors
/// If none of the files that tell free memory can be read.
pub fn of_snapshot(snapshot: &Snapshot, page_size: Option<u64>) -> Result<Moment> {
    moment(&snapshot.name, page_size, |name| {
        match snapshot.file(name) {
            Some(content) => Ok(content.to_vec()),
            None => Err(io::Error::other("not in the snapshot")),
        }
    })
}

/// The moment that the files of procfs show which `read` gives. `page_size` in bytes goes before what they tell.
///
/// # Errors
/// If a file is not what the kernel writes, and no other tells free memory; names it.
pub fn moment(
    name: &str,
    page_size: Option<u64>,
    read: impl Fn(&str) -> io::Result<Vec<u8>>,
) -> Result<Moment> {
    let mut reader = Reader::new(&read);
    let buddy = reader.get("buddyinfo", "free blocks are not shown", files::buddyinfo);
    let zones = reader.get(
        "zoneinfo",
        "managed and per-CPU pages and watermarks are not shown",
        files::zoneinfo,
    );
    let types = reader.get(
        "pagetypeinfo",
        "pageblocks by type are not shown",
        files::pagetypeinfo,
    );
    // These tell what buddyinfo tells as well, so they are missed only where it is missing too.
    let (mut unusable, mut extfrag) = (None, None);
    if buddy.is_none() && types.is_none() {
        if reader.has("unusable_index") {
            unusable = reader.get("unusable_index", "the index is not shown", files::unusable);
        }
        if reader.has("extfrag_index") {
            extfrag = reader.get("extfrag_index", "the index is not shown", files::extfrag);
        }
    }
    let meminfo = match reader.has("meminfo") {
        true => reader.get(
            "meminfo",
            "the page size is taken from other files",
            files::meminfo,
        ),
        false => None,
    };
    let rows = free_rows(&FreeSources {
        buddy: buddy.as_ref(),
        types: types.as_ref(),
        zones: zones.as_ref(),
        unusable: unusable.as_ref(),
        extfrag: extfrag.as_ref(),
    });
    if rows.is_empty()
        && let Some(error) = reader.first_error
    {
        return Err(error);
    }
    let found = geometry::find(&Counts {
        asked: page_size,
        meminfo: meminfo.as_ref(),
        managed: of_all(zones.as_ref(), |z| z.pages("managed")),
        present: of_all(zones.as_ref(), |z| z.pages("present")),
        free: total_free(&rows),
        pageblock_order: types.as_ref().and_then(PageTypeInfo::told_pageblock_order),
        orders: rows.iter().find_map(FreeRow::orders),
        slab_unit: None,
    });
    let mut notes = files::partly(&[
        ("buddyinfo", buddy.as_ref().map(|f| &f.notes)),
        ("zoneinfo", zones.as_ref().map(|f| &f.notes)),
        ("pagetypeinfo", types.as_ref().map(|f| &f.notes)),
        ("unusable_index", unusable.as_ref().map(|f| &f.notes)),
        ("extfrag_index", extfrag.as_ref().map(|f| &f.notes)),
    ]);
    notes.extend(found.notes);
    notes.extend(free_rows::beginnings(&rows));
    notes.extend(contradictions(&rows, zones.as_ref(), &found.geometry));
    notes.extend(zones.iter().flat_map(whole::notes));
    let g = found.geometry;
    Ok(Moment {
        name: name.to_owned(),
        page_size: g.page_size,
        page_size_from: g.page_size_from,
        huge_page_bytes: g.huge_page_bytes(),
        huge_order: g.huge_order,
        zones: rows
            .iter()
            .map(|row| zone_state(row, &g, zones.as_ref(), types.as_ref()))
            .collect(),
        notes,
        unread: reader.unread,
    })
}

/// Free pages of all zones; `None` if one of them does not tell.
pub(crate) fn total_free(rows: &[FreeRow]) -> Option<u64> {
    let mut known = rows.iter().filter(|r| !r.is_capped);
    let exact = known.try_fold(0u64, |sum, r| Some(sum.saturating_add(r.free_pages?)))?;
    (!rows.is_empty() && rows.iter().all(|r| !r.is_capped)).then_some(exact)
}

/// Zones of which two files of one moment tell free memory too differently, a clause each.
pub(crate) fn contradictions(
    rows: &[FreeRow],
    zones: Option<&ZoneInfo>,
    geometry: &Geometry,
) -> Vec<String> {
    /// Pages that come and go between two readings.
    const SMALL: u64 = 1024;
    let one = |row: &FreeRow| {
        let listed = row.free_pages.filter(|_| !row.is_capped)?;
        let counted = zones?.zone(row.node, &row.zone)?.free;
        geometry::differ(listed, counted, SMALL).then(|| {
            let size = |pages: u64| {
                crate::report::number::bytes(pages.saturating_mul(geometry.page_size))
            };
            format!(
                "node {}, zone {}: the free lists hold {}, zoneinfo counts {} free: the files are not of one moment",
                row.node,
                row.zone,
                size(listed),
                size(counted)
            )
        })
    };
    rows.iter().filter_map(one).collect()
}

fn zone_state(
    row: &FreeRow,
    geometry: &Geometry,
    zones: Option<&ZoneInfo>,
    types: Option<&PageTypeInfo>,
) -> ZoneState {
    let orders = 0..row.orders().unwrap_or(0) as u8;
    let zone = zones.and_then(|z| z.zone(row.node, &row.zone));
    let huge = geometry.huge_order;
    ZoneState {
        node: row.node,
        zone: row.zone.clone(),
        managed_pages: zones
            .zip(zone)
            .and_then(|(info, z)| whole::managed(info, z)),
        free_pages: row.free_pages,
        pcp_pages: zone.and_then(pcp_pages),
        watermarks: ["min", "low", "high", "boost"]
            .iter()
            .filter_map(|&m| Some((m.to_owned(), zone?.pages(m)?)))
            .collect(),
        free_blocks: row.blocks.clone(),
        first_free_blocks: row.beginning.clone(),
        free_by_type: free_by_type(row),
        is_capped: row.is_capped,
        free_huge_blocks: row.whole_blocks(huge),
        unusable_index: orders
            .clone()
            .filter_map(|o| Some(row.unusable_index(o)? as f64 / 1e3))
            .collect(),
        fragmentation_index: orders
            .filter_map(|o| Some(row.fragmentation_index(o)? as f64 / 1e3))
            .collect(),
        extfrag_for_order_9: row.outside(huge),
        pageblocks: types.and_then(|t| pageblocks(t, row)),
    }
}

fn free_by_type(row: &FreeRow) -> Option<BTreeMap<String, FreeOfType>> {
    let of = |t: &free_rows::TypeBlocks| {
        let free = FreeOfType {
            pages: t.pages(),
            blocks: t.blocks.clone(),
            is_capped: t.is_capped,
        };
        (t.name.clone(), free)
    };
    (!row.by_type.is_empty()).then(|| row.by_type.iter().map(of).collect())
}

fn pageblocks(types: &PageTypeInfo, row: &FreeRow) -> Option<BTreeMap<String, u64>> {
    let table = &types.blocks;
    let found = table
        .rows
        .iter()
        .find(|r| r.node == row.node && r.zone == row.zone)?;
    let named = table
        .migratetypes
        .iter()
        .cloned()
        .zip(found.blocks.iter().copied());
    Some(named.collect())
}

/// The error of an input that holds no file which tells free memory; `not_read` ends its help.
pub fn nothing_in_it(not_read: &str) -> Error {
    Error::malformed("no file in it tells free memory by order").help(format!(
        "give a copy of /proc/buddyinfo or /proc/pagetypeinfo, a directory or an archive of such, or /proc{not_read}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDDY: &str = "Node 0, zone    DMA32    100     50      0      0      0      0      0      0      0      0      0 \n";

    fn files(all: &'static [(&str, &str)]) -> impl Fn(&str) -> io::Result<Vec<u8>> {
        move |name| match all.iter().find(|(n, _)| *n == name) {
            Some((_, text)) => Ok(text.as_bytes().to_vec()),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    fn only_buddy() -> Moment {
        moment("now", None, files(&[("buddyinfo", BUDDY)])).unwrap()
    }

    /// `spec: 7.5`
    #[test]
    fn indexes_are_the_kernels() {
        let m = only_buddy();
        let z = &m.zones[0];
        assert_eq!(z.free_pages, Some(200));
        assert_eq!(z.unusable_index[1], 0.5);
        assert_eq!(z.fragmentation_index[4], 0.91);
        assert_eq!(z.fragmentation_index[1], -1.0);
        assert_eq!(z.extfrag_for_order_9, Some(100));
    }

    #[test]
    fn what_could_not_be_read_is_named() {
        let m = only_buddy();
        let names: Vec<_> = m.unread.iter().map(|u| u.file.as_str()).collect();
        assert_eq!(names, ["zoneinfo", "pagetypeinfo"]);
        assert!(
            m.unread[1].why.starts_with("only root"),
            "{}",
            m.unread[1].why
        );
        assert_eq!(m.zones[0].managed_pages, None);
        assert_eq!(m.zones[0].pageblocks, None);
    }

    #[test]
    fn a_bad_file_costs_itself_alone() {
        const BAD: &str = "cat: /proc/pagetypeinfo: Permission denied\n";
        let all = &[("buddyinfo", BUDDY), ("pagetypeinfo", BAD)];
        let m = moment("now", None, files(all)).unwrap();
        assert_eq!(m.zones.len(), 1);
        let why = &m
            .unread
            .iter()
            .find(|u| u.file == "pagetypeinfo")
            .unwrap()
            .why;
        assert!(why.contains("Permission denied"), "{why}");
    }

    #[test]
    fn numbers_that_no_kernel_has_are_refused() {
        let many = &[(
            "buddyinfo",
            "Node 0, zone DMA 18446744073709551615 0 0 0 0 0 0 0 0 0 18446744073709551615 \n",
        )];
        let e = moment("now", None, files(many)).unwrap_err();
        assert_eq!(e.file.as_deref(), Some("buddyinfo".as_ref()));
        let few = &[("buddyinfo", "Node 0, zone DMA 1 2 3 \n")];
        assert!(moment("now", None, files(few)).is_err());
    }

    #[test]
    fn the_indexes_alone_show_what_they_tell() {
        let index = &[(
            "unusable_index",
            "Node 0, zone   Normal 0.000 0.100 0.200 0.300 0.400 0.500 0.600 0.700 0.800 0.977 1.000 \n",
        )];
        let m = moment("now", None, files(index)).unwrap();
        let z = &m.zones[0];
        assert_eq!((z.free_pages, &z.free_blocks), (None, &None));
        assert_eq!(
            (z.unusable_index[9], z.extfrag_for_order_9),
            (0.977, Some(97))
        );
        assert!(z.fragmentation_index.is_empty());
    }

    #[test]
    fn types_alone_are_summed_over_the_types() {
        let types = &[(
            "pagetypeinfo",
            "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \nNode    0, zone   Normal, type    Unmovable     10      4      2      1      0      0      0      0      0      0      0 \nNode    0, zone   Normal, type      Movable    148    104     63     70     26     11      2      2      1      1    973 \n\nNumber of blocks type     Unmovable      Movable \nNode 0, zone   Normal           12         8702 \n",
        )];
        let m = moment("now", None, files(types)).unwrap();
        let z = &m.zones[0];
        assert_eq!(z.free_blocks.as_ref().unwrap()[..2], [158, 108]);
        assert_eq!(z.pageblocks.as_ref().unwrap()["Movable"], 8702);
    }

    #[test]
    fn two_files_of_one_moment_that_disagree_are_named() {
        let row = FreeRow {
            zone: "Normal".into(),
            free_pages: Some(17_000),
            ..FreeRow::default()
        };
        let zones = ZoneInfo {
            zones: vec![unfrag_linux::procfs::zoneinfo::Zone {
                name: "Normal".into(),
                free: 240_000,
                ..Default::default()
            }],
            ..ZoneInfo::default()
        };
        let g = Geometry::default();
        assert_eq!(
            contradictions(std::slice::from_ref(&row), Some(&zones), &g).len(),
            1
        );
        let same = FreeRow {
            free_pages: Some(239_000),
            ..row
        };
        assert!(contradictions(&[same], Some(&zones), &g).is_empty());
    }
}
