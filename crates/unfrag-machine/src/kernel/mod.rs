//! The simulated kernel.

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
