//! A recording of this host: the page allocator's events and procfs beside them, in one file.
//!
//! - [`tracefs`]: an instance of the kernel's tracer that is ours alone.
//! - [`events`]: which events are recorded.
//! - [`spooler`]: from the ring buffers to files, while it runs.
//! - [`procfs`]: the host's own view of its memory, once a second.
//! - [`command`]: the recorded command, traced from its first page on.
//! - [`names`]: names of tasks, where they may be known.
//! - [`spool`]: the directory that collects all this.
//! - [`guardian`]: who cleans up if the recorder dies.
//! - `deferred`: frees that the kernel does later, elsewhere.
//! - [`finish`]: from that directory to the file.
//! - [`balance`]: whether allocations and frees add up.
//! - [`session`]: the order in which it happens; `signals`: what ends it early.
//!
//! Invariant: the host's own tracing is not touched, whatever happens; and the trace begins and ends with a marker,
//! between which the first and the last snapshot lie, on one clock.

pub mod balance;
pub mod command;
mod deferred;
pub mod events;
pub mod finish;
pub mod guardian;
mod host;
pub mod names;
pub mod procfs;
pub mod session;
mod signals;
mod snapshot;
pub mod spool;
pub mod spooler;
pub mod tracefs;

pub use guardian::{recover, watch};
pub use procfs::Untaken;
pub use session::{BEGIN, Done, END, Options, Scope, record};
pub use snapshot::snapshot;
