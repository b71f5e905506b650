//! LRU lists: pages in use, by kind and age, and their flags.
//!
//! - `kind`: the kinds of lists. `lists`: those of a zone or of a node.
//! - `generations`: those of multi-gen LRU, in place of active and inactive lists.
//! - `counts`: counters that follow the flags.
//! - `pages`: [`PagesMut`], the way to change lists and flags.
//!
//! Invariant: a page is on the LRU list that its state names, or isolated by the one operation that
//! holds it.

mod counts;
mod generations;
mod kind;
mod lists;
mod pages;

pub(crate) use counts::FlagCounts;
pub(crate) use generations::{
    GENERATION_BATCH, Generations, LEAST, MOST, Place, first_priority, tier,
};
pub(crate) use kind::{ISOLATED, ISOLATED_OTHER};
pub use kind::{Lru, NR_LRU};
pub(crate) use lists::{DEF_PRIORITY, LruLists, SWAP_CLUSTER_MAX};
pub use pages::PagesMut;
