//! Whether requests that may not wait are at risk: orders 3 and 4, as drivers ask for them.
//!
//! What such a request may use of a zone, and the kernel's own watermark check with its rights, are
//! [`crate::usable`]'s. The check is repeated with one block after the other taken, until it fails.
//!
//! Invariant: without watermarks nothing is claimed but that a request fails for which no block is free.

use super::zones::ZoneFacts;
use crate::usable::{self, Request, ZoneView};
use serde::Serialize;
use unfrag::{Rules, ZoneKind};

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
    /// `fails`, `at risk` or `safe`; `unknown` without zoneinfo, or where which blocks are those of contiguous memory
    /// areas decides and is not known.
    pub verdict: &'static str,
    /// Requests that succeed in a row before the first failure, if nothing is freed meanwhile; counted
    /// to 100,000.
    pub in_a_row: u64,
    /// The same if contiguous memory areas have the smallest free blocks; differs only without pagetypeinfo.
    pub in_a_row_at_most: u64,
    /// The verdict of kernels to 4.3, where the release is not known and their rule gives another.
    pub verdict_to_4_3: Option<&'static str>,
    /// Free pages of the node that such requests cannot use: those of contiguous memory areas, of high memory, and isolated ones.
    pub not_for_them_pages: u64,
}

/// Requests in a row that are counted at most.
const MOST: u64 = 100_000;

/// The risk of each order on one node, from its zones, by the rules of its kernel.
pub fn risks(zones: &[&ZoneFacts], rules: &Rules) -> Vec<AtomicRisk> {
    ORDERS.iter().map(|&o| risk(zones, o, rules)).collect()
}

fn risk(zones: &[&ZoneFacts], order: u8, rules: &Rules) -> AtomicRisk {
    let request = Request::atomic(order, rules);
    let views: Vec<(&ZoneFacts, ZoneView)> =
        zones.iter().filter_map(|&z| Some((z, z.view()?))).collect();
    let may_use = |kind: ZoneKind| usable::may_use(kind, request.gfp);
    let mut room = [0, 0];
    let mut not_for_them = 0;
    let mut has_marks = false;
    let mut has_block = false;
    for (facts, view) in &views {
        let counted = usable::pages(view, &request);
        not_for_them += view.free_pages.saturating_sub(counted);
        if !may_use(view.kind) {
            continue;
        }
        has_block |= usable::largest_order(view, &request).is_some_and(|o| o >= order)
            || view.cma_by_order.is_none();
        if facts.marks.is_some() {
            has_marks = true;
            let more = usable::room(view, &request, rules.marks.check, MOST);
            room = [room[0] + more.at_least, room[1] + more.at_most];
        }
    }
    let [in_a_row, in_a_row_at_most] = room.map(|n| n.min(MOST));
    let verdict = match (verdict(in_a_row), verdict(in_a_row_at_most)) {
        _ if views.is_empty() => "unknown",
        _ if !has_block => "fails",
        _ if !has_marks => "unknown",
        (one, other) if one == other => one,
        _ => "unknown",
    };
    AtomicRisk {
        node: zones.first().map_or(0, |z| z.row.node),
        order,
        verdict,
        in_a_row,
        in_a_row_at_most,
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
    use crate::inspect::free_rows::FreeRow;
    use unfrag::preset;

    fn zone(free: &[u64], min: u64) -> ZoneFacts {
        let mut blocks = free.to_vec();
        blocks.resize(11, 0);
        let row = FreeRow {
            zone: "Normal".into(),
            free_pages: Some(blocks.iter().enumerate().map(|(o, n)| n << o).sum()),
            blocks: Some(blocks),
            ..FreeRow::default()
        };
        ZoneFacts {
            row,
            marks: Some([min, min * 5 / 4, min * 3 / 2]),
            ..ZoneFacts::default()
        }
    }

    fn of(zones: &[&ZoneFacts], era: &str) -> Vec<AtomicRisk> {
        risks(zones, &preset(era).unwrap().rules)
    }

    #[test]
    fn small_blocks_serve_no_order_4() {
        let r = of(&[&zone(&[900_000, 0, 0, 5], 1000)], "6.1");
        assert_eq!((r[0].verdict, r[0].in_a_row), ("at risk", 5));
        assert_eq!((r[1].verdict, r[1].in_a_row), ("fails", 0));
    }

    /// `spec: 1.5`
    #[test]
    fn atomic_requests_need_three_eighths_of_min() {
        // Mark 100 is 38 for GFP_ATOMIC; one order-3 block of 46 pages passes as 46 - 7 > 38.
        let one = |small| of(&[&zone(&[small, 0, 0, 1], 100)], "6.1")[0].in_a_row;
        assert_eq!((one(38), one(37)), (1, 0));
    }

    /// `spec: 1.5`
    #[test]
    fn old_kernels_check_each_order() {
        // 40 + 20 x 2 + 15 x 8 = 200 pages pass order 3 with mark 100.
        let z = zone(&[40, 20, 0, 15], 100);
        assert!(of(&[&z], "2.6.36")[0].in_a_row >= 1);
        assert_eq!(of(&[&zone(&[200], 100)], "2.6.36")[0].verdict, "fails");
    }

    #[test]
    fn larger_blocks_are_split() {
        let z = zone(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4], 0);
        let r = of(&[&z], "6.1");
        assert_eq!((r[0].verdict, r[0].in_a_row), ("safe", 512));
        assert_eq!(r[1].in_a_row, 256);
    }

    #[test]
    fn contiguous_areas_and_high_memory_do_not_count() {
        let mut cma = zone(&[100, 0, 0, 300], 0);
        (cma.cma, cma.cma_pages) = (Some(vec![0, 0, 0, 300]), 2400);
        let mut high = zone(&[0, 0, 0, 900], 0);
        high.row.zone = "HighMem".into();
        let r = &of(&[&cma, &high], "6.1")[0];
        assert_eq!((r.verdict, r.in_a_row), ("fails", 0));
        assert_eq!(r.not_for_them_pages, 2400 + 7200);
    }

    #[test]
    fn a_sum_of_contiguous_areas_that_decides_is_not_guessed_at() {
        let mut z = zone(&[3000, 0, 0, 300], 0);
        z.cma_pages = 2400;
        let r = &of(&[&z], "6.1")[0];
        assert_eq!(
            (r.verdict, r.in_a_row, r.in_a_row_at_most),
            ("unknown", 0, 300)
        );
    }

    #[test]
    fn without_watermarks_only_a_failure_is_known() {
        let mut z = zone(&[900], 0);
        z.marks = None;
        assert_eq!(of(&[&z], "6.1")[0].verdict, "fails");
        z.row.blocks = Some(vec![0, 0, 0, 0, 1]);
        assert_eq!(of(&[&z], "6.1")[0].verdict, "unknown");
        assert_eq!(of(&[&ZoneFacts::default()], "6.1")[0].verdict, "unknown");
    }
}
