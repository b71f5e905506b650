//! State of memory at one moment: of the model, and of the recorded kernel.

use super::report::{Sample, ZoneSample};
use crate::error::Result;
use crate::geometry::large_order;
use crate::host::Host;
use crate::replay::model::ReplayHost;
use crate::replay::start::shown::{MOST_PAGES, by_order, within};
use std::collections::BTreeMap;
use unfrag_eras::frame::NR_TYPES;
use unfrag_eras::stat::unusable_index;
use unfrag_eras::{Geometry, Manager, MigrateType, Order};
use unfrag_linux::recording::Snapshot;

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
pub fn of_model(m: &Manager<'_, ReplayHost>, name: &str, seconds: f64) -> Sample {
    let m = m.inspect();
    let geometry = m.geometry();
    let large = large_order(geometry);
    let zones = m
        .zones()
        .map(|z| {
            let v = m.zone(z);
            let free = &v.nr_free[..=geometry.max_order.index()];
            let mut mixed = 0;
            let mut types = [0; NR_TYPES];
            for (_, mt, used) in m.uses(z) {
                let is_of_other =
                    |t: &MigrateType| *t != mt && t.is_ordinary() && used[*t as usize] > 0;
                mixed += u64::from(MigrateType::ALL.iter().any(is_of_other));
                types[mt as usize] += 1;
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
                mixed_pageblocks: Some(mixed),
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
    let named = |e: unfrag_linux::Error| e.help(format!("it is in snapshot `{}`", snap.name));
    let host = Host::recorded(snap).map_err(named)?;
    if host.buddy.is_none() {
        return Ok(None);
    }
    let mut zones = vec![];
    for zone in &host.zones {
        let Some(blocks) = &zone.blocks else { continue };
        let free = by_order(blocks.iter().copied(), MOST_PAGES, || {
            format!("buddyinfo of `{}`, zone {}", snap.name, zone.name)
        })?;
        let free = &free[..=geometry.max_order.index()];
        let managed = zone.told("managed").or(zone.told("present")).unwrap_or(0);
        for pages in [managed, zone.pcp.unwrap_or(0)] {
            within(pages, MOST_PAGES, || {
                format!("zoneinfo of `{}`, zone {}: pages", snap.name, zone.name)
            })?;
        }
        zones.push(ZoneSample {
            node: zone.node,
            zone: zone.name.clone(),
            managed_pages: managed,
            free_pages: zone.free_pages.unwrap_or(0),
            pcp_pages: zone.pcp,
            free_blocks: free.to_vec(),
            unusable_index: unusable(free, large),
            free_huge_blocks: huge_blocks(free, large),
            pageblocks: zone.pageblocks.iter().flatten().cloned().collect(),
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
