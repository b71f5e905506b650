//! A zone: a contiguous stretch of a node's memory with its placement, watermarks and reserves.
//!
//! - `memory_zone`: the state of a zone. `ops`: operations on it. `zonelist`: the order of zones for a request.
//! - [`watermark`]: the marks, their boost, and the check in both of its forms. `passes`: the check of a
//!   zone. `setup`: the marks of all zones.
//! - `compact_state`: what a zone remembers of compactions.
//! - `highatomic`: pageblocks kept for high-order atomic requests, and `MIGRATE_RESERVE`.

mod compact_state;
mod highatomic;
mod memory_zone;
mod ops;
mod passes;
pub(crate) mod setup;
#[cfg(test)]
mod tests;
pub mod watermark;
mod zonelist;

pub use crate::frame::{NR_ZONE_KINDS, ZoneConfig, ZoneKind};
pub(crate) use compact_state::{MAX_DEFER_SHIFT, last_block};
pub(crate) use memory_zone::Zone;
pub(crate) use ops::ZoneOps;
pub use watermark::{MarkSize, Marks};
pub(crate) use zonelist::{ZoneList, ZoneLists, nodes, nr_lists};
