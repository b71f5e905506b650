//! The memory of the simulated kernel, as state: who owns which page, and where each page is.
//!
//! - [`frames`]: the owner of each frame.
//! - [`object`]: ranges of pages by index.
//! - [`process`]: processes and their areas.
//! - [`swap`]: slots of swap.
//! - `bio_pool`, `crypt_pool`: what transfers and encrypting layers hold, and their reserves.
//! - [`thp`]: settings of transparent huge pages.
//! - [`config`]: sizes, rules of the era, costs.
//! - [`counters`]: event counters. [`alloc_failure`]: reports of failed allocations.
//! - [`bit_set`]: a growing set of small numbers.

pub mod alloc_failure;
pub(crate) mod bio_pool;
pub mod bit_set;
pub mod config;
pub mod counters;
pub mod crypt_pool;
pub mod frames;
pub mod object;
pub mod process;
pub mod swap;
pub mod thp;

pub use config::{DirtyConfig, FlusherForm, MemConfig, MemCosts};
pub use counters::VmCounters;
