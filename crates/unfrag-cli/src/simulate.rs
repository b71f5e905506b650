//! `unfrag simulate`: a scenario file, run on the simulated machine.

use crate::failure::Result;
use crate::output::{Progress, print, print_json, write_file};
use std::path::PathBuf;
use unfrag_lab::report::simulated::{html, text};
use unfrag_linux::Error;
use unfrag_machine::Calibration;
use unfrag_machine::scenario::{Kernel, Scenario};

/// Run a scenario file on the simulated machine: memory, disks, CPUs and programs on a virtual clock
///
/// The file says what the machine is made of and what its tasks do; the kernel is one of the eras. Same
/// scenario, kernel and seed: same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag simulate samples/small-build.toml
  unfrag simulate samples/small-build.toml --kernel 2.6.32 --html build.html
  unfrag simulate samples/small-build.toml --kernel 2.6.14 --seed 7 --json")]
pub struct Args {
    /// The scenario
    file: PathBuf,
    /// Kernel
    #[arg(long, value_name = "NAME", default_value = "6.18")]
    kernel: String,
    /// Machine of the scenario; its first if not given
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Never end a process when memory runs out: large requests fail then, and others try on
    #[arg(long)]
    no_oom_killer: bool,
    /// Print the whole outcome as JSON, samples included
    #[arg(long)]
    json: bool,
    /// Write what memory, stalls and CPUs did over time as one HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let source = std::fs::read_to_string(&args.file)
        .map_err(|e| Error::malformed(e.to_string()).in_file(&args.file))?;
    let bad = |e: String| Error::malformed(e);
    let scenario = Scenario::parse(&args.file.display().to_string(), &source)
        .map_err(|e| bad(e.to_string()))?;
    let mut kernel = Kernel::preset(&args.kernel).map_err(bad)?;
    kernel.oom_killer = !args.no_oom_killer;
    let machine = scenario
        .machine(args.machine.as_deref())
        .map_err(|e| bad(e.to_string()))?;
    let run = scenario
        .start(machine, &kernel, &Calibration::standard(), args.seed)
        .map_err(|e| bad(e.to_string()))?;
    let bar = Progress::new("simulating");
    let outcome = run.finish(|p| bar.at(p.now / 1_000_000, p.limit / 1_000_000));
    drop(bar);
    if let Some(path) = &args.html {
        write_file(path, html::render(&outcome).as_bytes())?;
    }
    if args.json {
        print_json(&outcome)?;
    } else {
        print(&text::render(&outcome))?;
    }
    if let Some(path) = &args.html {
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}
