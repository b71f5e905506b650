//! The examination of a host: from its evidence to a diagnosis.
//!
//! Invariant: each part of the diagnosis is computed once, from the evidence alone; the advice comes last, from all
//! the others.

use super::advice::Advice;
use super::advice_rules;
use super::atomic::{self, AtomicRisk};
use super::call_sites;
use super::diagnosis::{Diagnosis, NodeDiagnosis, ZoneDiagnosis};
use super::evidence::Evidence;
use super::examined::Examined;
use super::forecast::{self, Forecast, KernelFeatures};
use super::frames::BLOCK_FRAMES;
use super::history;
use super::hugetlb::{self, Pool};
use super::judged_settings;
use super::late_memory;
use super::memory_blocks;
use super::obstacles::obstacles;
use super::proactive::{proactive_marks, score};
use super::room_advice;
use super::shortage;
use super::slabs;
use super::text;
use super::watch::Watch;
use super::withheld;
use super::work;
use super::zone_blocks::ZoneBlocks;
use crate::era::Era;
use crate::error::Result;
use crate::host::amounts::Amounts;
use crate::host::{Host, Unread, Zone, settings};
use crate::report::number::{bytes, free_of};
use std::sync::Arc;
use unfrag_eras::{Rules, preset};
use unfrag_linux::procfs::MemInfo;

