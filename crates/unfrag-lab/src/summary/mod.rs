//! What a trace alone tells, without snapshots: who asks for what, what failed, what was mixed, and what the kernel
//! did about it.
//!
//! - [`report`]: the answer, as data. `table`: the columns of each kind of event. `people`: who did it.
//! - `requests`, `fallbacks`, `compaction`, `reclaim`: one count for each question. `walk`: the one pass over the
//!   events that feeds them. `kernel`: names by kernel.
//! - [`text`]: the answer for a terminal.
//!
//! Invariant: each event is looked at once. A question whose events are not in the trace is answered with nothing,
//! never with zero, and named.

mod compaction;
mod fallbacks;
mod kernel;
mod people;
mod reclaim;
pub mod report;
mod requests;
mod table;
pub mod text;
mod walk;

pub use report::Summary;
pub use walk::summarize;
