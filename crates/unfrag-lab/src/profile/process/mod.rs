//! Which processes a recording shows: who started them, what they ran, when they were on a CPU.
//!
//! Of a recorded command these are its first process, all that descend from it, and nobody else: not the recorder,
//! not the kernel's threads. Of a recorded host they are all tasks. A recording without `task_newtask` does not tell
//! processes apart; then all tasks but the recorder and named kernel threads count as one.
//!
//! `events`: the events of processes. `builder`: from them to processes. `single`: recordings that do not tell them apart. `list`: the
//! result.
//!
//! Invariant: threads belong to the process whose memory they share. A process that runs several programs one after
//! the other belongs to the last. One that runs none belongs to its parent's program with ` (fork)` appended.

mod builder;
mod events;
mod list;
mod single;

pub(super) use events::reads;
pub use list::{Process, Processes};
