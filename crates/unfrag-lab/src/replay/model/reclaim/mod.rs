//! The model's own reclaim and compaction in a replay.
//!
//! - `requests`: what the simulation calls: [`Reclaim`], with an [`Effort`].
//! - `request_world`: direct reclaim of one request. `kswapd`, `kcompactd`: the daemons of a node.
//! - `pages`: which pages may be reclaimed, and what is being written.

mod kcompactd;
mod kswapd;
mod pages;
mod request_world;
mod requests;
#[cfg(test)]
mod tests;

pub use kcompactd::RecordedDaemon;
pub use requests::{Effort, Reclaim, Unknowns, Waits};
