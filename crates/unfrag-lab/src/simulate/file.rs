//! A scenario file, run.

use crate::afford;
use crate::era::sysctl;
use crate::error::{Error as LabError, Result};
use crate::profile::Catalog;
use std::path::Path;
use unfrag_linux::Error;
use unfrag_linux::input_text::escaped_path;
use unfrag_machine::Calibration;
use unfrag_machine::scenario::{Outcome, Scenario};

/// How a scenario is run.
#[derive(Debug)]
pub struct Options<'a> {
    /// Kernel; that of the scenario if not given, else 6.18.
    pub kernel: Option<&'a str>,
    /// Settings of the kernel, by name.
    pub set: &'a [(String, String)],
    /// Machine of the scenario; its first if not given.
    pub machine: Option<&'a str>,
    /// Seed.
    pub seed: u64,
    /// Whether a process is ended when memory runs out.
    pub oom_killer: bool,
    /// Costs of the kernel's work; those of a desktop of 2009 if not given.
    pub costs: Option<&'a Path>,
}

/// Runs a scenario file. `progress` is told virtual milliseconds, of how many at most.
///
/// # Errors
/// If the scenario or the costs cannot be read, or are wrong, or if the kernel has no such setting.
pub fn run(file: &Path, options: &Options, mut progress: impl FnMut(u64, u64)) -> Result<Outcome> {
    let catalog = Catalog::beside(file);
    let name = escaped_path(file);
    let scenario = Scenario::parse_with(&name, &text_of(file)?, &catalog)?;
    let mut kernel = scenario.kernel(options.kernel)?;
    for (i, (name, value)) in options.set.iter().enumerate() {
        if !sysctl::known_to(name, &kernel.rules) {
            let known = sysctl::NAMES.iter().copied();
            let known: Vec<_> = known
                .filter(|n| sysctl::known_to(n, &kernel.rules))
                .collect();
            return Err(LabError::question(format!("{} has no {name}", kernel.name))
                .help(format!("of these settings it has {}", known.join(", "))));
        }
        sysctl::set(&mut kernel.sysctl, name, value)?;
        // The last word on a setting holds.
        if options.set[i + 1..].iter().all(|later| later.0 != *name) {
            kernel.changes.push(format!("{name} = {value}"));
        }
    }
    if !options.oom_killer {
        kernel.oom_killer = false;
        kernel.changes.push("oom-killer = false".to_owned());
    }
    let machine = scenario.machine(options.machine)?;
    let memory = machine.memory.get_ref().0;
    afford::check(memory, afford::MACHINE, 1).map_err(|e| {
        let help = "give the scenario's machine less memory, or choose another with --machine";
        LabError::contradiction(format!("machine {}: {e}", machine.name.get_ref()))
            .in_file(file)
            .help(help)
    })?;
    let costs = options.costs.map(costs).transpose()?;
    let costs = costs.unwrap_or_else(Calibration::standard);
    let run = scenario.start(machine, &kernel, &costs, options.seed)?;
    Ok(run.finish(|p| progress(p.now / 1_000_000, p.limit / 1_000_000)))
}

/// The costs in a file, as `unfrag calibrate` writes it.
///
/// # Errors
/// If it cannot be read, or is no calibration.
pub fn costs(path: &Path) -> Result<Calibration> {
    let name = escaped_path(path);
    let text = std::fs::read_to_string(path).map_err(|e| {
        let help = "name a calibration; `unfrag calibrate -o FILE` writes one";
        Error::from(e).help(help).in_file(path)
    })?;
    Ok(Calibration::parse(&name, &text)?)
}

/// The text of a scenario.
fn text_of(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).map_err(|e| Error::from(e).in_file(file))?;
    String::from_utf8(bytes).map_err(|e| {
        let offset = e.utf8_error().valid_up_to() as u64;
        let error = Error::malformed("this is no UTF-8, so no TOML").at(offset);
        let help = "name a scenario, or save this one as UTF-8";
        error.help(help).in_file(file).into()
    })
}
