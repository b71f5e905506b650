//! Programs: what tasks of a scenario do to memory, files and time, step by step.
//!
//! - [`things`], [`spec`]: what a scenario says of files and images, and of steps. [`draw`]: amounts
//!   left to chance. [`names`]: whether the names in it mean something.
//!   `limits`: whether its numbers can be. `endless`: whether programs that start programs come to an end.
//! - [`stage`]: what the tasks of a run share: trees, files, meeting points, results.
//! - [`actor`]: a process that runs steps. `files`, `jobs`, `kernel`: what its steps do.
//!   [`recorded`]: what a recorded process did, as one step.
//!
//! Invariant: a process that ends, in whatever way, leaves nothing behind but what it was told to
//! leave: files, and what it said.

pub mod actor;
pub mod draw;
mod endless;
mod files;
mod jobs;
mod kernel;
pub(super) mod limits;
pub mod names;
pub mod recorded;
pub mod spec;
pub mod stage;
#[cfg(test)]
mod tests;
pub mod things;

pub use actor::{Actor, Role};
pub use spec::{Step, Steps};
pub use stage::{Stage, StageReport};
pub use things::Things;