/// Examines a host.
///
/// # Errors
/// If the release that was given with the evidence is none.
pub fn examine(e: &Evidence) -> Result<Examined> {
    let host = &e.host;
    let given = host.release.as_deref().filter(|r| !r.is_empty());
    let era = given.map(Era::of).transpose()?;
    let is_assumed = era.is_none();
    let era = era.unwrap_or_else(Era::newest);
    let (zones, geometry) = (&host.zones, &host.geometry);
    let mut unread = host.unread.clone();
    let mut notes = host.of_sizes.clone();
    notes.extend(host.partly.iter().cloned());
    notes.extend(host.contradictions());
    let kernel = kernel(e, era);
    let blocks = page_flags(e, &mut unread);
    let mut found: Vec<ZoneDiagnosis> = (0..zones.len())
        .map(|i| zone_diagnosis(e, &zones[i], blocks.get(i).map(Arc::as_ref), kernel))
        .collect();
    let are_all = late_memory::add(host, &mut found, &mut notes);
    notes.extend(contiguous(e));
    notes.extend(slabs::debugged(e));
    let gaps = host.gaps();
    // Without a zone nothing is known of huge pages.
    let huge_pages = if found.is_empty() {
        Forecast::default()
    } else {
        let all = found.iter().map(|z| z.huge_pages);
        // Of zones that are missing nothing is known.
        let gaps = (!are_all || !gaps.is_empty()).then(Forecast::default);
        all.chain(gaps).fold(Forecast::NONE, Forecast::plus)
    };
    let mut nodes: Vec<u32> = zones.iter().map(|z| z.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let of = |n: u32| {
        let of_node = zones.iter().filter(move |z| z.node == n);
        of_node.collect::<Vec<_>>()
    };
    let atomic = nodes
        .iter()
        .flat_map(|&n| risks(&of(n), !gaps.contains(&n), era, is_assumed))
        .collect();
    let obstacles = (!blocks.is_empty()).then(|| obstacles(blocks.iter().map(Arc::as_ref), kernel));
    if is_assumed && !zones.is_empty() {
        notes.push(format!(
            "no file tells the kernel's release: the rules of {} are assumed; give --release RELEASE",
            era.preset()
        ));
    }
    unread.extend(settings::unread(&host.settings));
    notes.extend(e.nodes.iter().filter_map(node_amounts));
    notes.extend(zones.iter().filter_map(Zone::beginning_alone));
    let default = hugetlb::by_meminfo(host);
    let pools = hugetlb::known(&e.pools, &default);
    notes.extend(pools.filter_map(Pool::contradiction));
    let watch = Watch::new(e);
    let pins = withheld::pins(host);
    let unpluggable = e.memory_blocks.as_ref().and_then(|memory| {
        let zones = blocks.iter().map(Arc::as_ref);
        memory_blocks::unpluggable(memory, geometry.page_size, zones)
    });
    let mut diagnosis = Diagnosis {
        source: e.source.clone(),
        kernel_release: host.release.clone(),
        kernel_rules: era.preset(),
        kernel_rules_assumed: is_assumed,
        page_size: geometry.page_size,
        page_size_from: geometry.page_size_from,
        huge_page_bytes: geometry.huge_page_bytes(),
        huge_order: geometry.huge_order,
        default_huge_page_bytes: geometry.default_huge_page,
        reclaimable_bytes: reclaimable(host),
        memory: Amounts::of(host),
        reclaimable_slab_bytes: host.meminfo_bytes("SReclaimable"),
        uptime_seconds: e.uptime,
        nodes: nodes
            .iter()
            .map(|&n| node_diagnosis(e, era, (n, !gaps.contains(&n)), &of(n), &found))
            .collect(),
        zones: found,
        huge_pages,
        empties_pcp_lists: kernel.tunes_lists,
        pcp_fraction: e
            .setting("percpu_pagelist_high_fraction")
            .filter(|_| kernel.tunes_lists),
        huge_pages_in_pool: host.meminfo.as_ref().and_then(|m| m.get("HugePages_Total")),
        obstacles,
        pinned_pages: e.pinned(),
        atomic,
        slabs: slabs::slabs(e, geometry.page_size),
        call_sites: call_sites::call_sites(e),
        work: work::work(e),
        watched: watch.watched(),
        history: vec![],
        advice: vec![],
        candidates: vec![],
        withdrawn: vec![],
        if_more_is_needed: vec![],
        withheld: withheld::withheld(e, &pins, unpluggable.as_ref()),
        pins,
        pools: e.pools.clone(),
        memory_blocks: unpluggable,
        features: e.features.clone(),
        settings: host.settings.clone(),
        judged_settings: vec![],
        advice_lacks: lacks(e),
        notes,
        unread,
    };
    diagnosis.history = history::history(&diagnosis.work, &watch);
    let ruling = advice_rules::rule(&diagnosis, e, era, &watch);
    let advised = |a: &Advice| ruling.advice.iter().any(|b| a.command == b.command);
    let more = room_advice::shrink(&diagnosis, e).filter(|a| !advised(a));
    diagnosis.if_more_is_needed = more.into_iter().collect();
    diagnosis.advice = ruling.advice;
    diagnosis.candidates = ruling.candidates;
    diagnosis.withdrawn = ruling.withdrawn;
    diagnosis.judged_settings = judged_settings::judged(&diagnosis);
    Ok(Examined { diagnosis, blocks })
}

/// What advice is made from, as far as it was not seen.
fn lacks(e: &Evidence) -> Vec<&'static str> {
    let all = [
        (e.host.zoneinfo.is_none(), "watermarks (zoneinfo)"),
        (!e.has_sysctls(), "settings (sysctls of vm)"),
        (e.vmstat.is_none(), "stalls and failures so far (vmstat)"),
    ];
    let lacking = all.into_iter().filter(|(is_lacking, _)| *is_lacking);
    lacking.map(|(_, what)| what).collect()
}

/// What holds each pageblock of each zone; empty where page flags or zoneinfo are missing, or where they cannot be read
/// for blocks of this size.
fn page_flags(e: &Evidence, unread: &mut Vec<Unread>) -> Vec<Arc<ZoneBlocks>> {
    let Some(blocks) = e.blocks.clone().filter(|_| e.host.zoneinfo.is_some()) else {
        return vec![];
    };
    let geometry = &e.host.geometry;
    if geometry.huge_page_pages() != BLOCK_FRAMES as u64 {
        unread.push(Unread {
            file: "kpageflags".into(),
            why: format!(
                "read for huge pages of {BLOCK_FRAMES} pages alone, and these have {}: what stands in the way, and the forecast not known",
                geometry.huge_page_pages()
            ),
        });
        return vec![];
    }
    blocks
}

