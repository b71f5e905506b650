//! What a trace alone tells, without snapshots: who asks for what, what failed, what was mixed, and what the kernel
//! did about it.
//!
//! - [`report`]: the answer, as data. `people`: who did it.
//! - `requests`, `fallbacks`, `compaction`, `reclaim`: one count for each question. `walk`: feeds them
//!   with the events. `kernel`: names by kernel.
//! - [`text`]: the answer for a terminal. `answer`: its first sentences. `phrases`: what both call processes.
//!
//! Invariant: each event is looked at once. A question whose events are not in the trace is answered with nothing,
//! never with zero, and named.

mod answer;
mod compaction;
mod fallbacks;
mod kernel;
mod people;
mod phrases;
mod reclaim;
pub mod report;
mod requests;
pub mod text;
mod walk;

pub use report::Summary;
pub(crate) use walk::Count;
pub use walk::summarize;
