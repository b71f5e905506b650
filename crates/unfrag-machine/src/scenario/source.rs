//! The text of a scenario, and mistakes at its places.

use super::file::{File, Name};
use crate::input::{Mistake, ScenarioError, ScenarioPart};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// The name and text of a file.
pub(super) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

/// The result of a check.
pub(super) type Checked = Result<(), ScenarioError>;

impl Source<'_> {
    pub fn wrong<T>(&self, at: &Spanned<T>, message: String, help: &str) -> Checked {
        Err(self.error(at, message).help(help))
    }

    pub fn error<T>(&self, at: &Spanned<T>, message: String) -> ScenarioError {
        let span = at.span();
        ScenarioError::at(
            self.file,
            self.text,
            (!span.is_empty()).then_some(span),
            message,
        )
    }

    /// Checks that a number is in a range.
    pub fn within<T>(&self, what: &str, at: &Spanned<T>, range: Range<u64>) -> Checked
    where
        T: Copy + TryInto<u64> + std::fmt::Display,
    {
        let n = (*at.get_ref()).try_into().unwrap_or(u64::MAX);
        if range.contains(&n) {
            return Ok(());
        }
        let help = format!("give a number from {} to {}", range.start, range.end - 1);
        self.wrong(at, format!("{what} cannot be {}", at.get_ref()), &help)
    }

    /// Checks that no two have the same name.
    pub fn unique<'n>(&self, names: impl Iterator<Item = &'n Spanned<String>>) -> Checked {
        let mut seen: Vec<&str> = vec![];
        for name in names {
            if seen.contains(&name.get_ref().as_str()) {
                let message = format!("`{}` is the name of two", name.get_ref());
                return self.wrong(name, message, "give each a name of its own");
            }
            seen.push(name.get_ref());
        }
        Ok(())
    }

    /// Checks that a name is one of the known ones.
    pub fn known(&self, what: &str, name: &Spanned<String>, known: &[&str]) -> Checked {
        if known.contains(&name.get_ref().as_str()) {
            return Ok(());
        }
        let help = match known {
            [] => "there is none in this file".to_owned(),
            _ => format!("there are: {}", known.join(", ")),
        };
        self.wrong(
            name,
            format!("there is no {what} `{}`", name.get_ref()),
            &help,
        )
    }

    /// The error for a mistake in initial files or programs.
    pub fn wrong_in(&self, f: &File, wrong: Mistake) -> ScenarioError {
        let name = wrong
            .name
            .and_then(|name| self.once(f, &wrong.place, &name));
        let span = name.or_else(|| place(f, &wrong.place));
        ScenarioError::at(self.file, self.text, span, wrong.message).help(wrong.help)
    }

    /// Place of a name in a step or a table, if it is there exactly once.
    fn once(&self, f: &File, at: &ScenarioPart, name: &str) -> Option<Range<usize>> {
        let span = place(f, at)?;
        let mut part = self.text.get(span.start..)?;
        part = match at {
            ScenarioPart::Step { .. } => part.get(..span.len())?,
            _ => part.split("\n[").next()?,
        };
        let quoted = format!("\"{name}\"");
        let mut found = part.match_indices(&quoted);
        let from = span.start + found.next()?.0;
        found.next().is_none().then_some(from..from + quoted.len())
    }
}

/// Place of a part in the file.
fn place(f: &File, place: &ScenarioPart) -> Option<Range<usize>> {
    fn key<T>(map: &BTreeMap<Name, T>, name: &str) -> Option<Range<usize>> {
        let found = map.keys().find(|k| k.get_ref() == name);
        found.map(Spanned::span)
    }
    match place {
        ScenarioPart::Tree(name) => key(&f.trees, name),
        ScenarioPart::File(name) => key(&f.files, name),
        ScenarioPart::Image(name) => key(&f.images, name),
        ScenarioPart::Step { program, step } => f.programs.get(program)?.spans.get(*step).cloned(),
    }
}