/// The risks of a node, with the verdict of old kernels where the release is not known and theirs is another.
fn risks(zones: &[&Zone], are_all: bool, era: Era, is_assumed: bool) -> Vec<AtomicRisk> {
    let rules = |name: &str| -> Option<&'static Rules> { Some(&preset(name)?.rules) };
    let Some(by_era) = rules(era.preset()) else {
        return vec![];
    };
    let mut risks = atomic::risks(zones, are_all, by_era);
    if let Some(old) = rules("2.6.36").filter(|_| is_assumed) {
        for (risk, old) in risks.iter_mut().zip(atomic::risks(zones, are_all, old)) {
            risk.verdict_to_4_3 = (old.verdict != risk.verdict).then_some(old.verdict);
        }
    }
    risks
}

/// Page cache and reclaimable slab by meminfo, in bytes; `None` if it lacks a part of them.
fn reclaimable(host: &Host) -> Option<u64> {
    let cache = host
        .meminfo_bytes("Cached")?
        .saturating_add(host.meminfo_bytes("Buffers")?);
    let slab = host.meminfo_bytes("SReclaimable")?;
    // Shared memory is counted as cache, and goes to swap alone. It stands before slab, but in kernels before 2.6.32.
    let shared = host.meminfo_bytes("Shmem").unwrap_or(0);
    Some(cache.saturating_sub(shared).saturating_add(slab))
}

pub(super) fn kernel(e: &Evidence, era: Era) -> KernelFeatures {
    KernelFeatures {
        compacts: e.compacts(),
        by_order: era.is_at_least(6, 10),
        unevictable: e.setting("compact_unevictable_allowed").unwrap_or(1) != 0,
        tunes_lists: era.is_at_least(6, 7),
    }
}

/// What a node has, by its own `meminfo`.
fn node_amounts((node, meminfo): &(u32, MemInfo)) -> Option<String> {
    let size = |name: &str| Some(meminfo.get(name)?.saturating_mul(1024));
    Some(format!(
        "node {node}: {}, by its meminfo",
        free_of(size("MemFree")?, size("MemTotal")?)
    ))
}

/// A note on contiguous memory areas; `None` if the host has none, or no file tells.
fn contiguous(e: &Evidence) -> Option<String> {
    let Host {
        zones, geometry, ..
    } = &e.host;
    let of_zones: Option<u64> = zones.iter().map(|z| z.cma_pages).sum();
    let total = e.host.meminfo_bytes("CmaTotal");
    let free = e
        .host
        .meminfo_bytes("CmaFree")
        .or_else(|| Some(of_zones?.saturating_mul(geometry.page_size)));
    let Some(free) = free else {
        let total = total.filter(|&n| n > 0)?;
        return Some(format!(
            "contiguous memory areas (CMA) have {}; how much of that is free is not told",
            bytes(total)
        ));
    };
    // Areas that the kernel does not count in the total are there all the same.
    let Some(total) = total.filter(|&total| total > 0 && free <= total) else {
        return uncounted_areas(&e.host, free);
    };
    let pinned = e.pinned().map_or(String::new(), |n| {
        format!("; {n} pages of this host are pinned")
    });
    Some(format!(
        "contiguous memory areas (CMA): {} of {} MiB free; an allocation there fails with EBUSY where a page \
         in its range is pinned or being written{pinned}",
        free >> 20,
        total >> 20
    ))
}

