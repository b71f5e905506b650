//! A page allocator to embed that does not fragment: any number of CPUs, 0.17 bytes of metadata a frame, blocks to a gigabyte.
//!
//! It runs anywhere: it has no `std`, never allocates, does no I/O, and keeps its metadata in memory that the caller hands
//! in. It hands out numbers of frames ([`Pfn`]); the memory behind them is the caller's. The locks are the caller's too
//! ([`lock_api::RawMutex`]).
//!
//! ```
//! use unfrag::maps::Gigabyte;
//! use unfrag::{Memory, MemoryConfig, MemoryLayout, MigrateType::Movable, Order, Pfn};
//!
//! // There may be frames in the first 4 GiB, and two CPUs take them.
//! const CONFIG: MemoryConfig = MemoryConfig::new(Pfn(0), 4 << 18).with_locals(2);
//! const ROOM: MemoryLayout = MemoryLayout::of(&CONFIG);
//! static MEMORY: Memory<spin::Mutex<()>> = Memory::new(CONFIG);
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut words = vec![0; ROOM.words].leak();
//!     let directory = Vec::leak((0..ROOM.gigabytes).map(|_| Gigabyte::NONE).collect());
//!     MEMORY.start(directory, &mut words)?;
//!     for (start, frames) in [(0x1, 0x9e), (0x100, 0xbff00), (0xc4000, 0x3c000)] {
//!         MEMORY.add(Pfn(start), frames, &mut words)?; // The memory map, with its holes.
//!     }
//!     let cpu = || {
//!         let mut cpu = MEMORY.local().expect("one for each");
//!         let huge = cpu.alloc(Order::HUGE, Movable).expect("a huge page");
//!         // SAFETY: this CPU took it, and nobody uses it any more.
//!         unsafe { cpu.free(huge, Order::HUGE, Movable) }.expect("in use");
//!     };
//!     std::thread::scope(|cpus| (0..2).for_each(|_| drop(cpus.spawn(cpu))));
//!     Ok(())
//! }
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
//! - [`owners`]: a word a frame for who has it, and reclaim, which asks owners in turn.
//!
//! # One allocation
//! From the call to the frame, with the file of each step:
//! 1. `local/cpu.rs`: [`Local::alloc`] takes a frame from the CPU's own array of that order and type (`local/arrays.rs`).
//! 2. `memory/taking.rs`: an empty array is refilled by half in one batch, under the lock of one shard; the batch is reserved
//!    above the watermark first (`memory/totals.rs`).
//! 3. `maps/engine.rs`: the shard takes from its fullest block of that type (`maps/bins.rs`), by the bits of the block's map
//!    (`maps/map.rs`). Without such a block, a whole free one becomes one of that type (`maps/gigabyte.rs`); without that, another
//!    type's is taken over, the emptiest.
//! 4. If memory is short, what all CPUs keep is drained (`local/drain.rs`); if that is not enough, the request fails with an
//!    [`AllocError`]. If memory is fragmented, an [`Evacuator`](moves::Evacuator) makes room.
//!
//! # What it needs of a machine
//! Atomic words of 64 bits, which all machines of 64 bits have, and x86 and ARMv7-A of 32; where there are none, as on
//! ARMv7-M, it does not compile, and says so.
#![no_std]
#![deny(unsafe_code)]

#[cfg(not(target_has_atomic = "64"))]
compile_error!(
    "unfrag numbers frames in atomic words of 64 bits, which this machine does not have"
);

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
pub mod owners;

pub use error::AllocError;
pub use frame::{CpuId, Geometry, MAX_ORDER, MigrateType, NodeId, Order, Pfn};
pub use gfp::Gfp;
pub use local::{Barrier, Local, SINGLES};
pub use lock_api;
pub use memory::{
    Area, Areas, MAX_NODES, MAX_SHARDS, Marks, Memory, MemoryConfig, MemoryLayout, Report, Request,
    StartError,
};

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
