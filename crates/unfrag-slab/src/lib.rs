//! Slab caches: objects smaller than a page, or of a size of their own, over any source of pages.
//!
//! [`Slabs`] is a set of caches over [`Pages`]; a [`KmemCache`] is one of them, of one of three
//! designs behind one face: SLAB, SLUB or SLQB ([`Design`]). Whoever allocates says which CPU it is
//! by that CPU's token, [`Cpu`].
//!
//! ```
//! use std::alloc::{Layout, alloc};
//! use std::ptr::NonNull;
//! use unfrag_slab::{CacheOptions, FrameEntry, LockedPages, SlabConfig, Slabs};
//! # use unfrag::{Builder, Gfp, NullHost, Pfn};
//! # let config = Builder::new().region(Pfn(1024), 1024);
//! # let mut memory = vec![0u64; config.layout()?.words];
//! # let manager = config.boot(NullHost, &mut memory)?;
//! // A manager of 1024 frames, and the memory behind them.
//! let room = Layout::from_size_align(1024 * 4096, 4096)?;
//! let base = NonNull::new(unsafe { alloc(room) }).ok_or("no memory")?;
//! // SAFETY: the memory is that large, and only the caches use it.
//! let pages: LockedPages<_> = unsafe { LockedPages::new(manager, base) }.ok_or("no zone")?;
//!
//! let mut table: Vec<FrameEntry> = (0..1024).map(|_| FrameEntry::new()).collect();
//! let slabs = Slabs::new(&pages, &mut table, &SlabConfig::default())?;
//! let cpu = slabs.cpu(0)?;
//! let cache = slabs.create(&CacheOptions::new("filp", 192))?;
//! let object = cache.alloc(&cpu, Gfp::KERNEL)?;
//! // SAFETY: it came from this cache, and nobody else has it.
//! unsafe { cache.free(&cpu, object)? };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The rooms, from the ground up
//! - [`rules`], [`formulas`]: what era and administrator decide; orders, limits. [`object`]: layout of
//!   an object. [`fault`]: what is found when memory is misused.
//! - `word`, `remote`: the two lock-free words, each checked under loom. `lock`, `sync`: what they and
//!   the others are made of.
//! - [`pages`]: where slabs come from; `page_block`: pages for others. `map`: the direct map through
//!   which they are seen. `boot`: the bootstrap cache, where all records live. `memory`: these together.
//! - `list`: lists of slabs. `cache_record`, `array_cache`: what a cache, a CPU and a node have;
//!   `slab_record`: what a slab has. `set`: the caches of a set, and its CPUs' tokens.
//! - `grow`: new slabs, and slabs that go. `slub`, `slqb`, `array` (SLAB): the designs, which work on a
//!   `work`. `debug`: checked caches. `slow`: where a hit ends and a design begins.
//! - [`cache`]: hits. [`cpu`]: who is running. [`options`], `plan`, `create`, [`destroy`]: caches come
//!   and go. [`system`]: a set of caches. [`stat`]: counts. [`validate`]: what must hold, checked.
//! - [`due`], `reap`: work from time to time. [`shrink`]: who gives memory back when reclaim asks.
//! - [`kmalloc`], [`typed`], [`heap`]: sizes, types, and a global allocator.
//! - [`locked`]: pages from a [`Manager`](unfrag::Manager). `sharing`: what threads may share.
//!
//! No two of them import each other, however far around.
//!
//! # One allocation
//! [`KmemCache::alloc`] takes the first object of the CPU's chain. If there is none, `slow` asks the
//! design: SLUB reloads from its slab, its partial slabs, its node's; SLQB claims what other CPUs
//! freed, then its partial slabs; SLAB fills its array from the shared one, then from slabs. Failing
//! all of that, `grow` makes a slab of the order that [`formulas`] gave.
#![no_std]
#![deny(unsafe_code)]

#[cfg(any(test, loom, shuttle))]
extern crate std;

mod array;
mod array_cache;
mod boot;
pub mod cache;
mod cache_record;
pub mod cpu;
mod create;
mod debug;
pub mod destroy;
pub mod due;
pub mod fault;
pub mod formulas;
mod grow;
pub mod heap;
pub mod kmalloc;
mod list;
mod lock;
pub mod locked;
mod map;
mod memory;
pub mod object;
pub mod options;
mod page_block;
pub mod pages;
mod plan;
mod reap;
mod remote;
pub mod rules;
mod set;
mod sharing;
pub mod shrink;
mod slab_record;
mod slow;
mod slqb;
mod slub;
pub mod stat;
mod sync;
pub mod system;
pub mod typed;
pub mod validate;
mod word;
mod work;

pub use cache::{KmemCache, NoMemory};
pub use cpu::{Cpu, CpuError};
pub use destroy::{DestroyError, Shrunk};
pub use due::Due;
pub use fault::{Fault, FaultKind, Name};
pub use heap::{AlreadyInstalled, CurrentCpu, Heap};
pub use kmalloc::{Kmalloc, kmalloc_size};
pub use lock::SpinLock;
pub use locked::LockedPages;
pub use object::{CacheFlags, Constructor};
pub use options::{CacheOptions, CreateError};
pub use page_block::PageBlock;
pub use pages::{PageRequest, Pages, Window};
pub use rules::{Design, FirstAttempt, OrderSearch, Rules, SlqbRules, SlubRules};
pub use shrink::{ShrinkResult, Shrinker, ShrinkerId};
pub use stat::CacheInfo;
pub use system::{FrameEntry, SlabConfig, Slabs, SlabsError};
pub use typed::{Cache, Handle, Parcel, Refused};
pub use validate::Broken;

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
