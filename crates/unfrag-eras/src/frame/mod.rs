//! The vocabulary of memory, and the frame table.
//!
//! A *frame* is a page of physical memory, named by its number ([`Pfn`]). A *block* of order `o` is
//! `2^o` frames whose first frame number is a multiple of `2^o`. A *pageblock* is the unit in which
//! memory is grouped by mobility. Numbers of frames, orders, nodes and CPUs, migrate types and geometry are those of
//! [`unfrag::frame`].
//!
//! - `ids`: numbers of zones, pageblocks and sets of LRU lists. `zone_kind`, `page_flags`: what zones and pages may be.
//! - `state`: the state of a frame, packed in one word. `table`: 16 bytes a frame. `map`: which frames it covers. `uses`: how
//!   much of each pageblock is in use.

mod ids;
mod map;
mod page_flags;
mod state;
mod table;
#[cfg(feature = "lab")]
mod uses;
mod zone_kind;

pub(crate) use ids::LruId;
pub use ids::ZoneId;
pub use map::MAX_SEGMENTS;
pub(crate) use map::{FrameMap, FrameRange};
pub use page_flags::PageFlags;
pub(crate) use state::State;
pub use state::{FrameKind, OwnerId};
pub use table::MAX_ZONES;
pub(crate) use table::{BlockMeta, FrameMeta, Frames, Span, Table};
pub(crate) use unfrag::frame::FrameIx;
pub use unfrag::frame::{
    COSTLY_ORDER, CpuId, Geometry, HUGE_ORDER, MAX_BLOCK, MAX_MAX_ORDER, MAX_ORDER, MigrateType,
    NR_ORDERS, NR_TYPES, NodeId, ORDER_SLOTS, Order, Pfn,
};
#[cfg(feature = "lab")]
pub(crate) use uses::{UseTable, Uses};
pub use zone_kind::{NR_ZONE_KINDS, ZoneConfig, ZoneKind};
