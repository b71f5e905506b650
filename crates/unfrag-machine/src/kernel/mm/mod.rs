//! The kernel's work on memory.
//!
//! - `alloc`: pages and slab objects. `caller`: on whose behalf. `needs`: what the allocator's operations wait for.
//! - [`touch`], `fault`, `swapin`, `file_area`: touching memory. `areas`: areas of address spaces.
//! - `huge`: huge pages of anonymous memory.
//! - `process`: fork, exec, exit.
//! - `evict`, `migrate`: what the allocator's reclaim and compaction ask of owners. `kswapd`, `kcompactd`: the daemons.
//!   `oom`: the OOM killer.
//! - `bios`: the objects that transfers hold. `crypt_pages`: pages of encrypting layers.
//! - `prefetch`: records of pages, fetched before they are used.
//! - [`account`]: every frame accounted for. [`obstacles`]: what prevents large blocks.

pub mod account;
pub mod alloc;
mod areas;
mod bios;
pub(crate) mod caller;
mod crypt_pages;
mod evict;
mod fault;
mod file_area;
mod huge;
mod kcompactd;
mod kswapd;
mod migrate;
mod needs;
pub mod obstacles;
mod oom;
pub(crate) mod prefetch;
mod process;
mod swapin;
#[cfg(test)]
mod tests;
pub mod touch;

pub use caller::Who;
