//! `unfrag simulate`: a scenario file, run on the simulated machine.

use crate::costs;
use crate::failure::{Failure, Result};
use crate::output::{Console, Progress, check_not_input, check_writable, name_of, write_file};
use std::path::{Path, PathBuf};
use unfrag_lab::era::sysctl;
use unfrag_lab::profile::Catalog;
use unfrag_lab::simulate::{html, text};
use unfrag_linux::Error;
use unfrag_machine::Calibration;
use unfrag_machine::scenario::Scenario;

/// Run a scenario file on the simulated machine: memory, disks, CPUs and programs on a virtual clock
///
/// The file says what the machine is made of and what its tasks do; the kernel is one of the eras. Same
/// scenario, kernel and seed: same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag simulate samples/small-build.toml
  unfrag simulate samples/small-build.toml --kernel 2.6.32 --html build.html
  unfrag simulate samples/small-build.toml --kernel 2.6.14 --seed 7 --json
  unfrag simulate samples/recorded-build.toml --set vm.min_free_kbytes=8192")]
pub struct Args {
    /// The scenario
    file: PathBuf,
    /// Kernel; that of the scenario if not given, else 6.18
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Change a setting of the kernel (can be repeated)
    #[arg(long, value_name = "vm.NAME=VALUE", value_parser = sysctl::parse)]
    set: Vec<(String, String)>,
    /// Machine of the scenario; its first if not given
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Seed
    #[arg(
        long,
        value_name = "S",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    seed: u64,
    /// Never end a process when memory runs out: large requests fail then, and others try on
    #[arg(long)]
    no_oom_killer: bool,
    /// Costs of the kernel's work, as `unfrag calibrate` measures them; without it those of a desktop of 2009
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Print the whole outcome as JSON, samples included
    #[arg(long)]
    json: bool,
    /// Write what memory, stalls and CPUs did over time as one HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let console = Console::beside([("--html", args.html.as_deref())], args.json)?;
    let catalog = Catalog::beside(&args.file);
    let name = args.file.display().to_string();
    let scenario = Scenario::parse_with(&name, &text_of(&args.file)?, &catalog)?;
    let mut kernel = scenario.kernel(args.kernel.as_deref())?;
    for (i, (name, value)) in args.set.iter().enumerate() {
        if !sysctl::known_to(name, &kernel.rules) {
            let known = sysctl::NAMES.iter().copied();
            let known: Vec<_> = known
                .filter(|n| sysctl::known_to(n, &kernel.rules))
                .collect();
            return Err(Failure::usage(
                format!("{} has no {name}", kernel.name),
                format!("of these settings it has {}", known.join(", ")),
            ));
        }
        sysctl::set(&mut kernel.sysctl, name, value)?;
        // The last word on a setting holds.
        if args.set[i + 1..].iter().all(|later| later.0 != *name) {
            kernel.changes.push(format!("{name} = {value}"));
        }
    }
    if args.no_oom_killer {
        kernel.oom_killer = false;
        kernel.changes.push("oom-killer = false".to_owned());
    }
    let machine = scenario.machine(args.machine.as_deref())?;
    if let Some(path) = &args.html {
        check_not_input(path, &args.file)?;
        check_writable(path)?;
    }
    let costs = args.costs.as_deref().map(costs::read).transpose()?;
    let costs = costs.unwrap_or_else(Calibration::standard);
    let run = scenario.start(machine, &kernel, &costs, args.seed)?;
    let bar = Progress::new("simulating");
    let outcome = run.finish(|p| bar.at(p.now / 1_000_000, p.limit / 1_000_000));
    drop(bar);
    if args.json {
        console.print_json(&outcome)?;
    } else {
        console.print(&text::render(&outcome))?;
    }
    if let Some(path) = &args.html {
        write_file(path, html::render(&outcome).as_bytes())?;
        eprintln!("wrote {}", name_of(path));
    }
    Ok(())
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
