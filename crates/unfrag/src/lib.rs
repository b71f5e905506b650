//! A page allocator to embed that does not fragment: any number of CPUs, 0.16 bytes of metadata a frame, blocks to a gigabyte.
//!
//! It runs anywhere: it has no `std`, never allocates, does no I/O, and keeps its metadata in memory that the caller hands
//! in. It hands out numbers of frames ([`Pfn`]); the memory behind them is the caller's. The locks are the caller's too
//! ([`lock_api::RawMutex`]).
//!
//! ```
//! use unfrag::{Local, Memory, MemoryConfig, MemoryLayout, MigrateType, Order, Pfn};
//!
//! // 65,536 frames from frame 0x100000 on, for up to four CPUs.
//! let config = MemoryConfig { locals: 4, ..MemoryConfig::new(Pfn(0x10_0000), 65536) };
//! let mut words = vec![0u64; MemoryLayout::of(&config).words];
//! let memory: Memory<spin::Mutex<()>> = Memory::new(config, &mut words).ok_or("too few words")?;
//! memory.add(Pfn(0x10_0000), 65536)?;
//!
//! let mut cpu: Local<_> = memory.local().ok_or("more CPUs than locals")?;
//! let huge = cpu.alloc(Order::HUGE, MigrateType::Movable)?;
//! assert!(huge.0.is_multiple_of(512), "a block is aligned to its size");
//! // SAFETY: nobody uses the block.
//! unsafe { cpu.free(huge, Order::HUGE, MigrateType::Movable)? };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The allocators of Linux, every era as a value, are in the crate `unfrag-eras`; slab caches in `unfrag-slab`; real memory for
//! a process in `unfrag-pool`.
//!
//! # The modules
//! No two files import each other, directly or through others. From the ground up:
//! - [`frame`]: numbers of frames, orders and CPUs, migrate types, geometry. [`gfp`]: flags of a request, for slab caches and the
//!   eras. [`error`]: why a request fails. [`formulas`]: those that others compute with too.
//! - [`arena`]: tables in the caller's memory. [`hint`]: prefetching.
//! - [`maps`]: which free frame serves a request, for one caller.
//! - [`memory`]: [`Memory`], which many CPUs share: shards of maps, each under a lock, and watermarks.
//! - [`local`]: [`Local`], what a CPU takes and gives without a lock.
//! - [`moves`]: whole free blocks, made by moving what is in the way.
//!
//! # One allocation
//! From the call to the frame, with the file of each step:
//! 1. `local/cpu.rs`: [`Local::alloc`] takes a frame from the CPU's own array of that order and type (`local/arrays.rs`).
//! 2. `memory/shards.rs`: an empty array is refilled by half in one batch, under the lock of one shard; the batch is reserved
//!    above the watermark first (`memory/totals.rs`).
//! 3. `maps/engine.rs`: the shard takes from its fullest block of that type (`maps/bins.rs`), by the bits of the block's map
//!    (`maps/map.rs`). Without such a block, a whole free one becomes one of that type (`maps/gigabyte.rs`); without that, another
//!    type's is taken over, the emptiest.
//! 4. If memory is short, what the CPUs keep is called home, and the request fails with an [`AllocError`]; if it is fragmented, an
//!    [`Evacuator`](moves::Evacuator) makes room.
#![no_std]
#![deny(unsafe_code)]

#[cfg(any(test, loom, shuttle))]
extern crate std;

pub mod arena;
pub mod error;
pub mod formulas;
pub mod frame;
pub mod gfp;
pub mod hint;
pub mod local;
pub mod maps;
pub mod memory;
pub mod moves;

pub use error::AllocError;
pub use frame::{CpuId, Geometry, MAX_ORDER, MigrateType, NodeId, Order, Pfn};
pub use gfp::Gfp;
pub use local::{Local, SINGLES};
pub use lock_api;
pub use memory::{
    Area, Areas, MAX_NODES, MAX_SHARDS, Marks, Memory, MemoryConfig, MemoryLayout, Report, Request,
    StartError,
};

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
