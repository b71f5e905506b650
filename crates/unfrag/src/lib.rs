//! A page allocator that does not fragment: buddy lists grouped by mobility, per-CPU lists, and every
//! era of the Linux allocator as a setting.
//!
//! The core runs anywhere: it has no `std`, never allocates, does no I/O, and keeps its metadata (16
//! bytes a frame) in memory that the caller hands in.
//!
//! ```
//! use unfrag::{Builder, CpuId, Gfp, NullHost, Order, Pfn, Request};
//!
//! let config = Builder::new().region(Pfn(0x10_0000), 65536).era("6.18");
//! let mut memory = vec![0u64; config.layout()?.words];
//! let mut manager = config.boot(NullHost, &mut memory)?;
//! let huge = manager.alloc(&Request::new(Order::HUGE, Gfp::HIGHUSER_MOVABLE))?;
//! manager.free(CpuId(0), huge, Order::HUGE)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The rooms
//! Each imports only from those above it.
//! - [`frame`]: the vocabulary (ids, orders, types, geometry), and the frame table.
//! - [`gfp`]: what a request asks for. `request`: [`Request`], and why one fails ([`AllocError`]).
//! - [`kernel`]: an era as a value: rules, sysctls, presets. `rights`: what they give a request.
//! - [`trace`]: the kernel's own tracepoints as typed events. [`host`]: who listens. [`hint`]: what the
//!   core tells the processor.
//! - `place`: which free block serves a request, and where a freed one goes.
//! - [`zone`]: watermarks, reserves, zone order. `node`: its zones and its daemon.
//! - [`pcp`]: per-CPU lists.
//! - [`lru`]: pages in use that wait for reclaim.
//! - [`need`], [`evict`]: what an operation needs of its world before it can go on.
//! - `config`, `manager`, `boot`, [`builder`](Builder): [`Manager`], and how it is made.
//! - [`drive`]: operations, worlds, and the one loop.
//! - [`reclaim`]: kswapd, direct reclaim.
//! - [`page_alloc`]: the fast path, and [`Allocation`].
//! - [`inspect`], [`validate`], [`restore`], `lab`: looking inside, checking, rebuilding.
//! - [`stat`]: counters and indexes of fragmentation.
//!
//! # One allocation
//! [`Manager::alloc`] derives the migrate type and the highest zone from the [`Gfp`] flags. The fast
//! path walks the zones from the best down; the first one that passes its low watermark is asked:
//! its per-CPU list for orders 0 to 3 and 9, refilled from the buddy lists when empty, else the buddy
//! lists themselves. There `place` takes the smallest block of the request's own type that fits,
//! splits it, and puts the upper halves back; if there is none, it falls back to another type by the
//! era's rules. If no zone passes, an [`Allocation`] wakes kswapd and goes down to
//! the min watermark and to what reserves the caller may use; one that [`Manager::begin`] made reclaims,
//! with the help of the [`World`](drive::World) that drives it.
#![no_std]
#![deny(unsafe_code)]

#[cfg(any(test, loom, shuttle))]
extern crate std;

mod boot;
mod builder;
mod config;
pub mod drive;
pub mod evict;
pub mod frame;
pub mod gfp;
pub mod hint;
pub mod host;
pub mod inspect;
pub mod kernel;
#[cfg(feature = "lab")]
pub mod lab;
pub mod lru;
mod manager;
pub mod need;
mod node;
pub mod page_alloc;
pub mod pcp;
mod placement;
mod policy;
pub mod reclaim;
mod request;
pub mod restore;
mod rights;
pub mod stat;
pub mod trace;
mod tracer;
pub mod validate;
pub mod zone;

pub use builder::Builder;
pub use config::{Config, ConfigError, Layout, layout};
pub use frame::{CpuId, Geometry, MAX_ORDER, MigrateType, NodeId, Order, Pfn, ZoneId};
pub use gfp::{AllocFlags, Gfp};
pub use host::{Host, NullHost};
pub use kernel::{Rules, Sysctl, preset};
pub use manager::Manager;
pub use page_alloc::{Allocation, Begun, FreeError, Move, MoveError};
pub use placement::{V19_TYPES, V19Stats, v19_type_name};
pub use request::{AllocError, Context, Request};
pub use zone::{ZoneConfig, ZoneKind};
