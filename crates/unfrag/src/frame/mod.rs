//! The vocabulary of memory, which every allocator of the project shares.
//!
//! A *frame* is a page of physical memory, named by its number ([`Pfn`]). A *block* of order `o` is
//! `2^o` frames whose first frame number is a multiple of `2^o`. A *pageblock* is the unit in which
//! memory is grouped by mobility.
//!
//! - `ids`: numbers of frames, orders, nodes and CPUs. `geometry`: sizes of pages and blocks.
//! - `migrate_type`: the mobility of a request, a list or a pageblock.

mod geometry;
mod ids;
mod migrate_type;

pub use geometry::{Geometry, MAX_MAX_ORDER, ORDER_SLOTS};
pub use ids::{CpuId, FrameIx, NodeId, Order, Pfn};
pub use migrate_type::{MigrateType, NR_TYPES};

/// Largest order where pages have 4 KiB: blocks of 4 MiB.
pub const MAX_ORDER: u8 = Geometry::PAGES_4K.max_order.0;

/// Number of orders where pages have 4 KiB.
pub const NR_ORDERS: usize = MAX_ORDER as usize + 1;

/// Frames in the largest block where pages have 4 KiB.
pub const MAX_BLOCK: u32 = 1 << MAX_ORDER;

/// Largest order that is cheap to get (`PAGE_ALLOC_COSTLY_ORDER`).
pub const COSTLY_ORDER: u8 = Order::COSTLY.0;

/// Order of a 2 MiB huge page, where a page has 4 KiB.
pub const HUGE_ORDER: u8 = Order::HUGE.0;
