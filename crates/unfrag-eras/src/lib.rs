//! The Linux page allocator as a value: buddy lists grouped by mobility, per-CPU lists, zones, reclaim and compaction, by the
//! rules of every era from 2.6.14 on.
//!
//! It is what replays and simulations run; the allocator to embed is the crate [`unfrag`], from which this one has its words
//! ([`Pfn`], [`Order`], [`MigrateType`] and what else [`frame`] lists). One caller at a time changes a [`Manager`].
//!
//! It runs anywhere: it has no `std`, never allocates, does no I/O, and keeps its metadata (16
//! bytes a frame) in memory that the caller hands in.
//!
//! ```
//! use unfrag_eras::{Builder, CpuId, Gfp, NullHost, Order, Pfn, Request};
//!
//! let config = Builder::new().region(Pfn(0x10_0000), 65536).era("6.18");
//! let mut memory = vec![0u64; config.layout()?.words];
//! let mut manager = config.boot(NullHost, &mut memory)?;
//! let huge = manager.alloc(&Request::new(Order::HUGE, Gfp::HIGHUSER_MOVABLE))?;
//! manager.free(CpuId(0), huge, Order::HUGE)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The modules
//! No two files import each other, directly or through others. From the ground up:
//! - [`frame`]: numbers of frames, orders, zones and CPUs, migrate types, geometry, and the frame table.
//! - [`stat`]: counters, and indexes of fragmentation.
//! - [`gfp`]: flags and rights of a request. `request`: [`Request`], and why one fails ([`AllocError`]).
//! - [`kernel`]: an era as a value: rules, sysctls, presets. `policy`: the rules and settings in force.
//!   [`rights`]: the rights of a request in the slow path.
//! - [`trace`]: tracepoints as typed events. [`source`]: what chooses frames in place of lists. [`host`]: the receiver of the
//!   former, which may have the latter. `tracer`: the way to it.
//! - `placement`: buddy lists by migrate type, and fallbacks between types.
//! - [`zone`]: watermarks, reserves, zone order. `node`: the zones of a node, and its kswapd.
//! - [`pcp`]: per-CPU lists.
//! - [`lru`]: pages in use, on LRU lists.
//! - [`evict`], [`need`]: what an operation needs of its world before it can go on.
//! - `config`, `manager`, `boot`, [`builder`](Builder): [`Manager`], and how it is made.
//! - [`drive`]: operations, worlds, and the loop that runs one in the other.
//! - [`reclaim`]: kswapd, direct reclaim.
//! - [`page_alloc`]: allocating and freeing; [`Allocation`] is the slow path.
//! - [`contig`]: claiming ranges and contiguous runs of any size; memory offline and online.
//! - [`inspect`], [`validate`], [`restore`], `lab`, `twin`: reading, checking, rebuilding and doubling the state.
//!
//! # One allocation
//! From the call to the frame, with the file of each step:
//! 1. `page_alloc/fast.rs`: [`Manager::alloc`] derives the migrate type and the highest zone from the [`Gfp`]
//!    flags. If the CPU's own list has a block and the best zone is well above its watermark, that block is the
//!    answer (`pcp_alloc`).
//! 2. `page_alloc/watermarked.rs`: otherwise the fast path walks the zones of `zone/zonelist.rs` from the best
//!    down. The first one that passes its low watermark (`zone/passes.rs`) is asked.
//! 3. `pcp/cpu_lists.rs`: the zone's per-CPU list serves orders 0 to 3 and 9 (order 0 in older eras). It is
//!    refilled from the buddy lists when empty. Other orders go to the buddy lists directly.
//! 4. `zone/ops.rs`, `placement/free_area.rs`, `placement/lists.rs`: the smallest block of the request's own
//!    type that fits is taken and split, and the upper halves are put back.
//! 5. `placement/fallback.rs`: without such a block, another type's block is taken by the era's rules.
//! 6. `page_alloc/allocation.rs`: if no zone passes, an [`Allocation`] wakes kswapd and tries again down to the
//!    min watermark and the reserves that the caller may use. One that [`Manager::begin`] made also reclaims
//!    (`reclaim/direct.rs`), driven by a [`World`](drive::World).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod boot;
mod builder;
pub mod compact;
mod config;
pub mod contig;
pub mod drive;
pub mod evict;
pub mod frame;
pub mod gfp;
pub mod host;
pub mod inspect;
pub mod kernel;
#[cfg(feature = "lab")]
pub mod lab;
pub mod lru;
mod manager;
pub mod migrate;
pub mod need;
mod node;
pub mod page_alloc;
pub mod pcp;
mod placement;
mod policy;
pub mod reclaim;
mod request;
pub mod restore;
pub mod rights;
pub mod source;
pub mod stat;
pub mod trace;
mod tracer;
#[cfg(feature = "lab")]
mod twin;
pub mod validate;
pub mod zone;

pub use builder::Builder;
pub use config::{Config, ConfigError, Layout, layout};
pub use contig::{Claim, ClaimError, Offline, OnlineError};
pub use frame::{CpuId, Geometry, MAX_ORDER, MigrateType, NodeId, Order, Pfn, ZoneId};
pub use gfp::{AllocFlags, Gfp};
pub use host::{Host, NullHost};
pub use kernel::{Rules, Sysctl, preset};
pub use manager::Manager;
pub use page_alloc::{Allocation, Begun, FreeError, Move, MoveError};
pub use placement::{V19_TYPES, V19Stats, v19_type_name};
pub use request::{AllocError, Context, Request, highest_zone};
pub use zone::{ZoneConfig, ZoneKind};

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
