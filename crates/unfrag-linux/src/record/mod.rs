//! A recording of this host: the page allocator's events, with procfs beside them, in one file.
//!
//! - [`tracefs`]: an instance of the kernel's tracer, used by this recording alone.
//! - [`events`]: the events that are recorded.
//! - `stacks`: kernel stacks of events, and names for them.
//! - [`spool`]: the directory that collects a recording while it is made; `spool_name`: what its name says.
//! - [`spooler`]: copies the ring buffers to files of the spool while the recording runs.
//! - [`names`]: names of tasks and of kernel threads.
//! - [`procfs`]: snapshots of procfs, one a second.
//! - `host`: kernel, page size and CPUs of the host.
//! - [`command`]: the recorded command, traced from its first page on.
//! - `deferred`: frees that the kernel puts off, and another task then does.
//! - [`finish`]: makes the file from the spool.
//! - [`rotation`]: a recording of days, in segments; `rate`: how much that writes; `recovery`: what dead recorders left of one.
//! - [`guardian`]: the process that finishes the recording if the recorder dies.
//! - [`session`]: the whole course of a recording.
//! - [`snapshot`](fn@snapshot): one moment, without a trace.
//! - [`balance`]: whether a recording's allocations and frees add up.
//!
//! Invariant: the host's own tracing is never touched. The trace begins and ends with a marker; the first
//! and the last snapshot lie between the two, on one clock.

pub mod balance;
pub mod command;
mod deferred;
pub mod events;
pub mod finish;
pub mod guardian;
mod host;
pub mod names;
pub mod procfs;
mod rate;
mod recovery;
pub mod rotation;
pub mod session;
mod snapshot;
pub mod spool;
mod spool_name;
pub mod spooler;
mod stacks;
pub mod tracefs;

pub use guardian::{Watched, recover, watch};
pub use procfs::Untaken;
pub use rate::Rate;
pub use recovery::Found;
pub use rotation::{Keep, Totals};
pub use session::{BEGIN, Done, DoneInSegments, END, Options, Scope, record, record_in_segments};
pub use snapshot::snapshot;
