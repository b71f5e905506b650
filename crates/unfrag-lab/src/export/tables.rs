//! Files that the model computes wholly: free blocks, pageblocks, and the fragmentation indexes.

use super::zones::{ProcfsZone, zones};
use unfrag_eras::host::Host;
use unfrag_eras::inspect::ZoneView;
use unfrag_eras::kernel::{Placement, Reserve};
use unfrag_eras::stat::{fragmentation_index, unusable_index};
use unfrag_eras::{Manager, MigrateType, Order, V19_TYPES, ZoneId, v19_type_name};
use unfrag_linux::procfs::buddyinfo::Row;
use unfrag_linux::procfs::pagetypeinfo::{BlockRow, BlockTable, Count, FreeRow};
use unfrag_linux::procfs::{BuddyInfo, ExtfragIndex, IndexRow, PageTypeInfo, UnusableIndex};

/// `/proc/buddyinfo`.
pub fn buddyinfo<H: Host>(m: &Manager<'_, H>) -> BuddyInfo {
    let row = |(_, v): (ZoneId, ZoneView)| Row {
        node: v.node(),
        zone: v.name(),
        free: orders(m).map(|o| v.nr_free[o.index()]).collect(),
        goes_on: false,
    };
    BuddyInfo {
        zones: zones(m).map(row).collect(),
        ..BuddyInfo::default()
    }
}

/// `/proc/pagetypeinfo`, with the types that the model's kernel has. `contiguous` says whether the
/// recorded kernel was built with contiguous memory areas.
pub fn pagetypeinfo<H: Host>(m: &Manager<'_, H>, contiguous: bool) -> PageTypeInfo {
    let types = types(m, contiguous);
    // Kernels since 5.5 cap the count. Of the eras modelled, those with a high-atomic reserve do.
    let capped = matches!(m.inspect().rules().reserve(), Reserve::HighAtomic(_));
    let count = |blocks: u64| match capped {
        true => Count::with_cap(blocks),
        false => Count {
            blocks,
            capped: false,
        },
    };
    let mut free = vec![];
    let mut rows = vec![];
    for (z, v) in zones(m) {
        for (mt, name) in &types {
            free.push(FreeRow {
                node: v.node(),
                zone: v.name(),
                migratetype: (*name).to_owned(),
                counts: orders(m)
                    .map(|o| count(m.inspect().free_list_len(z, o, *mt)))
                    .collect(),
            });
        }
        let by_type = m.inspect().blocks_by_type(z);
        rows.push(BlockRow {
            node: v.node(),
            zone: v.name(),
            blocks: types.iter().map(|(mt, _)| by_type[*mt as usize]).collect(),
        });
    }
    let pages = u64::from(m.inspect().block_pages());
    PageTypeInfo {
        pageblock_order: pages.ilog2(),
        pages_per_block: pages,
        orders: orders(m).map(|o| o.0.into()).collect(),
        free,
        blocks: BlockTable {
            migratetypes: types.iter().map(|(_, name)| (*name).to_owned()).collect(),
            rows,
        },
        mixed: None,
        ..PageTypeInfo::default()
    }
}

/// The types that the model's kernel has, in its order and by its names.
fn types<H: Host>(m: &Manager<'_, H>, contiguous: bool) -> Vec<(MigrateType, &'static str)> {
    use MigrateType::{
        Cma, HighAtomic, Isolate, Movable, Reclaimable, Reserve as ReserveType, Unmovable,
    };
    let rules = m.inspect().rules();
    let named = |types: &[MigrateType]| -> Vec<(MigrateType, &'static str)> {
        types.iter().map(|&t| (t, t.name())).collect()
    };
    match &rules.placement {
        Placement::Ungrouped => named(&[Unmovable]),
        Placement::V19 => V19_TYPES.iter().map(|&t| (t, v19_type_name(t))).collect(),
        Placement::Pageblocks(p) if p.reclaimable_is_type_1 => {
            named(&[Unmovable, Reclaimable, Movable, ReserveType, Isolate])
        }
        Placement::Pageblocks(_) if contiguous => {
            named(&[Unmovable, Movable, Reclaimable, HighAtomic, Cma, Isolate])
        }
        Placement::Pageblocks(_) => named(&[Unmovable, Movable, Reclaimable, HighAtomic, Isolate]),
    }
}

/// The orders that the model's kernel has.
fn orders<H: Host>(m: &Manager<'_, H>) -> impl Iterator<Item = Order> + use<H> {
    m.inspect().geometry().orders()
}

/// debugfs' `extfrag/unusable_index`.
pub fn unusable<H: Host>(m: &Manager<'_, H>) -> UnusableIndex {
    UnusableIndex {
        zones: index_rows(m, |free, order| unusable_index(free, order) as i32),
        ..UnusableIndex::default()
    }
}

/// debugfs' `extfrag/extfrag_index`.
pub fn extfrag<H: Host>(m: &Manager<'_, H>) -> ExtfragIndex {
    ExtfragIndex {
        zones: index_rows(m, |free, order| fragmentation_index(free, order) as i32),
        ..ExtfragIndex::default()
    }
}

fn index_rows<H: Host>(m: &Manager<'_, H>, index: impl Fn(&[u64], Order) -> i32) -> Vec<IndexRow> {
    zones(m)
        .map(|(_, v)| {
            let free = &v.nr_free[..=m.inspect().geometry().max_order.index()];
            IndexRow {
                node: v.node(),
                zone: v.name(),
                thousandths: orders(m).map(|o| index(free, o)).collect(),
            }
        })
        .collect()
}
