//! The fragmentation indexes of memory at one moment, from the procfs files of a recording or of this host.
//!
//! - [`crate::host`]: the host that the files show.
//! - [`compare`]: two moments, and what differs. [`text`], [`changes`]: one moment or several, and a comparison, as text.
//!
//! Invariant: every number is the kernel's own, or made from free blocks by the formulas of
//! [`unfrag_eras::stat`]; what could not be read is named in [`Moment::unread`], never guessed.

pub mod changes;
pub mod compare;
pub mod text;

use crate::geometry::PageSizeFrom;
use crate::host::amounts::Amounts;
use crate::host::files::{Files, Lacking, Reader};
use crate::host::{Host, OfSnapshot, Unread, Zone, zone::TypeBlocks};
use serde::Serialize;
use std::collections::BTreeMap;
use unfrag_linux::procfs::PageTypeInfo;
use unfrag_linux::recording::Snapshot;
use unfrag_linux::segments::Covered;
use unfrag_linux::{Error, Result};

/// What is not shown for a file that could not be read.
const LACKING: &Lacking = &Lacking {
    needed: &[
        ("buddyinfo", "free blocks are not shown"),
        (
            "zoneinfo",
            "managed and per-CPU pages and watermarks are not shown",
        ),
        ("pagetypeinfo", "pageblocks by type are not shown"),
    ],
    further: &[
        ("unusable_index", "the index is not shown"),
        ("extfrag_index", "the index is not shown"),
        (
            "meminfo",
            "the page size is taken from other files, and memory that no zone manages is not known",
        ),
    ],
};

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
    /// What the window is, if one was chosen.
    #[serde(skip)]
    pub covered: Option<Covered>,
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
    /// Order of a pageblock, where a file tells it.
    #[serde(skip)]
    pub pageblock_order: Option<u8>,
    /// How large the host is.
    pub memory: Amounts,
    /// One for each populated zone.
    pub zones: Vec<ZoneState>,
    /// Assumptions, and files that contradict each other.
    pub notes: Vec<String>,
    /// Files that could not be read, and why.
    pub unread: Vec<Unread>,
}

/// A zone at one moment. Indexes stand at the number of their order.
#[derive(Clone, Debug, Default, Serialize)]
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
    moment(&snapshot.name, page_size, OfSnapshot(snapshot))
}

/// The moment that the files of procfs show. `page_size` in bytes goes before what they tell.
///
/// # Errors
/// If a file is not what the kernel writes, and no other tells free memory; names it.
pub fn moment(name: &str, page_size: Option<u64>, from: impl Files) -> Result<Moment> {
    let mut reader = Reader::new(&from, LACKING);
    let mut host = Host::read(&mut reader);
    if host.zones.is_empty() && !reader.errors.is_empty() {
        return Err(reader.errors.swap_remove(0));
    }
    host.measure(page_size, host.listed(), None);
    host.unread = reader.unread;
    Ok(of_host(name, host))
}

fn of_host(name: &str, host: Host) -> Moment {
    let contradictions = host.contradictions();
    let beginnings = host.zones.iter().filter_map(Zone::beginning_alone);
    let notes = host.partly.iter().chain(&host.of_sizes).cloned();
    Moment {
        name: name.to_owned(),
        page_size: host.geometry.page_size,
        page_size_from: host.geometry.page_size_from,
        huge_page_bytes: host.geometry.huge_page_bytes(),
        huge_order: host.geometry.huge_order,
        pageblock_order: host
            .types
            .as_ref()
            .and_then(PageTypeInfo::told_pageblock_order)
            .and_then(|o| u8::try_from(o).ok()),
        memory: Amounts::of(&host),
        notes: notes.chain(beginnings).chain(contradictions).collect(),
        zones: host.zones.iter().map(zone_state).collect(),
        unread: host.unread,
    }
}

fn zone_state(zone: &Zone) -> ZoneState {
    let orders = 0..zone.orders().unwrap_or(0) as u8;
    ZoneState {
        node: zone.node,
        zone: zone.name.clone(),
        managed_pages: zone.managed,
        free_pages: zone.free_pages,
        pcp_pages: zone.pcp,
        watermarks: ["min", "low", "high", "boost"]
            .iter()
            .filter_map(|&m| Some((m.to_owned(), zone.told(m)?)))
            .collect(),
        free_blocks: zone.blocks.clone(),
        first_free_blocks: zone.beginning.clone(),
        free_by_type: free_by_type(zone),
        is_capped: zone.is_capped,
        free_huge_blocks: zone.whole_blocks(zone.huge_order),
        unusable_index: orders
            .clone()
            .filter_map(|o| Some(zone.unusable_index(o)? as f64 / 1e3))
            .collect(),
        fragmentation_index: orders
            .filter_map(|o| Some(zone.fragmentation_index(o)? as f64 / 1e3))
            .collect(),
        extfrag_for_order_9: zone.outside(zone.huge_order),
        pageblocks: zone
            .pageblocks
            .as_ref()
            .map(|all| all.iter().cloned().collect()),
    }
}

fn free_by_type(zone: &Zone) -> Option<BTreeMap<String, FreeOfType>> {
    let of = |t: &TypeBlocks| {
        let free = FreeOfType {
            pages: t.pages(),
            blocks: t.blocks.clone(),
            is_capped: t.is_capped,
        };
        (t.name.clone(), free)
    };
    (!zone.by_type.is_empty()).then(|| zone.by_type.iter().map(of).collect())
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
    use std::io;

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
}
