//! A page allocator that does not fragment: buddy lists grouped by mobility, per-CPU lists, and every
//! era of the Linux allocator as a setting.
//!
//! The core runs anywhere: it has no `std`, never allocates, does no I/O, and keeps its metadata (16
//! bytes a frame) in memory that the caller hands in.
//!
//! ```
//! use unfrag::{Config, Gfp, Manager, NullHost, Pfn, Sysctl, ZoneConfig, ZoneKind, layout, preset};
//!
//! let zones = [ZoneConfig {
//!     node: 0,
//!     kind: ZoneKind::Normal,
//!     start: Pfn(0x10_0000),
//!     spanned: 65536,
//!     present: 65536,
//!     managed: 65536,
//! }];
//! let switches = preset("6.18").unwrap().switches;
//! let config = Config { zones: &zones, cpus: 1, switches, sysctl: Sysctl::default() };
//! let mut memory = vec![0u64; layout(&config)?.words];
//! let mut manager = Manager::boot(&config, NullHost, &mut memory)?;
//! let huge = manager.alloc(9, Gfp::HIGHUSER_MOVABLE)?;
//! manager.free(huge, 9)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The rooms
//! - [`frame`]: the vocabulary, and the frame table.
//! - [`gfp`]: what a request asks for.
//! - [`kernel`]: an era as a value: switches, sysctls, presets.
//! - `place`: which free block serves a request, and where a freed one goes.
//! - [`zone`]: watermarks, reserves.
//! - [`pcp`]: per-CPU lists.
//! - [`page_alloc`]: the fast and the slow path; [`Manager`].
//! - [`reclaim`]: LRU lists, kswapd, direct reclaim.
//! - [`stat`]: counters and indexes of fragmentation.
//! - [`trace`]: the kernel's own tracepoints as typed events.
//! - [`host`]: what the core needs from its world; [`hint`]: what it tells the processor.
//!
//! # One allocation
//! [`Manager::alloc`] derives the migrate type and the highest zone from the [`Gfp`] flags. The fast
//! path walks the zones from the best down; the first one that passes its low watermark is asked:
//! its per-CPU list for orders 0 to 3 and 9, refilled from the buddy lists when empty, else the buddy
//! lists themselves. There `place` takes the smallest block of the request's own type that fits,
//! splits it, and puts the upper halves back; if there is none, it falls back to another type by the
//! era's rules. If no zone passes, the slow path wakes kswapd and goes down to the min watermark and
//! to what reserves the caller may use.
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod frame;
pub mod gfp;
pub mod hint;
pub mod host;
pub mod kernel;
pub mod page_alloc;
pub mod pcp;
mod place;
pub mod reclaim;
pub mod stat;
pub mod trace;
pub mod zone;

pub use frame::{MAX_ORDER, MigrateType, Pfn};
pub use gfp::{AllocFlags, Gfp};
pub use host::{Host, NullHost};
pub use kernel::{Switches, Sysctl, preset};
pub use page_alloc::{AllocError, Config, FreeError, Layout, Manager, MoveError, layout};
pub use place::{V19_TYPES, V19Stats, v19_type_name};
pub use zone::{ZoneConfig, ZoneKind};
