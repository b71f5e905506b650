//! Whether requests that may not wait are at risk: orders 3 and 4, as drivers ask for them.
//!
//! What such a request may use of a zone, and the kernel's own watermark check with its rights, are
//! [`crate::usable`]'s. The check is repeated with one block after the other taken, until it fails.
//!
//! Invariant: what a zone may keep back and no file tells widens the range from [`AtomicRisk::in_a_row_at_least`] to
//! [`AtomicRisk::in_a_row_at_most`]; a verdict holds for the whole range.

use crate::host::Zone;
use crate::usable::{self, Request};
use serde::Serialize;
use unfrag_eras::{Rules, ZoneKind};

/// Orders that are looked at.
pub const ORDERS: [u8; 2] = [3, 4];

/// An order is at risk if fewer requests than this succeed in a row. A network card's ring holds 256 to 1024 buffers.
pub const FEW: u64 = 256;

/// The risk of a request of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtomicRisk {
    /// Node id.
    pub node: u32,
    /// Order of the request.
    pub order: u8,
    /// `fails`, `at risk` or `safe`; `unknown` where what no file tells decides: watermarks and protection (zoneinfo), the
    /// free blocks of a zone, or which of them are those of contiguous memory areas (pagetypeinfo).
    pub verdict: &'static str,
    /// Requests that succeed in a row before the first failure, if nothing is freed meanwhile; counted
    /// to 100,000. `null` where the next two differ.
    pub in_a_row: Option<u64>,
    /// The same at least: in zones of which all is told, if contiguous memory areas have the largest free blocks.
    pub in_a_row_at_least: u64,
    /// The same at most: if nothing is kept back but what is told, and contiguous memory areas have the smallest free
    /// blocks. `null` where the free blocks of a zone are not told.
    pub in_a_row_at_most: Option<u64>,
    /// The verdict of kernels to 4.3, where the release is not known and their rule gives another.
    pub verdict_to_4_3: Option<&'static str>,
    /// Free pages of the node that such requests cannot use: those of contiguous memory areas, of high memory, and isolated ones.
    pub not_for_them_pages: u64,
}

/// Requests in a row that are counted at most.
const MOST: u64 = 100_000;

/// The risk of each order on one node, from its zones, by the rules of its kernel. `are_all`: whether no zone of the node
/// is known to be missing among them.
pub fn risks(zones: &[&Zone], are_all: bool, rules: &Rules) -> Vec<AtomicRisk> {
    let of = |&order: &u8| risk(zones, are_all, order, rules);
    ORDERS.iter().map(of).collect()
}

fn risk(zones: &[&Zone], are_all: bool, order: u8, rules: &Rules) -> AtomicRisk {
    let request = Request::atomic(order, rules);
    let mut at_least = 0;
    let mut at_most = Some(0).filter(|_| are_all && !zones.is_empty());
    let mut not_for_them = 0;
    for zone in zones {
        let kind = ZoneKind::from_name(&zone.name);
        let may_use = kind.is_none_or(|kind| usable::may_use(kind, request.gfp));
        let Some(view) = zone.view() else {
            at_most = at_most.filter(|_| !may_use);
            continue;
        };
        let counted = usable::pages(&view, &request);
        not_for_them += view.free_pages.saturating_sub(counted);
        if !may_use {
            continue;
        }
        let room = usable::room(&view, &request, rules.marks.check, MOST);
        if zone.tells_atomic() {
            at_least += room.at_least;
        }
        at_most = at_most.map(|n| n + room.at_most);
    }
    let at_least = at_least.min(MOST);
    let at_most = at_most.map(|n| n.min(MOST));
    let verdicts = (verdict(at_least), at_most.map_or("safe", verdict));
    AtomicRisk {
        node: zones.first().map_or(0, |z| z.node),
        order,
        verdict: match verdicts {
            (one, other) if one == other => one,
            _ => "unknown",
        },
        in_a_row: at_most.filter(|&n| n == at_least),
        in_a_row_at_least: at_least,
        in_a_row_at_most: at_most,
        verdict_to_4_3: None,
        not_for_them_pages: not_for_them,
    }
}

