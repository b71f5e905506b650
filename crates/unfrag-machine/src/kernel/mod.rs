//! The simulated kernel: its state as a whole, and all of its code that uses time, waits or allocates.
//!
//! - `state`: [`KernelState`], which owns memory, file systems, caches and network.
//! - `sim`: [`World`], the host of the page allocator; [`Sim`], what all tasks share; [`Cx`], [`Engine`].
//! - `metadata`: the memory of the page allocator's metadata.
//! - `cpu_time`: CPU time of the kernel's work. `free`: blocks that go back to the allocator.
//! - [`mm`]: allocation, page faults, processes, swap, reclaim.
//! - `block`: bios on their way to the devices and back. `fs`: files. `net`: receiving.
//! - `daemons`: periodic work. `alloc_report`, `vmstat`: reports of failed allocations, event counters.
//!
//! Code that enters the allocator is a method of [`Sim`], code that waits is a method of [`Cx`]. A page
//! fault on the fast path takes one step of each, without a switch of coroutines.

mod alloc_report;
mod block;
mod cpu_time;
mod daemons;
mod free;
mod fs;
mod metadata;
pub mod mm;
mod net;
mod sim;
mod state;
mod vmstat;

pub(crate) use cpu_time::BATCH;
pub use sim::{Cx, Engine, Sim, World};
pub use state::KernelState;
