//! The zones of a host, from the files that tell them.
//!
//! buddyinfo tells free blocks best. Without it pagetypeinfo's rows are summed over the types; without both the two index
//! files of debugfs tell shares of free memory, and zoneinfo how much is free.
//!
//! Invariant: a zone says what its files say and no more; what no file tells is `None`.

use super::whole;
use super::zone::{TypeBlocks, Zone, pages};
use crate::geometry::ORDERS;
use unfrag_eras::ZoneKind;
use unfrag_linux::procfs::{
    BuddyInfo, ExtfragIndex, PageTypeInfo, UnusableIndex, ZoneInfo, zoneinfo,
};
use unfrag_linux::{Error, Result};

/// More pages in blocks of one order than any machine has.
const MOST_PAGES: u64 = 1 << 48;

/// The files that tell free blocks, as far as they were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// `/proc/buddyinfo`
    pub buddy: Option<&'a BuddyInfo>,
    /// `/proc/pagetypeinfo`
    pub types: Option<&'a PageTypeInfo>,
    /// `/proc/zoneinfo`
    pub zones: Option<&'a ZoneInfo>,
    /// debugfs' `extfrag/unusable_index`
    pub unusable: Option<&'a UnusableIndex>,
    /// debugfs' `extfrag/extfrag_index`
    pub extfrag: Option<&'a ExtfragIndex>,
}

/// The populated zones that the files tell, each from the best of them.
pub fn zones(from: &Sources) -> Vec<Zone> {
    let mut zones = free_lists(from);
    let kind = |z: &Zone| ZoneKind::from_name(&z.name).map(|k| k as usize);
    let kinds: Vec<_> = zones.iter().map(|z| (z.node, kind(z))).collect();
    for z in &mut zones {
        let is_higher = |&(node, other): &(u32, _)| node == z.node && other > kind(z);
        z.is_below_another = kinds.iter().any(is_higher);
        if let Some(all) = from.zones
            && let Some(info) = all.zone(z.node, &z.name)
        {
            z.add_zoneinfo(all, info);
        }
        if let Some(types) = from.types {
            add_types(z, types);
        }
    }
    zones
}

/// What pagetypeinfo tells beside free blocks.
fn add_types(z: &mut Zone, types: &PageTypeInfo) {
    z.has_all_types = whole::has_all_types(types, z.node, &z.name);
    if z.has_all_types {
        // The sum is exact where zoneinfo has it; the lists are of the moment when they were read.
        let listed = || Some(z.free_of("CMA").map_or(0, pages));
        z.cma_pages = z.cma_pages.or_else(listed);
    }
    let table = &types.blocks;
    let row = table
        .rows
        .iter()
        .find(|r| (r.node, &r.zone) == (z.node, &z.name));
    z.pageblocks = row.map(|r| {
        let named = table.migratetypes.iter().cloned();
        named.zip(r.blocks.iter().copied()).collect()
    });
}

/// The free blocks of each populated zone, from the best of the files.
fn free_lists(from: &Sources) -> Vec<Zone> {
    let mut rows = from.buddy.map_or(vec![], of_buddyinfo);
    for typed in from.types.map_or(vec![], of_types) {
        let is_it = |r: &&mut Zone| (r.node, &r.name) == (typed.node, &typed.name);
        match rows.iter_mut().find(is_it) {
            Some(row) if row.blocks.is_none() => *row = typed,
            Some(row) => row.by_type = typed.by_type,
            // A text may lack a zone that another one has.
            None => rows.push(typed),
        }
    }
    if rows.is_empty() {
        rows = of_indexes(from);
    }
    let is_of_lists = rows.iter().any(|r| r.blocks.is_some());
    for zone in from.zones.iter().flat_map(|z| &z.zones) {
        let is_it = |r: &&mut Zone| (r.node, &r.name) == (zone.node, &zone.name);
        // New kernels list unpopulated zones as well; of one that is cut off only its free pages may be told.
        let is_populated = zone.pages("present").unwrap_or(zone.free) > 0;
        match rows.iter_mut().find(is_it) {
            Some(_) if is_of_lists => {}
            Some(row) => row.free_pages = Some(zone.free),
            None if is_populated => {
                rows.push(Zone {
                    node: zone.node,
                    name: zone.name.clone(),
                    free_pages: Some(zone.free),
                    ..Zone::default()
                });
            }
            None => {}
        }
    }
    if let Some(zones) = from.zones {
        // As zoneinfo lists them, lowest first; those that it lacks stand where they stood.
        let place = |r: &Zone| {
            let is_it = |z: &zoneinfo::Zone| (z.node, &z.name) == (r.node, &r.name);
            zones.zones.iter().position(is_it)
        };
        if rows.iter().all(|r| place(r).is_some()) {
            rows.sort_by_key(place);
        }
    }
    rows
}