fn verdict(in_a_row: u64) -> &'static str {
    match in_a_row {
        0 => "fails",
        n if n < FEW => "at risk",
        _ => "safe",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::zone::TypeBlocks;
    use unfrag_eras::preset;

    fn zone(free: &[u64], min: u64) -> Zone {
        let mut blocks = free.to_vec();
        blocks.resize(11, 0);
        Zone {
            name: "Normal".into(),
            free_pages: Some(blocks.iter().enumerate().map(|(o, n)| n << o).sum()),
            blocks: Some(blocks),
            marks: Some([min, min * 5 / 4, min * 3 / 2]),
            protection_from_kernel: Some(0),
            cma_pages: Some(0),
            ..Zone::default()
        }
    }

    fn of(zones: &[&Zone], era: &str) -> Vec<AtomicRisk> {
        risks(zones, true, &preset(era).unwrap().rules)
    }

    #[test]
    fn small_blocks_serve_no_order_4() {
        let r = of(&[&zone(&[900_000, 0, 0, 5], 1000)], "6.1");
        assert_eq!((r[0].verdict, r[0].in_a_row), ("at risk", Some(5)));
        assert_eq!((r[1].verdict, r[1].in_a_row), ("fails", Some(0)));
    }

    /// `spec: 1.5`
    #[test]
    fn atomic_requests_need_three_eighths_of_min() {
        // Mark 100 is 38 for GFP_ATOMIC; one order-3 block of 46 pages passes as 46 - 7 > 38.
        let one = |small| of(&[&zone(&[small, 0, 0, 1], 100)], "6.1")[0].in_a_row;
        assert_eq!((one(38), one(37)), (Some(1), Some(0)));
    }

    /// `spec: 1.5`
    #[test]
    fn old_kernels_check_each_order() {
        // 40 + 20 x 2 + 15 x 8 = 200 pages pass order 3 with mark 100.
        let z = zone(&[40, 20, 0, 15], 100);
        assert!(of(&[&z], "2.6.36")[0].in_a_row >= Some(1));
        assert_eq!(of(&[&zone(&[200], 100)], "2.6.36")[0].verdict, "fails");
    }

    #[test]
    fn larger_blocks_are_split() {
        let z = zone(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4], 0);
        let r = of(&[&z], "6.1");
        assert_eq!((r[0].verdict, r[0].in_a_row), ("safe", Some(512)));
        assert_eq!(r[1].in_a_row, Some(256));
    }

    #[test]
    fn contiguous_areas_and_high_memory_do_not_count() {
        let mut cma = zone(&[100, 0, 0, 300], 0);
        (cma.has_all_types, cma.cma_pages) = (true, Some(2400));
        cma.by_type = vec![TypeBlocks {
            name: "CMA".into(),
            blocks: vec![0, 0, 0, 300],
            is_capped: false,
        }];
        let mut high = zone(&[0, 0, 0, 900], 0);
        high.name = "HighMem".into();
        let r = &of(&[&cma, &high], "6.1")[0];
        assert_eq!((r.verdict, r.in_a_row), ("fails", Some(0)));
        assert_eq!(r.not_for_them_pages, 2400 + 7200);
    }

    #[test]
    fn a_sum_of_contiguous_areas_that_decides_is_not_guessed_at() {
        let mut z = zone(&[3000, 0, 0, 300], 0);
        z.cma_pages = Some(2400);
        let r = &of(&[&z], "6.1")[0];
        assert_eq!(
            (r.verdict, r.in_a_row, r.in_a_row_at_most),
            ("unknown", None, Some(300))
        );
    }

    #[test]
    fn what_is_not_told_widens_the_range_and_only_a_failure_is_known_without_it() {
        type Lacking = fn(&mut Zone);
        let lacking: [(&str, Lacking); 4] = [
            ("marks", |z| z.marks = None),
            ("protection", |z| z.protection_from_kernel = None),
            ("contiguous areas", |z| z.cma_pages = None),
            ("blocks", |z| z.blocks = None),
        ];
        for (what, lacks) in lacking {
            let mut full = zone(&[900, 0, 0, 300], 100);
            let whole = of(&[&full], "6.1").swap_remove(0);
            assert_eq!((whole.verdict, whole.in_a_row), ("safe", Some(300)));
            lacks(&mut full);
            let r = &of(&[&full], "6.1")[0];
            assert_eq!((r.verdict, r.in_a_row), ("unknown", None), "{what}");
            assert!(r.in_a_row_at_least <= 300, "{what}");
            assert!(r.in_a_row_at_most.is_none_or(|n| n >= 300), "{what}");
            // A second zone of which all is told decides nothing while the first may serve.
            let r = &of(&[&full, &zone(&[900, 0, 0, 3], 0)], "6.1")[0];
            assert_eq!((r.verdict, r.in_a_row), ("unknown", None), "{what}");
            let mut none = zone(&[900], 0);
            lacks(&mut none);
            let fails = what != "blocks";
            let verdict = of(&[&none], "6.1")[0].verdict;
            assert_eq!(verdict == "fails", fails, "{what}");
        }
        assert_eq!(of(&[&Zone::default()], "6.1")[0].verdict, "unknown");
        let all = zone(&[900], 0);
        let rules = &preset("6.1").unwrap().rules;
        let some = &risks(&[&all], false, rules)[0];
        assert_eq!((some.verdict, some.in_a_row), ("unknown", None));
    }
}
