//! The fragmentation indexes of memory at one moment, from the procfs files of a recording or of this host.
//!
//! Invariant: every number is the kernel's own, or made from buddyinfo by the formulas of
//! [`unfrag::stat`]; what could not be read is named in [`Moment::unread`], never guessed.

use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use unfrag::Order;
use unfrag::frame::NR_ORDERS;
use unfrag::stat::{extfrag_for_order, fragmentation_index, unusable_index};
use unfrag_linux::procfs::buddyinfo::Row;
use unfrag_linux::procfs::{BuddyInfo, PageTypeInfo, ZoneInfo, zoneinfo};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::{Error, Result};

/// What `unfrag inspect` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// Where it came from: a file's or directory's name.
    pub source: String,
    /// The moments, in order.
    pub snapshots: Vec<Moment>,
}

/// Memory at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Moment {
    /// Name of the snapshot.
    pub name: String,
    /// One for each populated zone.
    pub zones: Vec<ZoneState>,
    /// Files that could not be read, and why.
    pub unread: Vec<Unread>,
}

/// A file that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct Unread {
    /// Its name.
    pub file: String,
    /// Why, and what is missing for it.
    pub why: String,
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
    /// Pages on the buddy lists.
    pub free_pages: u64,
    /// Pages on per-CPU lists; `null` without zoneinfo.
    pub pcp_pages: Option<u64>,
    /// min, low, high and boost, in pages, as far as the kernel has them.
    pub watermarks: BTreeMap<String, u64>,
    /// Free blocks of each order.
    pub free_blocks: Vec<u64>,
    /// Free 2 MiB blocks (an order-10 block counts as two).
    pub free_huge_blocks: u64,
    /// Share of free memory that a request of the order cannot use, 0 to 1.
    pub unusable_index: Vec<f64>,
    /// Why a request of the order would fail: towards 0 for lack of memory, towards 1 for
    /// fragmentation; -1 where a block is free.
    pub fragmentation_index: Vec<f64>,
    /// Percent of free memory outside 2 MiB blocks: the score of proactive compaction.
    pub extfrag_for_order_9: u64,
    /// Pageblocks of each type; `null` without pagetypeinfo.
    pub pageblocks: Option<BTreeMap<String, u64>>,
}

/// More blocks of one order than any machine has.
const MOST_BLOCKS: u64 = 1 << 40;

/// The moment that a snapshot holds.
///
/// # Errors
/// If a file is not what the kernel writes.
pub fn of_snapshot(snapshot: &Snapshot) -> Result<Moment> {
    moment(&snapshot.name, |name| match snapshot.file(name) {
        Some(content) => Ok(content.to_vec()),
        None => Err(io::Error::other("not in the snapshot")),
    })
}

/// The moment that the files of procfs show which `read` gives.
///
/// # Errors
/// If a file is not what the kernel writes; names it.
pub fn moment(name: &str, read: impl Fn(&str) -> io::Result<Vec<u8>>) -> Result<Moment> {
    let mut moment = Moment {
        name: name.to_owned(),
        ..Moment::default()
    };
    let mut get = |file: &str, what: &str| match read(file) {
        Ok(content) => Some(content),
        Err(e) => {
            moment.unread.push(Unread {
                file: file.to_owned(),
                why: format!("{}: {what} not shown", cause(&e)),
            });
            None
        }
    };
    let buddy = get("buddyinfo", "free blocks are");
    let zones = get("zoneinfo", "managed and per-CPU pages and watermarks are");
    let types = get("pagetypeinfo", "pageblocks by type are");
    let named = |file: &'static str| move |e: Error| e.in_file(file.as_ref());
    let buddy = buddy.map(|b| BuddyInfo::parse(&b).map_err(named("buddyinfo")));
    let zones = zones
        .map(|z| ZoneInfo::parse(&z).map_err(named("zoneinfo")))
        .transpose()?;
    let types = types
        .map(|t| PageTypeInfo::parse(&t).map_err(named("pagetypeinfo")))
        .transpose()?;
    for row in buddy.transpose()?.unwrap_or_default().zones {
        let state = zone_state(&row, zones.as_ref(), types.as_ref());
        moment.zones.push(state.map_err(named("buddyinfo"))?);
    }
    Ok(moment)
}

