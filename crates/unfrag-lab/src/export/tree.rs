//! The files of one moment: the model's values where it has them, the recorded ones elsewhere.
//!
//! Invariant: each field that is written is added to the [`Provenance`] with its source.

use super::provenance::{FILE as PROVENANCE, Provenance, Source};
use super::tables;
use super::zones::{ProcfsZone, zones};
use unfrag_eras::host::Host;
use unfrag_eras::inspect::ZoneView;
use unfrag_eras::kernel::Pcp;
use unfrag_eras::{CpuId, Manager, ZoneId, ZoneKind};
use unfrag_linux::procfs::zoneinfo::{Layout, Pageset, Zone};
use unfrag_linux::procfs::{Counters, MemInfo, PageTypeInfo, VmStat, ZoneInfo};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::{Error, Result};

/// Files by name, with their content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub Vec<(&'static str, Vec<u8>)>);

/// KiB in a page.
const PAGE_KIB: u64 = 4;

/// The files that show the state of `m`; what the model does not compute is what `snap` recorded. `cpus` are the numbers of
/// its CPUs on the recorded host.
///
/// # Errors
/// If a recorded file is not what a kernel writes; names it and the snapshot.
pub fn tree<H: Host>(
    kernel: &str,
    snap: &Snapshot,
    m: &Manager<'_, H>,
    cpus: &[u32],
) -> Result<Tree> {
    let mut provenance = Provenance::default();
    let mut files: Vec<(&'static str, Vec<u8>)> = vec![];
    let recorded = |name: &'static str| snap.file(name);
    let named =
        |name: &'static str| move |e: Error| e.in_file(format!("{}/{name}", snap.name).as_ref());
    provenance.add("buddyinfo", "*", Source::Model);
    files.push(("buddyinfo", tables::buddyinfo(m).write().into()));

    provenance.add("pagetypeinfo", "*", Source::Model);
    let types = recorded("pagetypeinfo")
        .map(PageTypeInfo::parse)
        .transpose();
    let types = types.map_err(named("pagetypeinfo"))?;
    let contiguous = types.is_some_and(|t| t.blocks.migratetypes.iter().any(|t| t == "CMA"));
    files.push((
        "pagetypeinfo",
        tables::pagetypeinfo(m, contiguous).write().into(),
    ));

    let zoneinfo = recorded("zoneinfo").map(ZoneInfo::parse).transpose();
    let zoneinfo = zoneinfo.map_err(named("zoneinfo"))?.unwrap_or_default();
    let managed_before = managed(&zoneinfo);
    files.push((
        "zoneinfo",
        fill_zones(zoneinfo, m, cpus, &mut provenance)
            .write()
            .into(),
    ));

    match recorded("vmstat") {
        Some(text) => {
            let mut vmstat = VmStat::parse(text).map_err(named("vmstat"))?;
            fill_vmstat(&mut vmstat, m, &mut provenance);
            files.push(("vmstat", vmstat.write().into()));
        }
        None => provenance.add("vmstat", "*", Source::Absent),
    }
    match recorded("slabinfo") {
        Some(text) => {
            provenance.add("slabinfo", "*", Source::Recorded);
            files.push(("slabinfo", text.to_vec()));
        }
        None => provenance.add("slabinfo", "*", Source::Absent),
    }
    match recorded("meminfo") {
        Some(text) => {
            let mut meminfo = MemInfo::parse(text).map_err(named("meminfo"))?;
            fill_meminfo(&mut meminfo, m, managed_before, &mut provenance);
            files.push(("meminfo", meminfo.write().into()));
        }
        None => provenance.add("meminfo", "*", Source::Absent),
    }
    provenance.add("extfrag_index", "*", Source::Model);
    files.push(("extfrag_index", tables::extfrag(m).write().into()));
    provenance.add("unusable_index", "*", Source::Model);
    files.push(("unusable_index", tables::unusable(m).write().into()));
    files.push((PROVENANCE, provenance.write(kernel, &snap.name).into()));
    Ok(Tree(files))
}

/// Pages that all zones manage.
fn managed(zoneinfo: &ZoneInfo) -> u64 {
    let of = |z: &Zone| z.pages("managed").or_else(|| z.pages("present"));
    zoneinfo
        .zones
        .iter()
        .filter_map(of)
        .fold(0, u64::saturating_add)
}

/// The recorded zones with the model's state in them.
fn fill_zones<H: Host>(
    mut info: ZoneInfo,
    m: &Manager<'_, H>,
    cpus: &[u32],
    provenance: &mut Provenance,
) -> ZoneInfo {
    for zone in &mut info.zones {
        let ours = zones(m).any(|(_, v)| (v.node(), v.name()) == (zone.node, zone.name.clone()));
        if !ours && zone.pagesets.is_some() {
            clear(zone);
        }
    }
    for (z, view) in zones(m) {
        let same = |o: &Zone| (o.node, &o.name) == (view.node(), &view.name());
        let at = info.zones.iter().position(same).unwrap_or_else(|| {
            info.zones.push(Zone {
                node: view.node(),
                name: view.name(),
                ..Zone::default()
            });
            info.zones.len() - 1
        });
        let kinds: Vec<Option<ZoneKind>> = info
            .zones
            .iter()
            .filter(|o| o.node == view.node())
            .map(|o| ZoneKind::from_name(&o.name))
            .collect();
        let zone = &mut info.zones[at];
        fill_zone(zone, &kinds, z, &view, m, cpus, provenance);
    }
    info
}

/// Clears a recorded zone that the model does not have: the kernel shows a zone without memory so.
fn clear(zone: &mut Zone) {
    zone.free = 0;
    zone.pages.0.iter_mut().for_each(|(_, v)| *v = 0);
    zone.protection.fill(0);
    zone.counters = Counters::default();
    zone.pagesets = None;
    zone.last = Counters::default();
}

fn fill_zone<H: Host>(
    zone: &mut Zone,
    kinds: &[Option<ZoneKind>],
    z: ZoneId,
    view: &ZoneView,
    m: &Manager<'_, H>,
    cpus: &[u32],
    provenance: &mut Provenance,
) {
    const FILE: &str = "zoneinfo";
    let marks = &view.marks;
    let computed = [
        ("boost", marks.boost),
        ("min", marks.min + marks.boost),
        ("low", marks.low + marks.boost),
        ("high", marks.high + marks.boost),
        ("promo", marks.promo + marks.boost),
        ("spanned", view.config.spanned),
        ("present", view.config.present),
        ("managed", view.config.managed),
    ];
    let fresh = zone.pages.0.is_empty();
    zone.free = view.free_pages;
    provenance.add(FILE, "free", Source::Model);
    for (name, value) in computed {
        // A recorded kernel without the field would not show it.
        if zone.pages(name).is_some() || (fresh && name != "promo") {
            zone.pages.set(name, value);
        }
    }
    list(&zone.pages, &computed.map(|(n, _)| n), provenance);
    if zone.protection.is_empty() {
        zone.protection = vec![0; kinds.len()];
    }
    for (pages, kind) in zone.protection.iter_mut().zip(kinds) {
        if let Some(kind) = kind {
            *pages = view.protection[*kind as usize];
        }
    }
    provenance.add(FILE, "protection", Source::Model);
    zone.counters.set("nr_free_pages", view.free_pages);
    list(&zone.counters, &["nr_free_pages"], provenance);
    fill_pagesets(zone, z, m, cpus, provenance);
    zone.last.set("start_pfn", view.config.start.0);
    list(&zone.last, &["start_pfn"], provenance);
    if let Some(per_node) = &zone.per_node {
        list(per_node, &[], provenance);
    }
}

fn fill_pagesets<H: Host>(
    zone: &mut Zone,
    z: ZoneId,
    m: &Manager<'_, H>,
    cpus: &[u32],
    provenance: &mut Provenance,
) {
    let m = m.inspect();
    const FILE: &str = "zoneinfo";
    let tuned = matches!(m.rules().pcp, Pcp::Orders { tuned: Some(_) });
    let recorded = zone.pagesets.take().unwrap_or_default();
    let threshold = recorded.iter().find_map(|s| s.stat_threshold);
    if tuned {
        zone.layout.pageset_width = Layout::LINUX_6_18.pageset_width;
    }
    let sets = m.cpus().map(|cpu: CpuId| {
        let view = m.set(z, cpu);
        let positive = |n: i32| u64::try_from(n).unwrap_or(0);
        let mut fields = Counters::default();
        fields.push("count", positive(view.count));
        fields.push("high", positive(view.high));
        fields.push("batch", positive(view.batch));
        if tuned {
            fields.push("high_min", positive(view.high_min));
            fields.push("high_max", positive(view.high_max));
        }
        list(
            &fields,
            &["count", "high", "batch", "high_min", "high_max"],
            provenance,
        );
        Pageset {
            cpu: cpus.get(cpu.0 as usize).copied().unwrap_or(cpu.0),
            fields,
            stat_threshold: threshold,
        }
    });
    zone.pagesets = Some(sets.collect());
    if threshold.is_some() {
        provenance.add(FILE, "vm stats threshold", Source::Recorded);
    }
}

/// Lists the fields of a part of zoneinfo: those that the model computed, and the others.
fn list(counters: &Counters, computed: &[&str], provenance: &mut Provenance) {
    for (name, _) in counters.iter() {
        let source = match computed.contains(&name) {
            true => Source::Model,
            false => Source::Recorded,
        };
        provenance.add("zoneinfo", name, source);
    }
}

fn free_pages<H: Host>(m: &Manager<'_, H>) -> u64 {
    zones(m).map(|(_, v)| v.free_pages).sum()
}

fn fill_vmstat<H: Host>(vmstat: &mut VmStat, m: &Manager<'_, H>, provenance: &mut Provenance) {
    vmstat.counters.set("nr_free_pages", free_pages(m));
    for (name, _) in vmstat.counters.iter() {
        let source = match name {
            "nr_free_pages" => Source::Model,
            _ => Source::Recorded,
        };
        provenance.add("vmstat", name, source);
    }
}

fn fill_meminfo<H: Host>(
    meminfo: &mut MemInfo,
    m: &Manager<'_, H>,
    managed_before: u64,
    provenance: &mut Provenance,
) {
    let managed: u64 = zones(m).map(|(_, v)| v.config.managed).sum();
    for line in &mut meminfo.lines {
        let source = match line.name.as_str() {
            "MemTotal" => {
                let grown = line.value.saturating_add(managed * PAGE_KIB);
                line.value = grown.saturating_sub(managed_before.saturating_mul(PAGE_KIB));
                Source::Model
            }
            "MemFree" => {
                line.value = free_pages(m) * PAGE_KIB;
                Source::Model
            }
            _ => Source::Recorded,
        };
        provenance.add("meminfo", &line.name, source);
    }
}

#[cfg(test)]
mod tests;
