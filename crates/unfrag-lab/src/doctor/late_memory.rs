//! Memory that meminfo counts and no zone manages.
//!
//! Some hosts boot with part of their memory outside the zones and add it on demand, in whole pageblocks: MemTotal and
//! MemFree count it, no zone does. Zones that are missing from a text look alike, so the memory counts only where each file
//! that tells of it agrees.
//!
//! Invariant: no more is counted as free than MemFree has beyond the zones, nor than the zone has room for.

use super::diagnosis::ZoneDiagnosis;
use super::evidence::Evidence;
use super::forecast::Forecast;
use super::zones::ZoneFacts;
use crate::geometry::Geometry;
use crate::inspect::whole;
use crate::report::number::bytes;

/// Adds such memory to the forecast of the zone that it belongs to. Answers whether the zones are all that the host has, as
/// far as meminfo tells.
pub(super) fn add(
    e: &Evidence,
    zones: &[ZoneFacts],
    geometry: &Geometry,
    found: &mut [ZoneDiagnosis],
    notes: &mut Vec<String>,
) -> bool {
    let Some(late) = late_pages(e, geometry) else {
        return true;
    };
    let room = |z: &ZoneFacts| {
        let info = e.zones.as_ref()?.zone(z.row.node, &z.row.zone)?;
        Some(
            info.pages("present")?
                .saturating_sub(info.pages("managed")?),
        )
    };
    let has_gaps = e
        .zones
        .iter()
        .any(|z| !whole::nodes_with_gaps(z).is_empty());
    let at = (0..zones.len()).max_by_key(|&i| room(&zones[i]));
    let Some(at) = at.filter(|&at| !has_gaps && room(&zones[at]) >= Some(late)) else {
        notes.push(format!(
            "MemTotal counts {} more than the zones here manage: a zone or a node may be missing, and sums over the host are not known",
            bytes(late.saturating_mul(geometry.page_size))
        ));
        return false;
    };
    let memory = format!(
        "MemTotal counts {} MiB that no zone manages",
        late.saturating_mul(geometry.page_size) >> 20
    );
    let Some(beyond) = free_beyond_zones(e, zones, geometry) else {
        found[at].huge_pages = without_numbers(found[at].huge_pages);
        notes.push(format!(
            "{memory} yet; whether it is free is not known (MemFree and the free pages of all zones would tell)"
        ));
        return true;
    };
    let n = late.min(beyond) / geometry.huge_page_pages();
    if n == 0 {
        notes.push(format!(
            "{memory}, and by MemFree none of it is free: it is not counted"
        ));
        return true;
    }
    let more = |x: Option<u64>| x.map(|x| x.saturating_add(n));
    let f = found[at].huge_pages;
    found[at].huge_pages = Forecast {
        now: more(f.now),
        now_at_most: more(f.now_at_most),
        after_compaction: more(f.after_compaction),
        after_reclaim: more(f.after_reclaim),
        by_asking_again: more(f.by_asking_again),
        at_most: more(f.at_most),
        ..f
    };
    notes.push(format!(
        "{memory} yet: this kernel adds them when they are asked for, and they are counted as {n} huge pages of node {}, \
         zone {}, as far as MemFree has them",
        zones[at].row.node, zones[at].row.zone
    ));
    true
}

/// Pages that MemTotal counts and no zone manages; `None` if no file tells, or a difference of two moments explains them.
fn late_pages(e: &Evidence, geometry: &Geometry) -> Option<u64> {
    let info = e.zones.as_ref()?;
    let managed: Option<u64> = info.zones.iter().map(|z| z.pages("managed")).sum();
    let managed = managed?;
    let late = geometry
        .pages(e.meminfo_bytes("MemTotal")?)
        .saturating_sub(managed);
    (late >= managed / 100 && late >= geometry.huge_page_pages()).then_some(late)
}

/// Free pages that MemFree counts and no zone has.
fn free_beyond_zones(e: &Evidence, zones: &[ZoneFacts], geometry: &Geometry) -> Option<u64> {
    let of_zone = |z: &ZoneFacts| {
        let counted = e.zones.as_ref()?.zone(z.row.node, &z.row.zone)?.free;
        // Files of two moments: the larger one leaves less.
        Some(counted.max(z.row.free_pages.unwrap_or(0)))
    };
    let in_zones: Option<u64> = zones.iter().map(of_zone).sum();
    let free = geometry.pages(e.meminfo_bytes("MemFree")?);
    Some(free.saturating_sub(in_zones?))
}

/// The forecast of a zone to which free memory may have to be added: none of its numbers is known then, nor a bound.
fn without_numbers(f: Forecast) -> Forecast {
    Forecast {
        perhaps_now: f.perhaps_now,
        compaction_unhindered: f.compaction_unhindered,
        ..Forecast::default()
    }
}
