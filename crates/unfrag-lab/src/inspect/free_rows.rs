//! The free blocks of each zone, from whichever file tells them.
//!
//! buddyinfo tells them best. Without it pagetypeinfo's rows are summed over the types; without both the two index
//! files of debugfs tell shares of free memory, and zoneinfo how much is free.
//!
//! Invariant: a row says what its file says and no more; what no file tells is `None`.

use super::whole;
use crate::geometry::ORDERS;
use unfrag::Order;
use unfrag::stat::{extfrag_for_order, fragmentation_index, unusable_index};
use unfrag_linux::procfs::{
    BuddyInfo, ExtfragIndex, PageTypeInfo, UnusableIndex, ZoneInfo, zoneinfo,
};
use unfrag_linux::{Error, Result};

/// More pages in blocks of one order than any machine has.
const MOST_PAGES: u64 = 1 << 48;

/// The free blocks of a zone, or what is known of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FreeRow {
    /// Node id.
    pub node: u32,
    /// Zone name.
    pub zone: String,
    /// Free blocks of each order.
    pub blocks: Option<Vec<u64>>,
    /// Free blocks of the first orders, where no file tells those of the others.
    pub beginning: Vec<u64>,
    /// Free blocks of each order by migrate type, where pagetypeinfo tells them.
    pub by_type: Vec<TypeBlocks>,
    /// Whether the kernel stopped counting, so that more may be free.
    pub is_capped: bool,
    /// Free pages.
    pub free_pages: Option<u64>,
    /// The kernel's unusable index by order, in thousandths, where the blocks are not known.
    pub unusable: Option<Vec<i32>>,
    /// The kernel's fragmentation index by order, in thousandths, where the blocks are not known.
    pub fragmentation: Option<Vec<i32>>,
}

/// Free blocks of one migrate type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeBlocks {
    /// The type, such as `Movable`.
    pub name: String,
    /// Free blocks of each order.
    pub blocks: Vec<u64>,
    /// Whether the kernel stopped counting, so that more may be free.
    pub is_capped: bool,
}

impl TypeBlocks {
    /// Free pages of the type; at least so many if the kernel stopped counting.
    pub fn pages(&self) -> u64 {
        pages(&self.blocks)
    }
}

/// Pages in blocks of each order.
fn pages(blocks: &[u64]) -> u64 {
    let each = blocks.iter().enumerate();
    each.fold(0, |sum: u64, (o, n)| {
        sum.saturating_add(n.checked_mul(1 << o.min(63)).unwrap_or(u64::MAX))
    })
}

impl FreeRow {
    /// Number of orders that are known of.
    pub fn orders(&self) -> Option<usize> {
        let indexes = || self.unusable.as_ref().or(self.fragmentation.as_ref());
        let blocks = self.blocks.as_ref().map(Vec::len);
        blocks.or_else(|| indexes().map(Vec::len))
    }

    /// The unusable index of an order, in thousandths. `spec: 7.5`
    pub fn unusable_index(&self, order: u8) -> Option<i64> {
        match &self.blocks {
            Some(blocks) if usize::from(order) < blocks.len() => {
                i64::try_from(unusable_index(blocks, Order(order))).ok()
            }
            Some(_) => None,
            None => self
                .unusable
                .as_ref()?
                .get(usize::from(order))
                .map(|&n| n.into()),
        }
    }

    /// The fragmentation index of an order, in thousandths. `spec: 5.2`
    pub fn fragmentation_index(&self, order: u8) -> Option<i64> {
        match &self.blocks {
            Some(blocks) if usize::from(order) < blocks.len() => {
                Some(fragmentation_index(blocks, Order(order)))
            }
            Some(_) => None,
            None => {
                let row = self.fragmentation.as_ref()?;
                row.get(usize::from(order)).map(|&n| n.into())
            }
        }
    }

    /// Percent of free memory outside blocks of `order`. `spec: 5.5`
    pub fn outside(&self, order: u8) -> Option<u64> {
        match &self.blocks {
            Some(blocks) => Some(extfrag_for_order(blocks, Order(order))),
            // Both are the same share, cut off.
            None => u64::try_from(self.unusable_index(order)? / 10).ok(),
        }
    }

    /// Free blocks of `order`, larger ones counted as several.
    pub fn whole_blocks(&self, order: u8) -> Option<u64> {
        let order = usize::from(order);
        let large = self.blocks.as_ref()?.iter().enumerate().skip(order);
        Some(large.map(|(o, &n)| n << (o - order)).sum())
    }
}

