//! Two moments, and what differs between them.
//!
//! Invariant: a change is given only where both moments know the number; a zone that only one of them has is named, not
//! compared.

use super::{Moment, ZoneState};
use serde::Serialize;
use std::collections::BTreeMap;

/// What `unfrag inspect A B` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the first moment.
    pub before: String,
    /// Name of the second.
    pub after: String,
    /// Bytes in a page, of both.
    pub page_size: u64,
    /// Order of a huge page, of both.
    pub huge_order: u8,
    /// One for each zone that both have.
    pub zones: Vec<ZoneChange>,
    /// Zones of the first alone, as `Node 0, zone Normal`.
    pub only_before: Vec<String>,
    /// Zones of the second alone.
    pub only_after: Vec<String>,
    /// Assumptions and contradictions of either.
    pub notes: Vec<String>,
}

/// A number before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change<T> {
    /// Before; `null` if not known.
    pub before: Option<T>,
    /// After; `null` if not known.
    pub after: Option<T>,
    /// After less before; `null` unless both are known.
    pub change: Option<f64>,
}

/// A zone before and after. Lists stand at the number of their order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ZoneChange {
    /// Node id.
    pub node: u32,
    /// Zone name.
    pub zone: String,
    /// Free pages.
    pub free_pages: Change<u64>,
    /// Pages on per-CPU lists.
    pub pcp_pages: Change<u64>,
    /// Free blocks of a huge page's size.
    pub free_huge_blocks: Change<u64>,
    /// Percent of free memory outside them.
    pub extfrag_for_order_9: Change<u64>,
    /// Free blocks of each order.
    pub free_blocks: Vec<Change<u64>>,
    /// Share of free memory that a request of the order cannot use.
    pub unusable_index: Vec<Change<f64>>,
    /// Watermarks in pages, by name.
    pub watermarks: BTreeMap<String, Change<u64>>,
    /// Pageblocks by type.
    pub pageblocks: BTreeMap<String, Change<u64>>,
    /// Free pages by type.
    pub free_by_type: BTreeMap<String, Change<u64>>,
}

fn counts(before: Option<u64>, after: Option<u64>) -> Change<u64> {
    let change = before.zip(after).map(|(b, a)| a as f64 - b as f64);
    Change {
        before,
        after,
        change,
    }
}

fn shares(before: Option<f64>, after: Option<f64>) -> Change<f64> {
    // Thousandths, without what subtraction adds to them.
    let change = before
        .zip(after)
        .map(|(b, a)| ((a - b) * 1e3).round() / 1e3);
    Change {
        before,
        after,
        change,
    }
}

/// Compares two moments.
pub fn compare(before: &Moment, after: &Moment) -> Comparison {
    let same = |a: &ZoneState, b: &ZoneState| (a.node, &a.zone) == (b.node, &b.zone);
    let only = |these: &[ZoneState], others: &[ZoneState]| {
        let alone = these.iter().filter(|z| !others.iter().any(|o| same(z, o)));
        alone
            .map(|z| format!("Node {}, zone {}", z.node, z.zone))
            .collect()
    };
    let both = before.zones.iter().filter_map(|b| {
        let a = after.zones.iter().find(|a| same(a, b))?;
        Some(zone(b, a))
    });
    let mut notes: Vec<String> = vec![];
    for (moment, note) in [before, after]
        .into_iter()
        .flat_map(|m| m.notes.iter().map(move |n| (m, n)))
    {
        notes.push(format!("{}: {note}", moment.name));
    }
    if before.page_size != after.page_size {
        notes.push(format!(
            "the page sizes differ ({} and {} bytes): numbers of pages and blocks cannot be compared",
            before.page_size, after.page_size
        ));
    }
    Comparison {
        before: before.name.clone(),
        after: after.name.clone(),
        page_size: after.page_size,
        huge_order: after.huge_order,
        zones: both.collect(),
        only_before: only(&before.zones, &after.zones),
        only_after: only(&after.zones, &before.zones),
        notes,
    }
}

fn zone(b: &ZoneState, a: &ZoneState) -> ZoneChange {
    let blocks = |z: &ZoneState, o: usize| z.free_blocks.as_ref()?.get(o).copied();
    let orders = |of: &dyn Fn(&ZoneState) -> usize| of(b).max(of(a));
    let listed = orders(&|z| z.free_blocks.as_ref().map_or(0, Vec::len));
    let indexed = orders(&|z| z.unusable_index.len());
    let unusable = |z: &ZoneState, o: usize| z.unusable_index.get(o).copied();
    ZoneChange {
        node: a.node,
        zone: a.zone.clone(),
        free_pages: counts(b.free_pages, a.free_pages),
        pcp_pages: counts(b.pcp_pages, a.pcp_pages),
        free_huge_blocks: counts(b.free_huge_blocks, a.free_huge_blocks),
        extfrag_for_order_9: counts(b.extfrag_for_order_9, a.extfrag_for_order_9),
        free_blocks: (0..listed)
            .map(|o| counts(blocks(b, o), blocks(a, o)))
            .collect(),
        unusable_index: (0..indexed)
            .map(|o| shares(unusable(b, o), unusable(a, o)))
            .collect(),
        watermarks: by_name(&b.watermarks, &a.watermarks),
        pageblocks: by_name(
            b.pageblocks.as_ref().unwrap_or(&BTreeMap::new()),
            a.pageblocks.as_ref().unwrap_or(&BTreeMap::new()),
        ),
        free_by_type: by_name(&free_by_type(b), &free_by_type(a)),
    }
}

/// Free pages of each type.
fn free_by_type(z: &ZoneState) -> BTreeMap<String, u64> {
    let types = z.free_by_type.iter().flatten();
    types
        .map(|(name, free)| (name.clone(), free.pages))
        .collect()
}

fn by_name(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, Change<u64>> {
    let names = before.keys().chain(after.keys());
    names
        .map(|n| {
            (
                n.clone(),
                counts(before.get(n).copied(), after.get(n).copied()),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::moment;
    use super::*;
    use std::io;

    fn of(name: &str, buddy: &'static str) -> Moment {
        moment(name, None, |file: &str| match file {
            "buddyinfo" => Ok(buddy.into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
        .unwrap()
    }

    #[test]
    fn changes_have_signs_and_unknown_numbers_none() {
        let before = of(
            "a",
            "Node 0, zone Normal 10 0 0 0 0 0 0 0 0 5 0 \nNode 1, zone Normal 1 0 0 0 0 0 0 0 0 0 0 \n",
        );
        let after = of("b", "Node 0, zone Normal 30 0 0 0 0 0 0 0 0 2 0 \n");
        let c = compare(&before, &after);
        let z = &c.zones[0];
        assert_eq!(z.free_blocks[9].change, Some(-3.0));
        assert_eq!(z.free_blocks[0].change, Some(20.0));
        assert_eq!(z.free_huge_blocks.after, Some(2));
        assert_eq!(z.pcp_pages.change, None);
        assert_eq!(c.only_before, ["Node 1, zone Normal"]);
    }
}
