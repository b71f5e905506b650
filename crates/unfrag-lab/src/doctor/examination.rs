//! The examination of a host: from its evidence to a diagnosis.
//!
//! Invariant: each part of the diagnosis is computed once, from the evidence alone; the advice comes last, from all
//! the others.

use super::advice_rules;
use super::atomic;
use super::diagnosis::{Diagnosis, NodeDiagnosis, ZoneDiagnosis};
use super::evidence::Evidence;
use super::examined::Examined;
use super::forecast::{self, Forecast, KernelFeatures};
use super::frames::{BLOCK_FRAMES, ZoneBlocks};
use super::obstacles::obstacles;
use super::proactive::proactive_marks;
use super::slabs;
use super::text;
use super::work;
use super::zones::{self, ZoneFacts};
use crate::era::Era;
use crate::error::Result;
use unfrag::Order;
use unfrag::kernel::{MarkCheck, preset};
use unfrag::stat::{extfrag_for_order, fragmentation_index, unusable_index};

/// Examines a host.
///
/// # Errors
/// If buddyinfo holds numbers that no kernel has, or the release is none.
pub fn examine(e: &Evidence) -> Result<Examined> {
    let era = match e.release.as_deref().filter(|r| !r.is_empty()) {
        Some(release) => Era::of(release)?,
        None => Era::newest(),
    };
    let zones = zones::zones(e)?;
    let kernel = kernel(e, era);
    let flags = e.flags.as_ref().filter(|_| e.zones.is_some());
    let blocks: Vec<ZoneBlocks> = match flags {
        Some(flags) => zones.iter().map(|z| ZoneBlocks::read(z, flags)).collect(),
        None => vec![],
    };
    let mut found: Vec<ZoneDiagnosis> = (0..zones.len())
        .map(|i| zone_diagnosis(e, &zones[i], blocks.get(i), kernel))
        .collect();
    let mut notes = vec![];
    late_memory(e, &zones, &mut found, &mut notes);
    notes.extend(contiguous(e));
    let huge_pages = found
        .iter()
        .fold(Forecast::NONE, |sum, z| sum.plus(z.huge_pages));
    let check = preset(era.preset()).map_or(MarkCheck::BlockExists, |p| p.rules.marks.check);
    let mut nodes: Vec<u32> = zones.iter().map(|z| z.node).collect();
    nodes.dedup();
    let of = |n: u32| {
        zones
            .iter()
            .filter(move |z| z.node == n)
            .collect::<Vec<_>>()
    };
    let atomic = nodes
        .iter()
        .flat_map(|&n| atomic::risks(&of(n), check))
        .collect();
    let obstacles = (!blocks.is_empty()).then(|| obstacles(&blocks, kernel));
    if let Some(size) = e.meminfo.as_ref().and_then(|m| m.get("Hugepagesize"))
        && size != 2048
    {
        notes.push(format!(
            "the default huge page of this host has {size} KiB; all counts here are of 2 MiB blocks"
        ));
    }
    let mut diagnosis = Diagnosis {
        source: e.source.clone(),
        kernel_release: e.release.clone(),
        uptime_seconds: e.uptime,
        nodes: nodes
            .iter()
            .map(|&n| node_diagnosis(e, era, n, &of(n), &found))
            .collect(),
        zones: found,
        huge_pages,
        pcp_fraction: kernel
            .tunes_lists
            .then(|| e.setting("percpu_pagelist_high_fraction").unwrap_or(0)),
        huge_pages_in_pool: e.meminfo.as_ref().and_then(|m| m.get("HugePages_Total")),
        obstacles,
        pinned_pages: pinned(e),
        atomic,
        slabs: slabs::slabs(e),
        work: work::work(e),
        advice: vec![],
        notes,
        unread: e.unread.clone(),
    };
    diagnosis.advice = advice_rules::advice(&diagnosis, e, era);
    Ok(Examined { diagnosis, blocks })
}

fn kernel(e: &Evidence, era: Era) -> KernelFeatures {
    KernelFeatures {
        // Kernels that compact (since 2.6.35) have this counter.
        compacts: e
            .vmstat
            .as_ref()
            .is_none_or(|v| v.get("compact_stall").is_some()),
        by_order: era.is_at_least(6, 10),
        unevictable: e.setting("compact_unevictable_allowed").unwrap_or(1) != 0,
        tunes_lists: era.is_at_least(6, 7),
    }
}

/// A note on contiguous memory areas; `None` if the host has none.
fn contiguous(e: &Evidence) -> Option<String> {
    let total = e.meminfo_pages("CmaTotal").filter(|&n| n > 0)?;
    let free = e.meminfo_pages("CmaFree")?;
    let pinned = pinned(e).map_or(String::new(), |n| {
        format!("; {n} pages of this host are pinned")
    });
    Some(format!(
        "contiguous memory areas (CMA): {} of {} MiB free; an allocation there fails with EBUSY where a page \
         in its range is pinned or being written{pinned}",
        free / 256,
        total / 256
    ))
}

/// Pages pinned by drivers and storage: the kernel counts pins and releases.
fn pinned(e: &Evidence) -> Option<u64> {
    let acquired = e.counter("nr_foll_pin_acquired")?;
    Some(acquired.saturating_sub(e.counter("nr_foll_pin_released")?))
}

