//! A run described by a file: the machine, the programs, the tasks, what to measure.
//!
//! - [`file`]: what a scenario file says. [`units`]: its quantities. [`error`]: its mistakes.
//! - [`zones`]: zones of a machine's memory.

pub mod error;
pub mod file;
pub mod units;
pub mod zones;

pub use error::ScenarioError;
pub use units::{Bytes, Rate, Time};
