//! Sizes of a replayed host, and amounts of its memory as text.
//!
//! Invariant: pages become bytes here alone, so that no view assumes what a page has.

use crate::report::number::{bytes, mib_of};
use serde::Serialize;
use unfrag_eras::Geometry;

/// Sizes of a host's pages and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Bytes in a page.
    pub page_bytes: u64,
    /// Number of orders.
    pub orders: u8,
    /// Order of a pageblock.
    pub pageblock_order: u8,
    /// Order of a huge page; `null` where no block is as large.
    pub huge_order: Option<u8>,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes::of(Geometry::PAGES_4K)
    }
}

/// The order of the blocks that stand for large ones: huge pages, or the largest blocks where none is as large.
pub fn large_order(g: Geometry) -> u8 {
    g.huge_order.min(g.max_order).0
}

impl Sizes {
    /// Of a model.
    pub fn of(g: Geometry) -> Sizes {
        Sizes {
            page_bytes: 1 << g.page_shift,
            orders: g.max_order.0 + 1,
            pageblock_order: g.block_order.0,
            huge_order: Some(g.huge_order.0).filter(|o| *o <= g.max_order.0),
        }
    }

    /// Whether they are those of most hosts: pages of 4 KiB, 11 orders, pageblocks and huge pages of order 9.
    pub fn are_usual(&self) -> bool {
        *self == Sizes::default()
    }

    /// The order of the blocks that stand for large ones.
    pub fn large_order(&self) -> u8 {
        self.huge_order.unwrap_or(self.orders.saturating_sub(1))
    }

    /// Bytes in this many pages.
    pub fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.page_bytes)
    }

    /// Pages as MiB with one decimal, without the unit.
    pub fn mib(&self, pages: u64) -> String {
        mib_of(pages, self.page_bytes)
    }

    /// Pages as MiB.
    pub fn as_mib(&self, pages: u64) -> f64 {
        pages as f64 * self.page_bytes as f64 / f64::from(1 << 20)
    }

    /// Size of a block of an order: `4 KiB`, `2 MiB`.
    pub fn of_order(&self, order: u8) -> String {
        bytes(
            self.page_bytes
                .checked_shl(order.into())
                .unwrap_or(u64::MAX),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_eras::Order;

    #[test]
    fn amounts_are_those_of_the_hosts_pages() {
        let usual = Sizes::default();
        assert!(usual.are_usual());
        assert_eq!(
            (usual.mib(256), usual.of_order(9)),
            ("1.0".into(), "2 MiB".into())
        );
        let of_64k = Sizes::of(Geometry {
            page_shift: 16,
            max_order: Order(13),
            block_order: Order(13),
            huge_order: Order(13),
        });
        assert!(!of_64k.are_usual());
        assert_eq!(
            (of_64k.mib(256), of_64k.of_order(13)),
            ("16.0".into(), "512 MiB".into())
        );
        assert_eq!((of_64k.bytes(2), of_64k.as_mib(32)), (128 << 10, 2.0));
        let small = Sizes::of(Geometry {
            max_order: Order(7),
            block_order: Order(7),
            ..Geometry::PAGES_4K
        });
        assert_eq!((small.huge_order, small.large_order()), (None, 7));
    }
}
