//! The occupancy of the start, placed by another era or in another memory.
//!
//! In a memory of another size, under rules that cannot begin at the recorded state, and where a fresh machine is
//! asked for, the model boots with all of its managed memory free, and allocates again what was in use at the start, by
//! its own rules: the kernel's pages first, then those of users. The simulation keeps which recorded frame each page
//! was. What the host's history did to its memory is lost.

use super::host::ReplayHost;
use super::sim::Sim;
use crate::afford;
use crate::error::{Asked, Error, Remedy, Result};
use crate::replay::start::{Frame, Start, holds};
use unfrag_eras::inspect::BlockView;
use unfrag_eras::kernel::{Rules, Sysctl};
use unfrag_eras::{
    ConfigError, Geometry, Gfp, Manager, Order, Pfn, Request, ZoneConfig, ZoneId, ZoneKind, layout,
};

/// Zones of a machine with `bytes` of memory that is otherwise like the recorded one: its lowest
/// zone is the same, what follows is DMA32 up to 4 GiB and Normal above.
///
/// # Errors
/// If that is no larger than the recorded host's lowest zone, or the host has several nodes.
pub fn resized(zones: &[ZoneConfig], bytes: u64, geometry: Geometry) -> Result<Vec<ZoneConfig>> {
    if let Some(other) = zones.iter().find(|z| z.node != zones[0].node) {
        return Err(Error::option(Asked::Memory, format!(
            "this host has several nodes ({} and {}), and one size does not say how much memory each has",
            zones[0].node.0, other.node.0
        ))
        .remedy(Remedy::Without(Asked::Memory)));
    }
    let frames = bytes >> geometry.page_shift;
    // First frame above 4 GiB.
    let above_dma32 = (4 << 30) >> geometry.page_shift;
    let unmanaged: u64 = zones.iter().skip(1).map(kept).sum();
    let first = zones[0];
    let begin = first.start.0 + first.spanned;
    let least = begin + unmanaged + u64::from(geometry.max_order.frames());
    if frames < least || frames >= u64::from(u32::MAX) {
        return Err(Error::option(
            Asked::Memory,
            format!(
                "{} MiB cannot be; from {} MiB to less than {} are possible",
                bytes >> 20,
                (least << geometry.page_shift).div_ceil(1 << 20),
                crate::report::number::bytes((1 << 32) << geometry.page_shift)
            ),
        ));
    }
    let mut all = vec![first];
    let mut push = |kind, start: u64, end: u64, kept: u64| {
        if start < end {
            let spanned = end - start;
            let managed = spanned.saturating_sub(kept);
            all.push(ZoneConfig {
                managed,
                ..ZoneConfig::whole(first.node, kind, Pfn(start), spanned)
            });
        }
    };
    push(ZoneKind::Dma32, begin, frames.min(above_dma32), unmanaged);
    push(ZoneKind::Normal, above_dma32, frames, 0);
    Ok(all)
}

/// Makes as many pageblocks holes as each zone had, if it is as large as the recorded one: those that the boot left out.
fn mark_holes(m: &mut Manager<'_, ReplayHost>, start: &Start, zones: &[ZoneConfig]) {
    for (id, zone) in m.inspect().zones().zip(zones) {
        let recorded = start.zones.get(id.index());
        if recorded.is_none_or(|z| z.config != *zone) {
            continue;
        }
        let holes = start.holes.iter();
        let number = holes.filter(|&&p| holds(zone, Pfn(p.into()))).count();
        let left_out = |b: &BlockView| b.free == 0 && b.used.iter().all(|n| *n == 0);
        let blocks = m.inspect().blocks(id);
        let mut open: Vec<Pfn> = blocks.filter(|b| left_out(&b.2)).map(|b| b.0).collect();
        // The boot gives memory out from the lowest frame on.
        let from = open.len().saturating_sub(number);
        for pfn in open.drain(from..) {
            let _ = m.lab().edit().hole(pfn.max(zone.start));
        }
    }
}

/// Frames of a zone that are memory, and that the boot keeps from the allocator. Holes are neither.
fn kept(zone: &ZoneConfig) -> u64 {
    zone.present.max(zone.managed) - zone.managed
}

/// A model that boots and allocates what was in use at the start.
///
/// # Errors
/// If the memory is too small for it.
pub fn reboot<'m>(
    start: &Start,
    zones: &[ZoneConfig],
    rules: Rules,
    sysctl: Sysctl,
    recorded_marks: bool,
    memory: &'m mut Vec<u64>,
) -> Result<Sim<'m>> {
    let config = start.config(zones, rules, sysctl);
    let bad = |e: ConfigError| Error::contradiction(format!("these zones cannot be: {e}"));
    let words = layout(&config).map_err(bad)?.words;
    *memory = afford::model(words)?;
    let mut m = Manager::boot(&config, ReplayHost::on(&start.cpus, &rules), memory).map_err(bad)?;
    if recorded_marks {
        for (id, z) in (0..).map(ZoneId).zip(&start.zones) {
            // The zones are the recorded ones, so the marks fit.
            let _ = m.lab().edit().marks(id, z.marks, z.protection);
        }
    }
    let mut names = vec![];
    for (kind, gfp) in [
        (Frame::Pinned, Gfp::KERNEL | Gfp::MEMALLOC),
        (Frame::Movable, Gfp::HIGHUSER_MOVABLE | Gfp::MEMALLOC),
    ] {
        for (i, z) in start.zones.iter().enumerate() {
            let c = z.config;
            let frames = c.start.0..c.start.0 + c.spanned;
            // As many pinned frames as the boot kept from the allocator are not allocated.
            let mut kept = if kind == Frame::Pinned { kept(&c) } else { 0 };
            for pfn in frames.filter(|&p| start.frames[p as usize] == kind) {
                if kept > 0 && !start.freed_later[pfn as usize] {
                    kept -= 1;
                    continue;
                }
                let request = Request::new(Order::ZERO, gfp).near(c.node);
                let zone = ZoneId(i.min(zones.len() - 1) as u8);
                let got = m
                    .lab()
                    .alloc_in_zone(zone, &request)
                    .or_else(|_| m.alloc(&request));
                let at = got.map_err(|_| {
                    Error::option(Asked::Memory, "too small for what was in use at the start")
                        .help("give more memory")
                })?;
                names.push((pfn as u32, at.0 as u32));
            }
        }
    }
    mark_holes(&mut m, start, zones);
    for z in m.inspect().zones() {
        let v = m.inspect().zone(z);
        let facts = start.zones.get(z.index());
        let threshold = facts.map_or(0, |f| f.stat_threshold);
        let free = v.free_pages as i64;
        let _ = m.lab().edit().counters(z, v.highatomic, free, threshold);
    }
    let mut sim = Sim::new(m, start.frames.len() as u32);
    sim.clear_model_frames();
    for (recorded, model) in names {
        sim.set_model_frame(recorded, model);
    }
    Ok(sim)
}