fn zone_diagnosis(
    e: &Evidence,
    zone: &ZoneFacts,
    blocks: Option<&ZoneBlocks>,
    kernel: KernelFeatures,
) -> ZoneDiagnosis {
    let (huge_pages, compaction_stops) = match blocks {
        Some(blocks) => forecast::exact(zone, blocks, kernel),
        None => (forecast::bounds(zone, file_pages(e, zone)), None),
    };
    let free = &zone.nr_free;
    let index = |f: &dyn Fn(u8) -> f64| [3, 4, 9].map(|o| (o, f(o) / 1e3)).into();
    let mut z = ZoneDiagnosis {
        node: zone.node,
        zone: zone.name.clone(),
        managed_pages: zone.managed,
        free_pages: zone.free(),
        pcp_pages: zone.pcp,
        watermarks: zone.marks,
        protection_pages: zone.protection,
        free_huge_blocks: free[9] + 2 * free[10],
        extfrag_for_order_9: extfrag_for_order(free, Order::HUGE),
        unusable_index: index(&|o| unusable_index(free, Order(o)) as f64),
        fragmentation_index: index(&|o| fragmentation_index(free, Order(o)) as f64),
        verdict: String::new(),
        huge_pages,
        compaction_stops,
        obstacles: blocks.map(|b| obstacles(std::slice::from_ref(b), kernel)),
        blocks: blocks.map(|b| b.blocks.iter().filter(|b| !b.is_absent()).count() as u64),
    };
    z.verdict = text::verdict(&z);
    z
}

/// Page cache of a zone, as far as the kernel counts it by zone.
fn file_pages(e: &Evidence, zone: &ZoneFacts) -> u64 {
    let info = e.zones.as_ref().and_then(|i| i.zone(zone.node, &zone.name));
    let count = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|n| info?.counters.get(n))
            .unwrap_or(0)
    };
    count(["nr_zone_inactive_file", "nr_inactive_file"])
        + count(["nr_zone_active_file", "nr_active_file"])
}

/// Counts memory of deferred initialisation as free. Some hosts boot with part of their memory outside the zones and
/// add it on demand: meminfo counts it, no zone does. It is free, and in whole pageblocks.
fn late_memory(
    e: &Evidence,
    zones: &[ZoneFacts],
    found: &mut [ZoneDiagnosis],
    notes: &mut Vec<String>,
) {
    let managed = |z: &ZoneFacts| e.zones.as_ref()?.zone(z.node, &z.name)?.pages("managed");
    let all: Option<u64> = zones.iter().map(managed).sum();
    let (Some(total), Some(all)) = (e.meminfo_pages("MemTotal"), all) else {
        return;
    };
    let late = total.saturating_sub(all);
    // A smaller difference is due to files read at different times.
    if late < all / 100 || late < BLOCK_FRAMES as u64 {
        return;
    }
    let present = |z: &ZoneFacts| e.zones.as_ref()?.zone(z.node, &z.name)?.pages("present");
    let room = |z: &ZoneFacts| {
        present(z)
            .unwrap_or(0)
            .saturating_sub(managed(z).unwrap_or(0))
    };
    let Some(at) = (0..zones.len()).max_by_key(|&i| room(&zones[i])) else {
        return;
    };
    if room(&zones[at]) < late {
        return;
    }
    let n = late / BLOCK_FRAMES as u64;
    let f = &mut found[at].huge_pages;
    let more = |x: Option<u64>| x.map(|x| x + n);
    *f = Forecast {
        now: f.now + n,
        after_compaction: more(f.after_compaction),
        after_reclaim: more(f.after_reclaim),
        by_asking_again: more(f.by_asking_again),
        compaction_unhindered: f.compaction_unhindered,
        at_most: f.at_most + n,
    };
    notes.push(format!(
        "MemTotal counts {} MiB that no zone manages yet: this kernel adds them when they are asked for, and \
         they are counted as {n} huge pages of node {}, zone {}",
        late / 256,
        zones[at].node,
        zones[at].name
    ));
}

fn node_diagnosis(
    e: &Evidence,
    era: Era,
    node: u32,
    zones: &[&ZoneFacts],
    found: &[ZoneDiagnosis],
) -> NodeDiagnosis {
    let present = |z: &ZoneFacts| {
        let info = e.zones.as_ref().and_then(|i| i.zone(z.node, &z.name));
        info.and_then(|i| i.pages("present")).unwrap_or(z.free())
    };
    let all: u64 = zones.iter().map(|z| present(z)).sum();
    // The weighted sum over zones. `spec: 5.5`
    let score = zones
        .iter()
        .map(|z| {
            (u128::from(present(z)) * u128::from(extfrag_for_order(&z.nr_free, Order::HUGE))
                / u128::from(all + 1)) as u64
        })
        .sum();
    let of_node = found.iter().filter(|z| z.node == node);
    NodeDiagnosis {
        node,
        score,
        proactive_low_high: e
            .setting("compaction_proactiveness")
            .filter(|p| (1..=100).contains(p))
            .map(|p| proactive_marks(p, era)),
        huge_pages: of_node.fold(Forecast::NONE, |sum, z| sum.plus(z.huge_pages)),
    }
}
