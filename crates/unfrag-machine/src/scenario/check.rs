//! The check of a scenario file: names are known, places fit, numbers are possible. The first mistake is
//! returned, with its place and help. `machine`: the check of a machine.

mod machine;

use super::file::{File, FileSystem};
use super::source::{Checked, Source};
use crate::input::ScenarioError;
use crate::program::names;

/// Samples that a run may take: they stay in memory, about 1 KiB each.
const MOST_SAMPLES: u64 = 1_000_000;

impl Source<'_> {
    /// Checks all of a scenario.
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
        let (files, programs) = (f.initial_files(), f.steps());
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
            if let Err(mut wrong) = names::check(&files, &programs, &around) {
                if f.machines.len() > 1 {
                    wrong.message += &format!(" (on machine `{}`)", m.name.get_ref());
                }
                return Err(self.wrong_in(f, wrong));
            }
        }
        Ok(())
    }

    /// Checks the time limit and the sampling interval.
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

    /// Checks that printed names consist of visible characters.
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
