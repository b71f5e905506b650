//! Memory that meminfo counts and no zone manages.
//!
//! Some hosts boot with part of their memory outside the zones and add it on demand, in whole pageblocks: MemTotal and
//! MemFree count it, no zone does. Zones that are missing from a text look alike, so the memory counts only where each file
//! that tells of it agrees.
//!
//! Invariant: no more is counted as free than MemFree has beyond the zones, nor than the zone has room for.

use super::diagnosis::ZoneDiagnosis;
use super::forecast::Forecast;
use crate::host::{Host, Zone};
use crate::report::number::bytes;

/// Memory that no zone manages, as far as the files tell where it belongs and whether it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// So many free huge pages, of the zone of this number in the host.
    Free {
        /// The zone.
        at: usize,
        /// Huge pages.
        huge_pages: u64,
    },
    /// Of the zone of this number, and not known to be free.
    Unknown {
        /// The zone.
        at: usize,
    },
    /// All of it is in use.
    InUse,
    /// No zone here has room for it: one may be missing.
    Elsewhere,
}

/// What there is of such memory, and its pages; `None` where there is none, as far as meminfo tells.
pub(super) fn of(host: &Host) -> Option<(Late, u64)> {
    let Host {
        zones, geometry, ..
    } = host;
    let late = late_pages(host)?;
    let room = |z: &Zone| Some(z.told("present")?.saturating_sub(z.told("managed")?));
    let has_gaps = !host.gaps().is_empty();
    let at = (0..zones.len()).max_by_key(|&i| room(&zones[i]));
    let at = at.filter(|&at| !has_gaps && room(&zones[at]) >= Some(late));
    let what = match (at, free_beyond_zones(host)) {
        (None, _) => Late::Elsewhere,
        (Some(at), None) => Late::Unknown { at },
        (Some(at), Some(beyond)) => match late.min(beyond) / geometry.huge_page_pages() {
            0 => Late::InUse,
            huge_pages => Late::Free { at, huge_pages },
        },
    };
    Some((what, late))
}

/// Adds such memory to the forecast of the zone that it belongs to. Answers whether the zones are all that the host has, as
/// far as meminfo tells.
pub(super) fn add(host: &Host, found: &mut [ZoneDiagnosis], notes: &mut Vec<String>) -> bool {
    let Some((what, late)) = of(host) else {
        return true;
    };
    let size = late.saturating_mul(host.geometry.page_size);
    let memory = format!("MemTotal counts {} MiB that no zone manages", size >> 20);
    match what {
        Late::Elsewhere => {
            notes.push(format!(
                "MemTotal counts {} more than the zones here manage: a zone or a node may be missing, and sums over the host are not known",
                bytes(size)
            ));
            return false;
        }
        Late::Unknown { at } => {
            found[at].huge_pages = without_numbers(found[at].huge_pages);
            notes.push(format!(
                "{memory} yet; whether it is free is not known (MemFree and the free pages of all zones would tell)"
            ));
        }
        Late::InUse => notes.push(format!(
            "{memory}, and by MemFree none of it is free: it is not counted"
        )),
        Late::Free { at, huge_pages: n } => {
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
            let zone = &host.zones[at];
            notes.push(format!(
                "{memory} yet: this kernel adds them when they are asked for, and they are counted as {n} huge pages of node {}, \
                 zone {}, as far as MemFree has them",
                zone.node, zone.name
            ));
        }
    }
    true
}

/// Pages that MemTotal counts and no zone manages; `None` if no file tells, or a difference of two moments explains them.
fn late_pages(host: &Host) -> Option<u64> {
    let geometry = &host.geometry;
    let managed = host.of_all(|z| z.pages("managed"))?;
    let late = geometry
        .pages(host.meminfo_bytes("MemTotal")?)
        .saturating_sub(managed);
    (late >= managed / 100 && late >= geometry.huge_page_pages()).then_some(late)
}

/// Free pages that MemFree counts and no zone has.
fn free_beyond_zones(host: &Host) -> Option<u64> {
    // Files of two moments: the larger one leaves less.
    let of_zone = |z: &Zone| Some(z.info.as_ref()?.free.max(z.free_pages.unwrap_or(0)));
    let in_zones: Option<u64> = host.zones.iter().map(of_zone).sum();
    let free = host.geometry.pages(host.meminfo_bytes("MemFree")?);
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
