//! Replay of slab traces: what SLAB, SLUB and SLQB would have held for the same allocations, side by
//! side.
//!
//! - [`trace`]: from events to operations on named caches.
//! - [`run`]: the operations on each allocator, in the machine.
//! - [`report`]: what came out, for programs and for people.

pub mod report;
pub mod run;
pub mod trace;

pub use report::SlabReport;
pub use run::{Options, replay};
pub use trace::SlabTrace;
