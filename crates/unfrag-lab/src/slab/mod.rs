//! Replay of slab traces: what SLAB, SLUB and SLQB would have held for the same allocations, side by
//! side.
//!
//! - `events`: the recorded events, and the cache of each allocation. [`names`]: what slabinfo calls caches. [`trace`]: operations on named caches.
//! - [`run`]: the operations on each allocator, in the machine.
//! - [`report`]: the result, as data. [`text`]: the same for people.
//!
//! Invariant: a report is a function of the trace and the options.

mod events;
pub mod names;
pub mod report;
pub mod run;
pub mod text;
pub mod trace;

pub use report::SlabReport;
pub use run::{Options, replay};
pub use trace::SlabTrace;
