//! Whether a scenario file holds together: names that are meant, places that fit, numbers that can be.
//! The first mistake is told, with its place and the way out. `machine`: whether a machine can be.

mod machine;

use super::ScenarioError;
use super::file::{File, FileSystem, Name};
use crate::program::names;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// The file, to point into.
pub(super) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

/// Samples that a run may take: they stay in memory, about 1 KiB each.
const MOST_SAMPLES: u64 = 1_000_000;

type Checked = Result<(), ScenarioError>;

impl Source<'_> {
    fn wrong<T>(&self, at: &Spanned<T>, message: String, help: &str) -> Checked {
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

    /// A number has to be in a range.
    fn within<T>(&self, what: &str, at: &Spanned<T>, range: Range<u64>) -> Checked
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

    /// No two of these may have the same name.
    fn unique<'n>(&self, names: impl Iterator<Item = &'n Spanned<String>>) -> Checked {
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

    /// A name has to be one of these.
    fn known(&self, what: &str, name: &Spanned<String>, known: &[&str]) -> Checked {
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

    /// What is wrong with things or programs of the file.
    pub fn wrong_in(&self, f: &File, wrong: names::Wrong) -> ScenarioError {
        let name = wrong
            .name
            .and_then(|name| self.once(f, &wrong.place, &name));
        let span = name.or_else(|| place(f, &wrong.place));
        ScenarioError::at(self.file, self.text, span, wrong.message).help(wrong.help)
    }

    /// Where a name stands in a step, or under the header of a thing, if it stands there once.
    fn once(&self, f: &File, at: &names::Place, name: &str) -> Option<Range<usize>> {
        let span = place(f, at)?;
        let mut part = self.text.get(span.start..)?;
        part = match at {
            names::Place::Step { .. } => part.get(..span.len())?,
            _ => part.split("\n[").next()?,
        };
        let quoted = format!("\"{name}\"");
        let mut found = part.match_indices(&quoted);
        let from = span.start + found.next()?.0;
        found.next().is_none().then_some(from..from + quoted.len())
    }

    /// All of a scenario.
    pub fn check(&self, f: &File) -> Checked {
        let whole = |message: &str, help: &str| {
            Err(ScenarioError::at(self.file, self.text, None, message).help(help))
        };
        if f.machines.is_empty() {
            return whole("no machine", "describe one under [[machine]]");
        }
        if f.tasks.is_empty() {
            return whole("no task", "start one under [[task]]");
        }
        self.times(f)?;
        self.printable(f)?;
        self.unique(f.machines.iter().map(|m| &m.name))?;
        for m in &f.machines {
            self.machine(m)?;
        }
        let programs: Vec<_> = f.programs.keys().map(String::as_str).collect();
        let fewest = f.machines.iter().map(|m| *m.cpus.get_ref()).min();
        for t in &f.tasks {
            self.known("program", &t.program, &programs)?;
            self.within("the number of tasks", &t.count, 1..10_001)?;
            if let Some(cpu) = &t.cpu {
                self.within("the CPU of a task", cpu, 0..fewest.unwrap_or(1) as u64)?;
            }
        }
        if f.tasks.iter().all(|t| t.background) {
            return whole(
                "all tasks are in the background",
                "a run ends with the last task that is not: let one be `background = false`",
            );
        }
        let (things, programs) = (f.things(), f.steps());
        for m in &f.machines {
            let systems = |which: fn(&FileSystem) -> bool| {
                let some = m.file_systems.iter().filter(|s| which(s));
                some.map(|s| s.name.get_ref().clone()).collect()
            };
            let around = names::Around {
                systems: systems(|_| true),
                on_disk: systems(|s| s.device.is_some()),
                backing: systems(|s| s.image_in.is_some()),
                tasks: f.tasks.iter().map(|t| t.title().to_owned()).collect(),
            };
            if let Err(mut wrong) = names::check(&things, &programs, &around) {
                if f.machines.len() > 1 {
                    wrong.message += &format!(" (on machine `{}`)", m.name.get_ref());
                }
                return Err(self.wrong_in(f, wrong));
            }
        }
        Ok(())
    }

    /// How long it runs, and how often it is looked at.
    fn times(&self, f: &File) -> Checked {
        let (limit, sample) = (f.limit.get_ref().0, f.sample.get_ref().0);
        for (at, time) in [(&f.limit, limit), (&f.sample, sample)] {
            if time == 0 {
                return self.wrong(at, "this is no time".to_owned(), "give one above 0");
            }
        }
        let samples = limit / sample;
        if samples > MOST_SAMPLES {
            let at = if f.sample.span().is_empty() {
                &f.limit
            } else {
                &f.sample
            };
            let message = format!("{samples} samples until `limit`, which no memory holds");
            let least = limit.div_ceil(MOST_SAMPLES).div_ceil(1_000_000);
            let help = format!("give `sample = \"{least} ms\"` or more, or a shorter `limit`");
            return self.wrong(at, message, &help);
        }
        Ok(())
    }

    /// Names that are printed have something to print, and nothing else.
    fn printable(&self, f: &File) -> Checked {
        let machines = f.machines.iter().map(|m| &m.name);
        let tasks = f.tasks.iter().filter_map(|t| t.name.as_ref());
        for name in [&f.name].into_iter().chain(machines).chain(tasks) {
            let text = name.get_ref();
            if text.trim().is_empty() || text.chars().any(char::is_control) {
                let message = format!("{text:?} cannot be printed");
                return self.wrong(name, message, "give a name of visible characters");
            }
        }
        Ok(())
    }
}

/// Where in a file something is.
fn place(f: &File, place: &names::Place) -> Option<Range<usize>> {
    fn key<T>(map: &BTreeMap<Name, T>, name: &str) -> Option<Range<usize>> {
        let found = map.keys().find(|k| k.get_ref() == name);
        found.map(Spanned::span)
    }
    match place {
        names::Place::Tree(name) => key(&f.trees, name),
        names::Place::File(name) => key(&f.files, name),
        names::Place::Image(name) => key(&f.images, name),
        names::Place::Step { program, step } => f.programs.get(program)?.spans.get(*step).cloned(),
    }
}
