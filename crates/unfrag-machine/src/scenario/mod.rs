//! A run described by a file: the machine, the programs, the tasks, what to measure.
//!
//! - [`mod@file`]: what a scenario file says. [`units`]: its quantities. [`error`]: its mistakes.
//!   `like`: machines that are as others. `recorded`: finds recorded programs. `check`: whether it holds together.
//! - [`zones`], [`build`]: the machine. [`kernel`]: the kernel on it. [`kernel_table`]: what a file says of it.
//! - [`run`]: running it, and what came of it. [`series`]: what it looks like over time.
//!   [`obstacles`]: what stands in the way of large blocks.
//!
//! Invariant: a [`Scenario`] has been checked: every name in it means something, every place fits.

pub mod build;
mod check;
pub mod file;
mod inheritance;
pub mod kernel;
pub mod kernel_table;
pub mod parse;
mod profiles;
pub mod run;
pub mod series;
mod source;
#[cfg(test)]
mod tests;
mod toml_error;
pub mod zones;

pub use crate::input::{Bytes, Percent, Rate, ScenarioError, Time};
pub use crate::kernel::mm::obstacles::{Held, Obstacles};
pub use file::{File, Layout, Machine};
pub use kernel::Kernel;
pub use parse::Scenario;
pub use run::{Outcome, Progress, Run, TaskOutcome};
pub use series::{MemoryByUse, Sample, ZoneSize};