fn of_buddyinfo(buddy: &BuddyInfo) -> Vec<Zone> {
    let row = |r: &unfrag_linux::procfs::buddyinfo::Row| Zone {
        node: r.node,
        name: r.zone.clone(),
        // Blocks of orders that were left out are free too.
        free_pages: (!r.goes_on).then(|| r.free_pages()),
        blocks: (!r.goes_on).then(|| r.free.clone()),
        beginning: if r.goes_on { r.free.clone() } else { vec![] },
        ..Zone::default()
    };
    buddy.zones.iter().map(row).collect()
}

fn of_types(types: &PageTypeInfo) -> Vec<Zone> {
    let mut rows: Vec<Zone> = vec![];
    for typed in &types.free {
        let is_it = |r: &Zone| (r.node, &r.name) == (typed.node, &typed.zone);
        let at = rows.iter().position(is_it).unwrap_or_else(|| {
            rows.push(Zone {
                node: typed.node,
                name: typed.zone.clone(),
                blocks: Some(vec![]),
                ..Zone::default()
            });
            rows.len() - 1
        });
        let row = &mut rows[at];
        let blocks = row.blocks.get_or_insert_default();
        blocks.resize(blocks.len().max(typed.counts.len()), 0);
        for (sum, count) in blocks.iter_mut().zip(&typed.counts) {
            *sum = sum.saturating_add(count.blocks);
            row.is_capped |= count.capped;
        }
        row.by_type.push(TypeBlocks {
            name: typed.migratetype.clone(),
            blocks: typed.counts.iter().map(|c| c.blocks).collect(),
            is_capped: typed.counts.iter().any(|c| c.capped),
        });
    }
    for row in &mut rows {
        // A sum over some of the types is no number of the zone.
        row.blocks = row
            .blocks
            .take()
            .filter(|_| whole::has_all_types(types, row.node, &row.name));
        row.free_pages = row.blocks.as_deref().map(pages);
    }
    rows
}

fn of_indexes(from: &Sources) -> Vec<Zone> {
    let unusable = from.unusable.iter().flat_map(|i| &i.zones);
    let extfrag = from.extfrag.iter().flat_map(|i| &i.zones);
    let mut rows: Vec<Zone> = vec![];
    for (index, is_unusable) in unusable
        .map(|i| (i, true))
        .chain(extfrag.map(|i| (i, false)))
    {
        let is_it = |r: &Zone| (r.node, &r.name) == (index.node, &index.zone);
        let at = rows.iter().position(is_it).unwrap_or_else(|| {
            rows.push(Zone {
                node: index.node,
                name: index.zone.clone(),
                ..Zone::default()
            });
            rows.len() - 1
        });
        let values = Some(index.thousandths.clone());
        if is_unusable {
            rows[at].unusable = values;
        } else {
            rows[at].fragmentation = values;
        }
    }
    rows
}

/// Refuses zones with numbers that no kernel has.
///
/// # Errors
/// Names the zone, and the number or how many orders it has.
pub fn check(rows: &[Zone]) -> Result<()> {
    for row in rows {
        let place = || format!("node {}, zone {}", row.node, row.name);
        if let Some(n) = row.orders().filter(|n| !ORDERS.contains(n)) {
            return Err(Error::unsupported(format!("{}: {n} orders", place()))
                .help("kernels have between 7 and 24 orders"));
        }
        let blocks = row.blocks.as_ref().unwrap_or(&row.beginning);
        for (o, &n) in blocks.iter().enumerate() {
            if n > MOST_PAGES.checked_shr(o as u32).unwrap_or(0) {
                return Err(Error::too_large(
                    format!("a number of free blocks of {}", place()),
                    n,
                    MOST_PAGES.checked_shr(o as u32).unwrap_or(0),
                ));
            }
        }
    }
    Ok(())
}
