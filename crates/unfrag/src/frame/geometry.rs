//! Sizes that travel with a machine: of a page, of the largest block, of a pageblock, of a huge page.
//!
//! A page is not always 4 KiB, nor the largest order 10, nor a pageblock of order 9: 16 KiB pages go with
//! a largest order of 11, 64 KiB pages with 13 (arm64) or 9 (ppc64). Constants here only bound arrays.

use super::ids::Order;

/// Largest order that any geometry may have.
pub const MAX_MAX_ORDER: Order = Order(13);

/// Entries of an array with one entry for each order of any geometry.
pub const ORDER_SLOTS: usize = MAX_MAX_ORDER.index() + 1;

/// Sizes of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Bits of an offset in a page: a page has `2^page_shift` bytes.
    pub page_shift: u8,
    /// Order of the largest block.
    pub max_order: Order,
    /// Order of a pageblock; at most `max_order`.
    pub block_order: Order,
    /// Order of a huge page. Per-CPU lists for several orders hold blocks of this one beside the cheap orders. Where it is
    /// above `max_order`, no block is as large.
    pub huge_order: Order,
}

impl Geometry {
    /// Pages of 4 KiB, blocks to 4 MiB, pageblocks of 2 MiB: x86-64 and most others.
    pub const PAGES_4K: Geometry = Geometry {
        page_shift: 12,
        max_order: Order(10),
        block_order: Order(9),
        huge_order: Order::HUGE,
    };

    /// These sizes, but for the order of pageblocks.
    #[must_use]
    pub const fn with_block_order(self, block_order: Order) -> Geometry {
        Geometry {
            block_order,
            ..self
        }
    }

    /// These sizes, but for the order of a huge page.
    #[must_use]
    pub const fn with_huge_order(self, huge_order: Order) -> Geometry {
        Geometry { huge_order, ..self }
    }

    /// Whether an allocator can work with it: pages of 1 KiB to 1 MiB, orders to [`MAX_MAX_ORDER`], and
    /// pageblocks that are no larger than the largest block.
    pub const fn is_possible(&self) -> bool {
        self.page_shift >= 10
            && self.page_shift <= 20
            && self.max_order.0 <= MAX_MAX_ORDER.0
            && self.block_order.0 >= 1
            && self.block_order.0 <= self.max_order.0
    }

    /// All orders, lowest first.
    pub fn orders(&self) -> impl DoubleEndedIterator<Item = Order> + Clone + use<> {
        Order::ZERO.up_to(self.max_order)
    }

    /// KiB in this many pages.
    pub const fn kib(&self, pages: u64) -> u64 {
        pages << (self.page_shift - 10)
    }

    /// Whole pages in this many KiB.
    pub const fn pages(&self, kib: u64) -> u64 {
        kib >> (self.page_shift - 10)
    }
}
