//! State of memory at one moment: of the model, and of the recorded kernel.

use super::report::{Sample, ZoneSample};
use crate::error::Result;
use crate::geometry::large_order;
use crate::replay::model::ReplayHost;
use crate::replay::start::shown::{MOST_PAGES, by_order, within};
use std::collections::BTreeMap;
use unfrag::frame::NR_TYPES;
use unfrag::inspect::BlockView;
use unfrag::stat::unusable_index;
use unfrag::{Geometry, Manager, MigrateType, Order, Pfn};
use unfrag_linux::procfs::buddyinfo::BuddyInfo;
use unfrag_linux::procfs::pagetypeinfo::PageTypeInfo;
use unfrag_linux::procfs::zoneinfo::ZoneInfo;
use unfrag_linux::recording::Snapshot;

/// A pageblock: first frame, type and content.
pub type ModelBlock = (Pfn, MigrateType, BlockView);

/// The unusable index at the orders that are reported, 0 to 1.
fn unusable(free: &[u64], large: u8) -> BTreeMap<String, f64> {
    [3u8, large]
        .into_iter()
        .map(|o| (o.to_string(), exact_unusable(free, o)))
        .collect()
}

/// The index without the rounding of debugfs.
pub fn exact_unusable(free: &[u64], order: u8) -> f64 {
    let pages = |from: u8| -> u64 {
        free.iter()
            .enumerate()
            .skip(from.into())
            .map(|(o, n)| n << o)
            .sum()
    };
    match pages(0) {
        0 => unusable_index(free, Order(order)) as f64 / 1000.0,
        all => (all - pages(order)) as f64 / all as f64,
    }
}

fn huge_blocks(free: &[u64], large: u8) -> u64 {
    let all = free.iter().enumerate().skip(large.into());
    all.map(|(order, n)| n << (order - usize::from(large)))
        .fold(0, u64::saturating_add)
}

/// The model's state.
pub fn of_model(
    m: &Manager<'_, ReplayHost>,
    blocks: &[Vec<ModelBlock>],
    name: &str,
    seconds: f64,
) -> Sample {
    let m = m.inspect();
    let geometry = m.geometry();
    let large = large_order(geometry);
    let zones = m
        .zones()
        .zip(blocks)
        .map(|(z, blocks)| {
            let v = m.zone(z);
            let free = &v.nr_free[..=geometry.max_order.index()];
            let mixed = blocks
                .iter()
                .filter(|(_, mt, b)| {
                    MigrateType::ALL
                        .iter()
                        .any(|t| *t != *mt && t.is_ordinary() && b.used[*t as usize] > 0)
                })
                .count();
            let mut types = [0; NR_TYPES];
            for (_, mt, _) in blocks {
                types[*mt as usize] += 1;
            }
            ZoneSample {
                node: v.config.node.0.into(),
                zone: v.config.kind.name().into(),
                managed_pages: v.config.managed,
                free_pages: v.free_pages,
                pcp_pages: Some(m.pcp_pages(z)),
                free_blocks: free.to_vec(),
                unusable_index: unusable(free, large),
                free_huge_blocks: huge_blocks(free, large),
                pageblocks: MigrateType::ALL
                    .into_iter()
                    .filter(|&t| types[t as usize] > 0 || t.is_ordinary())
                    .map(|t| (t.name().to_string(), types[t as usize]))
                    .collect(),
                mixed_pageblocks: Some(mixed as u64),
                spread: None,
            }
        })
        .collect();
    Sample {
        name: name.into(),
        seconds,
        zones,
    }
}

/// The recorded kernel's state, as a snapshot shows it.
///
/// # Errors
/// If its files cannot be read.
pub fn of_snapshot(snap: &Snapshot, seconds: f64, geometry: Geometry) -> Result<Option<Sample>> {
    let large = large_order(geometry);
    let Some(buddy) = snap.file("buddyinfo") else {
        return Ok(None);
    };
    let named = |e: unfrag_linux::Error| e.help(format!("it is in snapshot `{}`", snap.name));
    let buddy = BuddyInfo::parse(buddy).map_err(named)?;
    let zoneinfo = snap
        .file("zoneinfo")
        .map(ZoneInfo::parse)
        .transpose()
        .map_err(named)?;
    let types = snap
        .file("pagetypeinfo")
        .map(PageTypeInfo::parse)
        .transpose()
        .map_err(named)?;
    let mut zones = vec![];
    for row in &buddy.zones {
        let free = by_order(row.free.iter().copied(), MOST_PAGES, || {
            format!("buddyinfo of `{}`, zone {}", snap.name, row.zone)
        })?;
        let free = &free[..=geometry.max_order.index()];
        let info = zoneinfo.as_ref().and_then(|i| i.zone(row.node, &row.zone));
        let sets = info.and_then(|i| i.pagesets.as_ref());
        let pageblocks = types.as_ref().map_or_else(BTreeMap::new, |t| {
            let of = |name: &String| Some((name.clone(), t.blocks.get(row.node, &row.zone, name)?));
            t.blocks.migratetypes.iter().filter_map(of).collect()
        });
        let managed = info.and_then(|i| i.pages("managed").or(i.pages("present")));
        let counts = sets.iter().flat_map(|s| s.iter());
        let counts = counts.filter_map(|p| p.fields.get("count"));
        let on_lists = counts.fold(0, u64::saturating_add);
        for pages in [managed.unwrap_or(0), on_lists] {
            within(pages, MOST_PAGES, || {
                format!("zoneinfo of `{}`, zone {}: pages", snap.name, row.zone)
            })?;
        }
        zones.push(ZoneSample {
            node: row.node,
            zone: row.zone.clone(),
            managed_pages: managed.unwrap_or(0),
            free_pages: row.free_pages(),
            pcp_pages: sets.map(|_| on_lists),
            free_blocks: free.to_vec(),
            unusable_index: unusable(free, large),
            free_huge_blocks: huge_blocks(free, large),
            pageblocks,
            mixed_pageblocks: None,
            spread: None,
        });
    }
    Ok(Some(Sample {
        name: snap.name.clone(),
        seconds,
        zones,
    }))
}
