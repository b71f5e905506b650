//! The vocabulary of memory, and the frame table.
//!
//! A *frame* is a page of physical memory, named by its number ([`Pfn`]). A *block* of order `o` is
//! `2^o` frames whose first frame number is a multiple of `2^o`. A *pageblock* is the unit in which
//! memory is grouped by mobility.
//!
//! - `ids`: numbers of frames, orders, nodes, zones and CPUs. `geometry`: sizes of pages and blocks.
//! - `migrate_type`, `zone_kind`, `page_flags`: what lists, zones and pages may be.
//! - `state`: the state of a frame, packed in one word. `table`: 16 bytes a frame. `map`: which frames it covers.
//! - `block_room`: what the evacuator knows of a pageblock.

mod block_room;
mod geometry;
mod ids;
mod map;
mod migrate_type;
mod page_flags;
mod state;
mod table;
mod zone_kind;

pub use geometry::{Geometry, MAX_MAX_ORDER, ORDER_SLOTS};
pub use ids::{CpuId, NodeId, Order, Pfn, ZoneId};
pub(crate) use ids::{FrameIx, LruId};
pub use map::MAX_SEGMENTS;
pub(crate) use map::{FrameMap, FrameRange};
pub use migrate_type::{MigrateType, NR_TYPES};
pub use page_flags::PageFlags;
pub(crate) use state::State;
pub use state::{FrameKind, OwnerId};
pub use table::MAX_ZONES;
pub(crate) use table::{BlockMeta, FrameMeta, Frames, Span, Table};
pub use zone_kind::{NR_ZONE_KINDS, ZoneConfig, ZoneKind};

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
