//! What the readers of scenarios, programs and calibrations share.
//!
//! - [`units`]: quantities with their units.
//! - [`error`]: a mistake at a place of a file. [`mistake`]: a mistake in a part of a scenario.

pub mod error;
pub mod mistake;
pub mod units;

pub use error::ScenarioError;
pub use mistake::{Mistake, ScenarioPart};
pub use units::{Bytes, Percent, Rate, Time};