/// An error of the operating system without its number.
pub(crate) fn cause(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::PermissionDenied => "only root may read it".into(),
        io::ErrorKind::NotFound => "not there".into(),
        _ => e.to_string(),
    }
}

fn zone_state(
    row: &Row,
    zones: Option<&ZoneInfo>,
    types: Option<&PageTypeInfo>,
) -> Result<ZoneState> {
    let free = blocks(row)?;
    let orders = 0..NR_ORDERS as u8;
    let zone = zones.and_then(|z| z.zone(row.node, &row.zone));
    Ok(ZoneState {
        node: row.node,
        zone: row.zone.clone(),
        managed_pages: zone.and_then(|z| z.pages("managed").or_else(|| z.pages("present"))),
        free_pages: row.free_pages(),
        pcp_pages: zone.map(pcp_pages),
        watermarks: ["min", "low", "high", "boost"]
            .iter()
            .filter_map(|&m| Some((m.to_owned(), zone?.pages(m)?)))
            .collect(),
        free_blocks: row.free.clone(),
        free_huge_blocks: free[9] + 2 * free[10],
        unusable_index: orders
            .clone()
            .map(|o| unusable_index(&free, Order(o)) as f64 / 1e3)
            .collect(),
        fragmentation_index: orders
            .map(|o| fragmentation_index(&free, Order(o)) as f64 / 1e3)
            .collect(),
        extfrag_for_order_9: extfrag_for_order(&free, Order::HUGE),
        pageblocks: types.and_then(|t| pageblocks(t, row)),
    })
}

/// The numbers of free blocks, as far as they can be true.
pub(crate) fn blocks(row: &Row) -> Result<[u64; NR_ORDERS]> {
    let place = || format!("node {}, zone {}", row.node, row.zone);
    if let Some(&n) = row.free.iter().find(|&&n| n > MOST_BLOCKS) {
        return Err(Error::too_large(
            format!("a number of free blocks of {}", place()),
            n,
            MOST_BLOCKS,
        ));
    }
    row.free.as_slice().try_into().map_err(|_| {
        Error::unsupported(format!("{}: {} orders", place(), row.free.len()))
            .help("only kernels with orders 0 to 10 are known here")
    })
}

pub(crate) fn pcp_pages(zone: &zoneinfo::Zone) -> u64 {
    let sets = zone.pagesets.iter().flatten();
    sets.filter_map(|s| s.fields.get("count"))
        .fold(0, u64::saturating_add)
}

fn pageblocks(types: &PageTypeInfo, row: &Row) -> Option<BTreeMap<String, u64>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const BUDDY: &str = "Node 0, zone    DMA32    100     50      0      0      0      0      0      0      0      0      0 \n";

    fn only_buddy(text: &'static str) -> impl Fn(&str) -> io::Result<Vec<u8>> {
        move |name| match name {
            "buddyinfo" => Ok(text.into()),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// `spec: 7.5`
    #[test]
    fn indexes_are_the_kernels() {
        let m = moment("now", only_buddy(BUDDY)).unwrap();
        let z = &m.zones[0];
        assert_eq!(z.free_pages, 200);
        assert_eq!(z.unusable_index[1], 0.5);
        assert_eq!(z.fragmentation_index[4], 0.91);
        assert_eq!(z.fragmentation_index[1], -1.0);
        assert_eq!(z.extfrag_for_order_9, 100);
    }

    #[test]
    fn what_could_not_be_read_is_named() {
        let m = moment("now", only_buddy(BUDDY)).unwrap();
        let files: Vec<_> = m.unread.iter().map(|u| u.file.as_str()).collect();
        assert_eq!(files, ["zoneinfo", "pagetypeinfo"]);
        assert!(
            m.unread[1].why.starts_with("only root"),
            "{}",
            m.unread[1].why
        );
        assert_eq!(m.zones[0].managed_pages, None);
        assert_eq!(m.zones[0].pageblocks, None);
    }

    #[test]
    fn numbers_that_no_kernel_has_are_refused() {
        let many =
            "Node 0, zone DMA 18446744073709551615 0 0 0 0 0 0 0 0 0 18446744073709551615 \n";
        let e = moment("now", only_buddy(many)).unwrap_err();
        assert_eq!(e.file.as_deref(), Some("buddyinfo".as_ref()));
        let few = "Node 0, zone DMA 1 2 3 \n";
        assert!(moment("now", only_buddy(few)).is_err());
    }
}
