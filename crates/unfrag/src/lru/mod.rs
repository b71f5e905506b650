//! Pages in use that wait for reclaim: lists by age and kind, and what became of each page.
//!
//! - `kind`: which lists there are. `lists`: those of a zone or of a node.
//! - `counts`: what is counted when flags change.
//! - `pages`: [`PagesMut`], the way to change lists and flags.
//!
//! Invariant: a page is on the LRU list that its state names, or isolated by the one operation that
//! holds it.

mod counts;
mod kind;
mod lists;
mod pages;

pub(crate) use counts::FlagCounts;
pub(crate) use kind::ISOLATED;
pub use kind::{Lru, NR_LRU};
pub(crate) use lists::{DEF_PRIORITY, LruLists, SWAP_CLUSTER_MAX};
pub use pages::PagesMut;
