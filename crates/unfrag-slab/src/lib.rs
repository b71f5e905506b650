//! Slab caches: objects smaller than a page, or of a size of their own, over any source of pages.
//!
//! [`Slabs`] is a set of caches over [`Pages`]; a [`KmemCache`] is one of them, of one of three
//! designs behind one interface: SLAB, SLUB or SLQB ([`Design`]). Each call names its CPU by that CPU's
//! token, [`Cpu`].
//!
//! Over the engine, a [`Memory`](unfrag::Memory) that any number of CPUs share:
//! ```
//! use std::alloc::{Layout, alloc};
//! use std::ptr::NonNull;
//! use unfrag::maps::Gigabyte;
//! use unfrag::{Gfp, Memory, MemoryConfig, MemoryLayout, Pfn};
//! use unfrag_slab::{CacheOptions, FrameEntry, MemoryPages, SlabConfig, Slabs, SpinLock, Window};
//!
//! // A memory of 1024 frames.
//! let config = MemoryConfig::new(Pfn(0), 1024);
//! let room = MemoryLayout::of(&config);
//! let mut words = vec![0; room.words].leak();
//! let directory = Vec::leak((0..room.gigabytes).map(|_| Gigabyte::NONE).collect());
//! let memory: Memory<SpinLock> = Memory::new(config);
//! memory.start(directory, &mut words)?;
//! memory.add(Pfn(0), 1024, &mut words)?;
//! // Where the frames are. In a kernel it is the direct map.
//! let room = Layout::from_size_align(1024 * 4096, 4096)?;
//! let base = NonNull::new(unsafe { alloc(room) }).ok_or("no memory")?;
//! let window = Window { first: Pfn(0), frames: 1024, base };
//! // SAFETY: the memory is that large, and only the caches use it.
//! let pages = unsafe { MemoryPages::new(&memory, window) }.ok_or("no window")?;
//!
//! let mut table: Vec<FrameEntry> = (0..1024).map(|_| FrameEntry::new()).collect();
//! let slabs = Slabs::new(&pages, &mut table, &SlabConfig::default())?;
//! let cpu = slabs.cpu(0)?;
//! let cache = slabs.create(&CacheOptions::new("filp", 192))?;
//! let object = cache.alloc(&cpu, Gfp::KERNEL)?;
//! // SAFETY: it came from this cache, and is not used elsewhere.
//! unsafe { cache.free(&cpu, object)? };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! Over an allocator of an era of Linux, a manager of the crate `unfrag-eras` (feature `eras`), the rest being the same:
//! ```
//! use std::alloc::{Layout, alloc};
//! use std::ptr::NonNull;
//! use unfrag_slab::{FrameEntry, LockedPages, SlabConfig, Slabs};
//! # use unfrag::Pfn;
//! # use unfrag_eras::{Builder, NullHost};
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
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The modules
//! No two files import each other, directly or through others. By what they are about, the ground first:
//! - [`rules`]: rules of an era. [`formulas`]: orders, objects of a slab, limits of lists. [`object`]: layout of an
//!   object. [`fault`]: misuses of memory.
//! - `word`, `remote`: the two lock-free words, each checked under loom. `lock`, `sync`: locks and atomics.
//! - [`pages`]: the source of pages. `page_block`: pages for other users. `map`: the direct map. `bootstrap`: the
//!   bootstrap cache, where all records live. `memory`: these together.
//! - `list`: lists of slabs. `cache_record`, `array_cache`, `slab_record`: the records of caches, CPUs, nodes and
//!   slabs. `set`: the caches of a set, and the tokens of its CPUs.
//! - `grow`: making and discarding slabs. `slub`, `slqb`, `array` (SLAB): the designs; `work`: their operands.
//!   `debug`: checked caches. `slow`: the slow paths.
//! - [`cache`]: the fast paths. [`cpu`]: the token of a CPU. [`options`], `plan`, `create`, [`destroy`]: making and
//!   destroying caches. [`system`]: a set of caches. [`stat`]: counts. [`validate`]: invariants.
//! - [`due`], `reap`: periodic work. [`shrink`]: what reclaim asks an owner of objects for.
//! - [`sizes`], [`kmalloc`], [`typed`], [`heap`]: caches by size, caches by type, a global allocator.
//! - [`memory_pages`]: pages from the engine, a [`Memory`](unfrag::Memory). `locked` (feature `eras`): pages from a manager of
//!   the crate `unfrag-eras`.
//! - `hold`: all locks of a set at once. `sharing`: checks of `Send` and `Sync`.
//!
//! # One allocation
//! From the call to the frames, with the file of each step:
//! 1. `cache.rs`: [`KmemCache::alloc`] takes the first object of the CPU's chain.
//! 2. `slow.rs`: without one, it asks the design of the cache.
//! 3. `slub.rs`: SLUB reloads from the CPU's slab, then from its partial slabs, then from those of the node.
//!    `slqb.rs`: SLQB claims what other CPUs freed, then takes a partial slab. `array.rs`: SLAB fills the CPU's
//!    array from the shared one, then from slabs.
//! 4. `grow.rs`: without a free object, a new slab is made, of the order that `formulas.rs` gave.
//! 5. `pages.rs`: its frames come from the source of pages, such as `memory_pages.rs` over the engine.
#![no_std]
#![deny(unsafe_code)]

#[cfg(any(test, loom, shuttle))]
extern crate std;

mod array;
mod array_cache;
mod bootstrap;
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
mod hold;
pub mod kmalloc;
mod list;
mod lock;
#[cfg(feature = "eras")]
pub mod locked;
mod map;
mod memory;
pub mod memory_pages;
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
pub mod sizes;
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
pub use hold::HeldLocks;
pub use kmalloc::Kmalloc;
pub use lock::SpinLock;
#[cfg(feature = "eras")]
pub use locked::LockedPages;
pub use memory_pages::MemoryPages;
pub use object::{CacheFlags, Constructor};
pub use options::{CacheOptions, CreateError};
pub use page_block::PageBlock;
pub use pages::{PageRequest, Pages, Window};
pub use rules::{Design, FirstAttempt, OrderSearch, Rules, SlqbRules, SlubRules};
pub use sizes::{Sizes, kmalloc_size};
pub use stat::CacheInfo;
pub use system::{FrameEntry, SlabConfig, Slabs, SlabsError};
pub use typed::{Cache, Handle, Parcel, Refused};
pub use validate::Broken;

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
