//! Placement: the free frame that serves a request, and the list that a freed block goes to.
//!
//! A zone reaches its free frames through [`FreeArea`] alone: take, give, claim, retype, view, walk.
//!
//! - `list`: doubly linked lists through the frame table.
//! - `lists`: the buddy lists of a zone: split, merge, smallest fit, moving a pageblock.
//! - `block_request`: a request to the free lists, and its result.
//! - `free_area`: [`FreeArea`]. `fallback`: falling back to other types' lists (2.6.24 and later).
//! - `v19`: fallback in the V19 patches. `v19_stats`: their reserve and statistics.
//!
//! Nothing here knows watermarks or CPUs.

mod block_request;
mod fallback;
mod free_area;
mod list;
mod lists;
mod v19;
mod v19_stats;

pub(crate) use block_request::{BlockRequest, Fallback, RmqueueMode};
pub(crate) use free_area::FreeArea;
pub(crate) use list::{BadLink, End, List};
pub(crate) use lists::{FreeBlock, FreeTo};
pub use v19_stats::{V19_TYPES, V19Stats, v19_type_name};
