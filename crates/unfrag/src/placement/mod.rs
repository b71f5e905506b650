//! Which free frame serves a request, and where a freed one goes.
//!
//! A zone reaches its free frames through [`FreeArea`] alone: take, give, claim, retype, view, walk.
//!
//! - `list`: doubly linked lists through the frame table.
//! - `lists`: the buddy lists of a zone: split, merge, smallest fit, moving a pageblock.
//! - `request`: what a request says of itself, and what it gets.
//! - `placement`: [`FreeArea`]. `fallback`: what it does when the own lists are empty (2.6.24 and later).
//! - `v19`: what the V19 patches do then, with their reserve and statistics.
//!
//! Nothing here knows watermarks or CPUs.

mod block_request;
mod fallback;
mod free_area;
mod list;
mod lists;
mod v19;
mod v19_stats;

pub(crate) use block_request::{BlockRequest, RmqueueMode};
pub(crate) use free_area::FreeArea;
pub(crate) use list::{BadLink, End, List};
pub(crate) use lists::{FreeBlock, FreeTo};
pub use v19_stats::{V19_TYPES, V19Stats, v19_type_name};
