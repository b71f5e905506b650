//! Programs: what the tasks of a scenario do to memory, files and time, step by step.
//!
//! - [`initial_files`]: files and images that exist before the run. [`spec`]: the steps. [`amount`]: amounts,
//!   fixed or random. [`recorded`]: what recorded processes did.
//! - [`names`]: the check of the names in them. `limits`: the check of their numbers. `recursion`: the check
//!   that no program starts itself.
//! - [`report`]: what programs report. [`workload`]: what the tasks of a run share: programs, files, barriers.
//! - `idle_rounds`: repetitions that take no virtual time. `scattered`: a share of an area's pages.
//! - [`actor`]: a process that runs steps. `memory`, `discard`, `files`, `jobs`, `kernel`,
//!   `recorded_step`: its steps.
//!
//! Invariant: a process that ends, in whatever way, leaves nothing behind but the files and reports that its
//! steps ask for.

pub mod actor;
pub mod amount;
mod discard;
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
