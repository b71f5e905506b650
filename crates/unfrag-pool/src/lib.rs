//! Real memory from unfrag's page allocator, for any number of threads.
//!
//! A [`Pool`] reserves addresses, backs them with memory of the system, and hands out blocks: a [`Frame`] stays where it is,
//! a [`Movable`] may be moved while nobody holds it, an [`Owned`] is an [`Owner`]'s, who moves it or gives it back when
//! asked. Each gives itself back when it is dropped. A [`Block`], a [`MovableBlock`] and an [`Owned`] borrow nothing, so that a
//! struct can have them beside its pool.
//!
//! ```
//! use unfrag_pool::{Order, Pool};
//!
//! let pool = Pool::builder().arena(64 << 20).build()?;
//! let mut page = pool.alloc(Order(0))?;
//! page.fill(1);
//! let huge = pool.alloc_bytes(4 << 20)?;
//! assert_eq!(huge.fallback_bytes(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The modules
//! The ground first:
//! - `space`: addresses, and memory of the system. `topology`: NUMA nodes. `error`: why there is none.
//! - `memory`: free frames by node, each a [`Memory`](unfrag::Memory). `threads`: what each thread keeps; `barrier`: by which
//!   others get it back. `counts`,
//!   `events`: what is counted.
//! - `zeros`: the words that say who owns a frame, [`unfrag::owners`]. `word`: where a movable block is, a lock-free word that loom checks; `sync`: its atomics;
//!   `handles`: all such words.
//! - `book`: blocks that are out by address, in debug builds.
//! - `base`: what a block needs to exist and to be given back. `frame`, `owner`: blocks, and those who own them; `slot`:
//!   what the blocks of an owner share; `registry`: the owners that are there.
//! - `settings`: what the pool was told. `bells`: what wakes the daemons. `inner`: all that users share, and the path of an
//!   allocation. `movable`: blocks that may move.
//! - `calls`: how owners are called. `compact`: moving. `slow`: the way of an allocation that finds nothing. `daemons`: kswapd and kcompactd.
//! - `heap`: the slab caches over an engine, as the allocator of a whole program.
//! - `pool`, `builder`, `stats`: the face. `room`: how many huge pages it can give. `raw`: blocks by address. `procfs`: its numbers in the forms of procfs. [`cells`]: its blocks, drawn. `host`: memory as the host's kernel gives it, to compare with.
//!
//! # One allocation
//! 1. `inner.rs`: `try_alloc` asks what the thread keeps (`threads.rs`), which a
//!    [`Local`](unfrag::Local) refills in batches.
//! 2. Nothing there: `alloc_slow` (`slow.rs`) has owners give frames back, or compacts (`compact.rs`), or waits.
//! 3. The frame's number becomes an address (`space.rs`), and the two a block that frees itself.
//!
//! Invariants: a frame has one user; nothing waits, copies or calls an owner while a shard is locked.
#![deny(unsafe_code)]

mod barrier;
mod base;
mod bells;
mod book;
mod builder;
mod calls;
pub mod cells;
mod compact;
mod counts;
mod daemons;
mod error;
mod events;
mod frame;
mod handles;
mod heap;
mod host;
mod inner;
mod memory;
mod movable;
mod owner;
mod pool;
mod procfs;
mod raw;
mod registry;
mod room;
mod settings;
mod slot;
mod slow;
mod space;
mod stats;
mod sync;
mod threads;
mod topology;
mod word;
mod zeros;

pub use builder::Builder;
pub use error::PoolError;
pub use frame::{Block, Extent, Frame};
pub use heap::{Heap, HeapStats};
pub use host::HostMemory;
pub use movable::{Movable, MovableBlock, Pinned, PinnedMut};
pub use owner::{Owned, Owner, OwnerId, Place};
pub use pool::Pool;
pub use room::HugePages;
pub use space::FRAME_BYTES;
pub use stats::Stats;
pub use unfrag::{AllocError, Order};

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
