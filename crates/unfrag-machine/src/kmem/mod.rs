//! The slab caches of the simulated kernel: how many objects share which pages, and when pages come and
//! go.
//!
//! A cache has the order and objects that the slab crate's own [`formulas`](unfrag_slab::formulas) give,
//! and keeps its free objects as one of three designs does: `slub`, `slab` (per-CPU arrays), `slqb`. There
//! is no memory behind the pages. An object is known by its slab, which is all that decides when a page
//! comes and goes. Growing is apart from taking ([`Kmem::take`], [`Kmem::add_slab`]), because the caller
//! may have to wait for the page.
//!
//! - `records`: the records of slabs and the counters of caches. `list`: lists of slabs.
//! - `slub`, `slab`, `slqb`: the designs.
//! - `allocator`: all caches of a machine, [`Kmem`].
//! - [`caches`]: the kernel's caches and the sizes of their objects.
//! - [`grow`]: which pages are tried for a new slab.
//! - [`shrinker`]: how many objects reclaim asks a cache for.
//! - [`backed`]: caches of [`unfrag_slab`] over real memory.
//!
//! The tests `against_slabs` compare it with the caches of [`unfrag_slab`], which have memory.
//!
//! Invariant: the objects of a slab are in use, free on it, or free with a CPU (or a node). A slab is on
//! the list that its `place` names. Its pages are freed when none of its objects is in use or with a CPU,
//! as its design says. [`Kmem::validate`] checks this. `spec: 6.1-6.5`

#[cfg(test)]
mod against_slabs;
mod allocator;
pub mod backed;
pub mod caches;
pub mod grow;
mod list;
mod records;
pub mod shrinker;
mod slab;
mod slqb;
mod slub;
#[cfg(test)]
mod tests;

pub use allocator::{CacheView, Kmem};
pub use records::{CacheId, CacheStat, Obj};
