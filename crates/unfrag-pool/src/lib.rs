//! Real memory from unfrag's page allocator, for any number of threads.
#![deny(unsafe_code)]

mod builder;
mod compact;
mod counts;
mod daemons;
mod error;
mod events;
mod frame;
mod host;
mod inner;
mod memory;
mod movable;
mod owner;
mod pool;
mod record;
mod space;
mod stats;
mod sync;
mod threads;
mod topology;
mod word;

pub use builder::Builder;
pub use error::PoolError;
pub use frame::{Extent, Frame};
pub use host::HostMemory;
pub use movable::{Movable, Pinned, PinnedMut};
pub use owner::{Owned, Owner, OwnerId};
pub use pool::Pool;
pub use space::FRAME_BYTES;
pub use stats::Stats;
pub use unfrag::{AllocError, Order};
