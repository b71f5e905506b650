//! A scenario that has been read and checked: [`Scenario`].

use super::file::{File, Machine};
use super::kernel::Kernel;
use super::kernel_table::KernelTable;
use super::source::Source;
use super::{inheritance, profiles, toml_error};
use crate::input::{Mistake, ScenarioError};
use crate::program::recorded::{NoProfiles, Profiles};
use serde::Deserialize;
use std::fmt::Display;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

/// A scenario that was read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The contents of the file.
    pub file: File,
    name: String,
    text: String,
}

impl Scenario {
    /// Reads a scenario without recorded programs. `name` is the file name for mistakes.
    ///
    /// # Errors
    /// The first mistake, with its place and help.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(name, text, &NoProfiles)
    }

    /// Reads a scenario with its recorded programs.
    ///
    /// # Errors
    /// The first mistake, with its place and help.
    pub fn parse_with(
        name: &str,
        text: &str,
        recorded: &dyn Profiles,
    ) -> Result<Scenario, ScenarioError> {
        let mistake = |e: toml::de::Error| toml_error::mistake(name, text, e.span(), e.message());
        let mut values = DeTable::parse(text).map_err(mistake)?;
        let source = Source { file: name, text };
        inheritance::resolve(values.get_mut(), &source)?;
        let mut file = File::deserialize(Deserializer::from(values)).map_err(mistake)?;
        profiles::find(&mut file, recorded, &source)?;
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

    /// The kernel of this scenario; with a name, that kernel with the same changes.
    ///
    /// # Errors
    /// If there is no such kernel, or the changes do not apply to it.
    pub fn kernel(&self, asked: Option<&str>) -> Result<Kernel, ScenarioError> {
        let Some(table) = &self.file.kernel else {
            let kernel = KernelTable::default().kernel(asked);
            return kernel.map_err(|(message, _)| self.error(message));
        };
        let kernel = table.get_ref().kernel(asked);
        kernel.map_err(|(message, help)| {
            // An unknown name from the caller is no mistake of the file.
            let error = match asked {
                Some(_) => self.error(message),
                None => self.error_at(table, message),
            };
            match help.is_empty() {
                true => error,
                false => error.help(help),
            }
        })
    }

    /// A mistake without a place in the file.
    pub(super) fn error(&self, message: impl Into<String>) -> ScenarioError {
        ScenarioError::at(&self.name, &self.text, None, message)
    }

    pub(super) fn error_at<T>(&self, at: &Spanned<T>, message: impl Display) -> ScenarioError {
        self.source().error(at, message.to_string())
    }

    pub(super) fn wrong(&self, wrong: Mistake) -> ScenarioError {
        self.source().wrong_in(&self.file, wrong)
    }

    fn source(&self) -> Source<'_> {
        Source {
            file: &self.name,
            text: &self.text,
        }
    }
}
