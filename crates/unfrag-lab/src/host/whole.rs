//! Whether zoneinfo and pagetypeinfo are there to their end: a text may be cut off, or lack a zone or a type.
//!
//! Invariant: what is said to be missing is shown to be there by another line of the same text.

use unfrag_linux::procfs::{
    PageTypeInfo, ZoneInfo,
    zoneinfo::{Pageset, Zone},
};

/// Whether a zone's lines were read to the last: counters that are not there are then those that its kernel does not have.
/// The lines after the per-CPU lists end a populated zone.
pub fn is_read_whole(zone: &Zone) -> bool {
    let ends = ["start_pfn", "all_unreclaimable", "node_unreclaimable"];
    ends.iter().any(|name| zone.last.get(name).is_some()) || is_empty(zone)
}

/// Pages that the allocator manages of a zone: all that it has in kernels before 3.9, which tell it of no zone.
pub fn managed(info: &ZoneInfo, zone: &Zone) -> Option<u64> {
    let is_told = || info.zones.iter().any(|z| z.pages("managed").is_some());
    let present = || {
        let is_old = is_read_whole(zone) && !is_told();
        zone.pages("present").filter(|_| is_old)
    };
    zone.pages("managed").or_else(present)
}

/// Whether the kernel does not have this counter of a zone: no zone has it, and this one's lines are all there.
pub fn has_no_counter(info: &ZoneInfo, zone: &Zone, name: &str) -> bool {
    is_read_whole(zone) && info.zones.iter().all(|z| z.counters.get(name).is_none())
}

/// Whether the free blocks of every migrate type of a zone are there. The table of pageblocks names the types; without it,
/// the type that is last in all kernels shows the end.
pub fn has_all_types(types: &PageTypeInfo, node: u32, zone: &str) -> bool {
    let has = |name: &str| types.row(node, zone, name).is_some();
    match &types.blocks.migratetypes[..] {
        [] => has("Isolate"),
        names => names.iter().all(|name| has(name)),
    }
}

/// Whether no line of a zone shows that its node has another one that is not there.
///
/// Each populated zone above adds to what a zone keeps from requests that may use those. `spec: 1.6`
pub fn has_all_zones(info: &ZoneInfo, node: u32) -> bool {
    let zones: Vec<&Zone> = info.zones.iter().filter(|z| z.node == node).collect();
    zones.iter().enumerate().all(|(i, zone)| {
        let steps = zone.protection.windows(2).filter(|w| w[1] > w[0]).count();
        let above = zones[i + 1..].iter().filter(|z| !is_empty(z)).count();
        steps <= above
    })
}

/// Nodes of which a zone is missing, in order.
pub fn nodes_with_gaps(info: &ZoneInfo) -> Vec<u32> {
    let mut nodes: Vec<u32> = info.zones.iter().map(|z| z.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.retain(|&n| !has_all_zones(info, n));
    nodes
}

/// A clause for each node of which a zone is missing.
pub fn notes(info: &ZoneInfo) -> Vec<String> {
    let nodes = nodes_with_gaps(info);
    let note = |n: &u32| {
        format!(
            "zoneinfo lacks a zone of node {n}: what its zones keep for others (protection) shows that there are more; sums over the node, and over the host, are not known"
        )
    };
    nodes.iter().map(note).collect()
}

fn is_empty(zone: &Zone) -> bool {
    zone.pages("present") == Some(0)
}

/// Pages on a zone's per-CPU lists; `None` where the text does not tell them to their end.
pub fn pcp_pages(zone: &Zone) -> Option<u64> {
    let counts = |s: &Pageset| s.fields.iter().filter(|(name, _)| *name == "count").count();
    let mut sets = zone.pagesets.iter().flatten();
    // Without the line that names a CPU, its numbers stand among those of another one, or of the zone.
    let is_told = zone.last.get("count").is_none() && sets.all(|s| counts(s) == 1);
    (is_read_whole(zone) && is_told).then(|| listed(zone))
}

/// Pages on those per-CPU lists that the text has.
pub(super) fn listed(zone: &Zone) -> u64 {
    let sets = zone.pagesets.iter().flatten();
    sets.filter_map(|s| s.fields.get("count"))
        .fold(0, u64::saturating_add)
}

/// A sum over zones; `None` if one of them does not say.
pub fn of_all(zones: Option<&ZoneInfo>, of: impl Fn(&Zone) -> Option<u64>) -> Option<u64> {
    let each = zones?.zones.iter();
    each.map(of)
        .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(zones: &[(&str, &str)]) -> ZoneInfo {
        let text: String = zones
            .iter()
            .map(|(name, protection)| {
                format!(
                    "Node 0, zone {name:>8}\n  pages free     100\n        present  1000\n        protection: ({protection})\n"
                )
            })
            .collect();
        ZoneInfo::parse(text.as_bytes()).unwrap()
    }

    /// `spec: 1.6`
    #[test]
    fn a_zone_that_is_cut_off_shows_in_those_below_it() {
        let all = [
            ("DMA", "0, 2962, 15993, 15993"),
            ("DMA32", "0, 0, 13031, 13031"),
            ("Normal", "0, 0, 0, 0"),
        ];
        for (zones, is_whole) in [
            (&all[..], true),
            (&all[..2], false),
            (&all[..1], false),
            (&all[2..], true),
            (&[("DMA", "0, 0, 0, 0")], true),
            (&[("DMA", "")], true),
        ] {
            let info = info(zones);
            assert_eq!(has_all_zones(&info, 0), is_whole, "{zones:?}");
            assert_eq!(notes(&info).is_empty(), is_whole, "{zones:?}");
        }
    }
}
