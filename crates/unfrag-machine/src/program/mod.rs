//! Programs: what tasks of a scenario do to memory, files and time, step by step.
//!
//! - [`things`], [`spec`]: what a scenario says of files and images, and of steps. [`draw`]: amounts
//!   left to chance. [`names`]: whether the names in it mean something.
//!   `limits`: whether its numbers can be. `endless`: whether programs that start programs come to an end.
//! - [`workload`]: what the tasks of a run share: trees, files, meeting points, results.
//! - [`actor`]: a process that runs steps. `files`, `jobs`, `kernel`: what its steps do.
//!   [`recorded`]: what a recorded process did, as one step.
//!
//! Invariant: a process that ends, in whatever way, leaves nothing behind but what it was told to
//! leave: files, and what it said.

pub mod actor;
pub mod amount;
mod files;
mod idle_rounds;
pub mod initial_files;
mod jobs;
mod kernel;
mod limits;
mod memory;
pub mod names;
pub mod recorded;
mod recorded_step;
mod recursion;
pub mod report;
mod scattered;
pub mod spec;
#[cfg(test)]
mod tests;
pub mod workload;

pub use actor::{Actor, Role};
pub use initial_files::InitialFiles;
pub use report::ProgramReport;
pub use spec::{Step, Steps};
pub use workload::Workload;
