//! Whether requests that may not wait are at risk: orders 3 and 4, as drivers ask for them.
//!
//! The kernel's own watermark check (`spec: 1.5`, from [`unfrag::zone::watermark`]) with the
//! rights of `GFP_ATOMIC`, on each zone that a kernel request can use. It is repeated with one block after
//! the other taken, until it fails.
//!
//! Invariant: nothing is claimed without zoneinfo.

use super::zones::ZoneFacts;
use serde::Serialize;
use unfrag::frame::{NR_ORDERS, ORDER_SLOTS};
use unfrag::kernel::MarkCheck;
use unfrag::zone::watermark::{View, block_exists, per_order};
use unfrag::{AllocFlags, Order};

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
    /// `fails`, `at risk` or `safe`; `unknown` without zoneinfo.
    pub verdict: &'static str,
    /// Requests that succeed in a row before the first failure, if nothing is freed meanwhile; counted
    /// to 100,000.
    pub in_a_row: u64,
}

/// Requests in a row that are counted at most.
const MOST: u64 = 100_000;

/// The risk of each order on one node, from its zones.
pub fn risks(zones: &[&ZoneFacts], check: MarkCheck) -> Vec<AtomicRisk> {
    let usable: Vec<&&ZoneFacts> = zones.iter().filter(|z| z.name != "Movable").collect();
    let known = usable.iter().any(|z| z.marks.is_some());
    let node = zones.first().map_or(0, |z| z.node);
    let risk = |order: u8| {
        let in_a_row = match known {
            true => usable
                .iter()
                .map(|z| in_a_row(z, order, check))
                .sum::<u64>()
                .min(MOST),
            false => 0,
        };
        let verdict = match in_a_row {
            _ if !known => "unknown",
            0 => "fails",
            n if n < FEW => "at risk",
            _ => "safe",
        };
        AtomicRisk {
            node,
            order,
            verdict,
            in_a_row,
        }
    };
    ORDERS.iter().map(|&o| risk(o)).collect()
}

/// Requests of `order` that a zone serves in a row.
fn in_a_row(zone: &ZoneFacts, order: u8, check: MarkCheck) -> u64 {
    let Some([min, ..]) = zone.marks else {
        return 0;
    };
    let mut free = zone.nr_free;
    let mut n = 0;
    while n < MOST
        && passes(&free, order, min, zone.protection_from_kernel, check)
        && take(&mut free, order)
    {
        n += 1;
    }
    n
}

fn passes(free: &[u64; NR_ORDERS], order: u8, min: u64, kept: u64, check: MarkCheck) -> bool {
    let rights = AllocFlags::MIN_RESERVE | AllocFlags::NON_BLOCK | AllocFlags::HIGHATOMIC;
    let pages: u64 = free.iter().enumerate().map(|(o, n)| n << o).sum();
    let mut nr_free = [0; ORDER_SLOTS];
    for (to, &n) in nr_free.iter_mut().zip(free) {
        *to = u32::try_from(n).unwrap_or(u32::MAX);
    }
    let order = Order(order);
    let ordinary = (0..NR_ORDERS)
        .filter(|&o| free[o] > 0)
        .fold(0, |bits, o| bits | 1u32 << o);
    let view = View {
        free: i64::try_from(pages).unwrap_or(i64::MAX),
        nr_free: &nr_free,
        ordinary,
        highatomic: 0,
        cma: 0,
        hidden: 0,
        cma_pages: 0,
    };
    match check {
        MarkCheck::PerOrder => per_order(&view, order, min, kept, rights),
        MarkCheck::BlockExists => block_exists(&view, order, min, kept, rights),
    }
}

/// Takes a block by smallest fit and splits it. `spec: 1.2`
fn take(free: &mut [u64; NR_ORDERS], order: u8) -> bool {
    let o = usize::from(order);
    let Some(found) = (o..NR_ORDERS).find(|&o| free[o] > 0) else {
        return false;
    };
    free[found] -= 1;
    free[o..found].iter_mut().for_each(|n| *n += 1);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(nr_free: [u64; NR_ORDERS], min: u64) -> ZoneFacts {
        ZoneFacts {
            nr_free,
            marks: Some([min, min * 5 / 4, min * 3 / 2]),
            name: "Normal".into(),
            ..ZoneFacts::default()
        }
    }

    #[test]
    fn small_blocks_serve_no_order_4() {
        let z = zone([900_000, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0], 1000);
        let r = risks(&[&z], MarkCheck::BlockExists);
        assert_eq!((r[0].verdict, r[0].in_a_row), ("at risk", 5));
        assert_eq!((r[1].verdict, r[1].in_a_row), ("fails", 0));
    }

    /// `spec: 1.5`
    #[test]
    fn atomic_requests_need_three_eighths_of_min() {
        // Mark 100 is 38 for GFP_ATOMIC; one order-3 block of 46 pages passes as 46 - 7 > 38.
        let free = |small| [small, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let one = |small| risks(&[&zone(free(small), 100)], MarkCheck::BlockExists)[0].in_a_row;
        assert_eq!((one(38), one(37)), (1, 0));
    }

    /// `spec: 1.5`
    #[test]
    fn old_kernels_check_each_order() {
        // 40 + 20 x 2 + 15 x 8 = 200 pages pass order 3 with mark 100.
        let z = zone([40, 20, 0, 15, 0, 0, 0, 0, 0, 0, 0], 100);
        assert!(risks(&[&z], MarkCheck::PerOrder)[0].in_a_row >= 1);
        let small = zone([200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 100);
        assert_eq!(risks(&[&small], MarkCheck::PerOrder)[0].verdict, "fails");
    }

    #[test]
    fn larger_blocks_are_split() {
        let z = zone([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4], 0);
        // 4096 pages make 512 blocks of order 3; the check keeps one page back, so the last is refused.
        let r = risks(&[&z], MarkCheck::BlockExists);
        assert_eq!((r[0].verdict, r[0].in_a_row), ("safe", 512));
        assert_eq!(r[1].in_a_row, 256);
    }

    #[test]
    fn unknown_without_zoneinfo() {
        let z = ZoneFacts {
            name: "Normal".into(),
            ..ZoneFacts::default()
        };
        assert_eq!(risks(&[&z], MarkCheck::BlockExists)[0].verdict, "unknown");
    }
}