/// The files that tell free blocks, as far as they were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreeSources<'a> {
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

/// A row for each populated zone, from the best of the files.
pub fn free_rows(from: &FreeSources) -> Vec<FreeRow> {
    let mut rows = from.buddy.map_or(vec![], of_buddyinfo);
    for typed in from.types.map_or(vec![], of_types) {
        let is_it = |r: &&mut FreeRow| (r.node, &r.zone) == (typed.node, &typed.zone);
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
        let is_it = |r: &&mut FreeRow| (r.node, &r.zone) == (zone.node, &zone.name);
        // New kernels list unpopulated zones as well; of one that is cut off only its free pages may be told.
        let is_populated = zone.pages("present").unwrap_or(zone.free) > 0;
        match rows.iter_mut().find(is_it) {
            Some(_) if is_of_lists => {}
            Some(row) => row.free_pages = Some(zone.free),
            None if is_populated => {
                rows.push(FreeRow {
                    node: zone.node,
                    zone: zone.name.clone(),
                    free_pages: Some(zone.free),
                    ..FreeRow::default()
                });
            }
            None => {}
        }
    }
    if let Some(zones) = from.zones {
        // As zoneinfo lists them, lowest first; those that it lacks stand where they stood.
        let place = |r: &FreeRow| {
            let is_it = |z: &zoneinfo::Zone| (z.node, &z.name) == (r.node, &r.zone);
            zones.zones.iter().position(is_it)
        };
        if rows.iter().all(|r| place(r).is_some()) {
            rows.sort_by_key(place);
        }
    }
    rows
}

fn of_buddyinfo(buddy: &BuddyInfo) -> Vec<FreeRow> {
    let row = |r: &unfrag_linux::procfs::buddyinfo::Row| FreeRow {
        node: r.node,
        zone: r.zone.clone(),
        // Blocks of orders that were left out are free too.
        free_pages: (!r.goes_on).then(|| r.free_pages()),
        blocks: (!r.goes_on).then(|| r.free.clone()),
        beginning: if r.goes_on { r.free.clone() } else { vec![] },
        ..FreeRow::default()
    };
    buddy.zones.iter().map(row).collect()
}

fn of_types(types: &PageTypeInfo) -> Vec<FreeRow> {
    let mut rows: Vec<FreeRow> = vec![];
    for typed in &types.free {
        let is_it = |r: &FreeRow| (r.node, &r.zone) == (typed.node, &typed.zone);
        let at = rows.iter().position(is_it).unwrap_or_else(|| {
            rows.push(FreeRow {
                node: typed.node,
                zone: typed.zone.clone(),
                blocks: Some(vec![]),
                ..FreeRow::default()
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
            .filter(|_| whole::has_all_types(types, row.node, &row.zone));
        row.free_pages = row.blocks.as_deref().map(pages);
    }
    rows
}

fn of_indexes(from: &FreeSources) -> Vec<FreeRow> {
    let unusable = from.unusable.iter().flat_map(|i| &i.zones);
    let extfrag = from.extfrag.iter().flat_map(|i| &i.zones);
    let mut rows: Vec<FreeRow> = vec![];
    for (index, is_unusable) in unusable
        .map(|i| (i, true))
        .chain(extfrag.map(|i| (i, false)))
    {
        let is_it = |r: &FreeRow| (r.node, &r.zone) == (index.node, &index.zone);
        let at = rows.iter().position(is_it).unwrap_or_else(|| {
            rows.push(FreeRow {
                node: index.node,
                zone: index.zone.clone(),
                ..FreeRow::default()
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

/// What is told of zones of which only the first orders are, a clause each.
pub fn beginnings(rows: &[FreeRow]) -> Vec<String> {
    let told = rows.iter().filter(|r| !r.beginning.is_empty());
    told.map(|row| {
        let blocks: Vec<String> = row.beginning.iter().map(u64::to_string).collect();
        format!(
            "node {}, zone {}: free blocks of the first {} orders alone are told ({}); of the others nothing is known",
            row.node,
            row.zone,
            blocks.len(),
            blocks.join(", ")
        )
    })
    .collect()
}

/// Refuses rows with numbers that no kernel has.
///
/// # Errors
/// Names the zone, and the number or how many orders it has.
pub fn check(rows: &[FreeRow]) -> Result<()> {
    for row in rows {
        let place = || format!("node {}, zone {}", row.node, row.zone);
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
