//! Many CPUs on one memory: [`Memory`], the memory in shards, each under its own lock; and [`Local`](crate::Local), what one CPU takes and
//! gives without a lock.
//!
//! A `Local` keeps free frames in arrays, one for each type and each order that is frequent. An allocation pops, a free
//! pushes. An empty array is refilled by half, a full one drained but for a quarter (seven eighths of the few blocks of order 9), in
//! one batch under a shard's lock: the lock, the watermark and the misses of the maps are paid once for up to 96 frames. The maps take what a `Local` keeps as in
//! use; so a frame that is freed twice is found when the batch with it is given back.
//!
//! When memory is short, whoever finds nothing drains what all others keep: see [`local`](crate::local).
//!
//! What a frame's owner alone can know is his to promise: giving frames back is `unsafe`. What the maps show to be wrong is
//! an error all the same: a block that begins or ends where none does, that is no memory, or that is free.
//!
//! - `config`: what it is made for. `totals`: free frames and watermarks. `shards`: [`Memory`], and where they are: `span`.
//! - `taking`: taking and giving. `growing`: memory that comes and goes. `marks`: how much is free. `view`: what is where.
//! - `apart`: what is set apart to be emptied. `ahead`: when that is worth a try before demand. `report`: [`Report`], free page
//!   reporting.
//!
//! Invariants: a frame is free in its shard, kept by one `Local`, or somebody's, or on its way between them in the hands of
//! one. Nothing waits while a lock is held, and no two locks are held at once.
//!
//! The words of a memory are behind locks, so one that has them for long does not serve as one that has them for a shorter
//! time:
//! ```compile_fail
//! # use unfrag::Memory;
//! fn shorter<'short, 'long: 'short, R>(shared: Memory<'long, R>) -> Memory<'short, R> {
//!     shared
//! }
//! ```

mod ahead;
pub(crate) mod apart;
pub(crate) mod config;
mod growing;
mod marks;
mod report;
pub(crate) mod request;
pub(crate) mod shards;
pub(crate) mod span;
mod taking;
pub(crate) mod totals;
mod view;

pub use config::{
    Area, Areas, MAX_NODES, MAX_SHARDS, Marks, MemoryConfig, MemoryLayout, StartError,
};
pub use report::Report;
pub use request::Request;
pub use shards::Memory;
