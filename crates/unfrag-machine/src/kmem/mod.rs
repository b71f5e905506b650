//! The slab caches of the simulated kernel: how many objects share which pages, and when pages come
//! and go.
//!
//! A cache has the order and objects that the slab crate's own [`formulas`](unfrag_slab::formulas) give,
//! and keeps its free objects as one of the three designs does: `slub`, `slab` (per-CPU arrays),
//! `slqb`. No memory stands behind the pages: an object is known by the slab that it is in, which is
//! all that its page's fate depends on. So an operation takes some nanoseconds, and growing is apart
//! from taking ([`Kmem::take`], [`Kmem::add_slab`]), because the page for it may have to be waited
//! for.
//!
//! - `list`: lists of slabs. `slub`, `slab`, `slqb`: the designs.
//! - [`caches`]: the kernel's caches and the sizes of their objects.
//! - [`grow`]: pages for new slabs, from the allocator, blocking or not.
//! - [`shrinker`]: caches of objects that reclaim may ask for.
//!
//! Its tests hold it against the caches of [`unfrag_slab`], which have memory, and say where it differs.
//!
//! Invariant: the objects of a slab are in use, free on it, or free with a CPU (or a node); a slab
//! is on the list that its `place` names; its pages go back when none of its objects is in use or
//! with a CPU, as its design says. [`Kmem::validate`]. `spec: linux-mm 6.1-6.5`

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
