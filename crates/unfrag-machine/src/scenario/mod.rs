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
pub mod error;
pub mod file;
pub mod kernel;
pub mod kernel_table;
mod like;
pub mod obstacles;
mod plain;
mod recorded;
pub mod run;
pub mod series;
#[cfg(test)]
mod tests;
pub mod units;
pub mod zones;

pub use error::ScenarioError;
pub use file::{File, Layout, Machine};
pub use kernel::Kernel;
pub use obstacles::{Held, Obstacles};
pub use run::{Outcome, Progress, Run, TaskOutcome};
pub use series::{MemoryByUse, Sample, ZoneSize};
pub use units::{Bytes, Percent, Rate, Time};

use crate::program::names::Wrong;
use crate::program::recorded::{NoProfiles, Profiles};
use serde::Deserialize;
use std::fmt::Display;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

/// A scenario that holds together.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it says.
    pub file: File,
    name: String,
    text: String,
}

impl Scenario {
    /// Reads a scenario without recorded programs; `name` is what mistakes are said to be in.
    ///
    /// # Errors
    /// The first mistake, with its place and the way out.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(name, text, &NoProfiles)
    }

    /// Reads a scenario whose recorded programs are found in `profiles`.
    ///
    /// # Errors
    /// The first mistake, with its place and the way out.
    pub fn parse_with(
        name: &str,
        text: &str,
        profiles: &dyn Profiles,
    ) -> Result<Scenario, ScenarioError> {
        let mistake = |e: toml::de::Error| plain::mistake(name, text, e.span(), e.message());
        let mut values = DeTable::parse(text).map_err(mistake)?;
        let source = check::Source { file: name, text };
        like::resolve(values.get_mut(), &source)?;
        let mut file = File::deserialize(Deserializer::from(values)).map_err(mistake)?;
        recorded::find(&mut file, profiles, &source)?;
        source.check(&file)?;
        let scenario = Scenario {
            file,
            name: name.to_owned(),
            text: text.to_owned(),
        };
        scenario.kernel(None)?;
        Ok(scenario)
    }

    /// The machine of this name; the first, if none is given.
    ///
    /// # Errors
    /// If there is none.
    pub fn machine(&self, name: Option<&str>) -> Result<&Machine, ScenarioError> {
        let machines = &self.file.machines;
        let Some(name) = name else {
            return Ok(&machines[0]);
        };
        let found = machines.iter().find(|m| m.name.get_ref() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = machines.iter().map(|m| m.name.get_ref().as_str()).collect();
            let message = format!("there is no machine `{name}`");
            let help = format!("there are: {}", names.join(", "));
            self.error(message).help(help)
        })
    }

    /// A mistake that is at no place of the file.
    fn error(&self, message: impl Into<String>) -> ScenarioError {
        ScenarioError::at(&self.name, &self.text, None, message)
    }

    fn error_at<T>(&self, at: &Spanned<T>, message: impl Display) -> ScenarioError {
        self.source().error(at, message.to_string())
    }

    fn wrong(&self, wrong: Wrong) -> ScenarioError {
        self.source().wrong_in(&self.file, wrong)
    }

    fn source(&self) -> check::Source<'_> {
        check::Source {
            file: &self.name,
            text: &self.text,
        }
    }
}
