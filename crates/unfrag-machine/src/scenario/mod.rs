//! A run described by a file: the machine, the programs, the tasks, what to measure.
//!
//! - [`mod@file`]: the contents of a scenario file. [`kernel_table`]: its `[kernel]`.
//! - [`kernel`]: the kernels that a scenario can run on. [`zones`], [`build`]: the machine.
//! - `source`: the text, for mistakes at its places. `toml_error`: the messages of the TOML reader.
//!   `inheritance`: machines that inherit from others. `profiles`: recorded programs.
//!   `check`: whether the file is consistent.
//! - [`reader`]: a scenario that was read and checked: [`Scenario`].
//! - [`series`]: samples over time. [`run`]: the run and its outcome.
//!
//! Invariant: a [`Scenario`] has been checked: every name in it is known, every place fits.

pub mod build;
mod check;
pub mod file;
mod inheritance;
pub mod kernel;
pub mod kernel_table;
mod profiles;
pub mod reader;
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
pub use reader::Scenario;
pub use run::{Outcome, Progress, Run, TaskOutcome};
pub use series::{MemoryByUse, Sample, ZoneSize};