/// A note on contiguous memory areas whose size no file tells; `None` if nothing in them is free.
fn uncounted_areas(host: &Host, free: u64) -> Option<String> {
    if free == 0 {
        return None;
    }
    let all: Option<u64> = host.zones.iter().map(|z| z.free_pages).sum();
    let all = all.map(|pages| pages.saturating_mul(host.geometry.page_size));
    let of = all.filter(|&all| all > free).map_or(String::new(), |all| {
        format!(
            " of {}; {} are left for such memory",
            bytes(all),
            bytes(all - free)
        )
    });
    let handed_over = host.meminfo_bytes("CmaTotal").map_or("", |_| {
        "; CmaTotal does not count them, as where a kexec handover reserved memory (kho=) and gave it back as CMA"
    });
    Some(format!(
        "contiguous memory areas (CMA) hold {} of what is free, closed to memory that stays pinned (VFIO, RDMA, encrypted guests){of}{handed_over}",
        bytes(free)
    ))
}

/// Pageblocks of a zone. Page flags alone make them fewer or more from one moment to the next: whole blocks without a flag,
/// as on per-CPU lists, look like holes.
fn pageblocks(e: &Evidence, zone: &Zone, by_flags: &ZoneBlocks) -> u64 {
    let order = e.host.types.as_ref().map(|t| t.pageblock_order);
    let counted = zone.pageblocks_where(|_| true);
    counted
        .filter(|&n| n > 0 && order == Some(u32::from(zone.huge_order)))
        .unwrap_or_else(|| by_flags.blocks.iter().filter(|b| !b.is_absent()).count() as u64)
}

fn zone_diagnosis(
    e: &Evidence,
    zone: &Zone,
    blocks: Option<&ZoneBlocks>,
    kernel: KernelFeatures,
) -> ZoneDiagnosis {
    let (huge_pages, compaction_stops) = match blocks {
        Some(blocks) => forecast::exact(zone, blocks, kernel),
        None => (forecast::bounds(zone), None),
    };
    let index = |f: &dyn Fn(u8) -> Option<i64>| {
        let each = [3, 4, zone.huge_order].into_iter();
        each.filter_map(|o| Some((o, f(o)? as f64 / 1e3))).collect()
    };
    let below = shortage::below(zone);
    let mut z = ZoneDiagnosis {
        node: zone.node,
        zone: zone.name.clone(),
        managed_pages: zone.managed,
        free_pages: zone.free_pages,
        pcp_pages: zone.pcp,
        watermarks: zone.marks,
        below,
        protection_pages: zone.protection,
        filled_by_slab_pages: shortage::filled_by_slab(&e.host, zone),
        free_huge_blocks: zone.whole_blocks(zone.huge_order),
        highatomic_huge_blocks: zone.highatomic_huge(),
        largest_free_order: zone
            .blocks
            .as_ref()
            .and_then(|b| u8::try_from(b.iter().rposition(|&n| n > 0)?).ok()),
        extfrag_for_order_9: zone.outside(zone.huge_order),
        unusable_index: index(&|o| zone.unusable_index(o)),
        fragmentation_index: index(&|o| zone.fragmentation_index(o)),
        verdict: String::new(),
        huge_pages,
        compaction_stops,
        obstacles: blocks.map(|b| obstacles(std::iter::once(b), kernel)),
        blocks: blocks.map(|b| pageblocks(e, zone, b)),
    };
    z.verdict = text::verdict(&z, &e.host.geometry);
    z
}

fn node_diagnosis(
    e: &Evidence,
    era: Era,
    (node, are_all): (u32, bool),
    zones: &[&Zone],
    found: &[ZoneDiagnosis],
) -> NodeDiagnosis {
    let score = score(zones.iter().copied(), e.host.geometry.huge_order);
    let of_node = found.iter().filter(|z| z.node == node);
    let gap = (!are_all).then(Forecast::default);
    NodeDiagnosis {
        node,
        score: score.filter(|_| are_all),
        proactive_low_high: e
            .setting("compaction_proactiveness")
            .filter(|p| (1..=100).contains(p))
            .map(|p| proactive_marks(p, era)),
        huge_pages: of_node
            .map(|z| z.huge_pages)
            .chain(gap)
            .fold(Forecast::NONE, Forecast::plus),
    }
}
