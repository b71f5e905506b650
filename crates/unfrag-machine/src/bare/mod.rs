//! A machine of page frames alone, for memory of terabytes: one program, kswapd and kcompactd, each with a clock of its
//! own. There are no files, no swap and no devices; what the machine knows of a page is one bit.
//!
//! - [`machine`]: the machine, and requests of its program. `daemon`: kswapd and kcompactd, beside it in time.
//! - `memory`: the allocator, the owners of pages, and what a step of either costs. [`fragment`]: how memory becomes
//!   fragmented.
//!
//! Invariant: a run is a function of its description. No event of a daemon is later than the program's clock when the
//! program acts, and time passes once: what a step costs is added to the clock of who made it.

mod daemon;
pub mod fragment;
pub mod machine;
mod memory;
#[cfg(test)]
mod tests;

pub use daemon::Attempt;
pub use fragment::{Holes, Kept};
pub use machine::{Bare, Description, Served};
pub use memory::Spent;
