//! `unfrag simulate`: a scenario file, run on the simulated machine.

use crate::failure::Result;
use crate::output::{Console, Progress, check_not_input, check_writable, name_of, write_file};
use crate::standard::say_line;
use std::path::PathBuf;
use unfrag_lab::era::sysctl;
use unfrag_lab::simulate::{file, html, text};

/// Run a scenario file on the simulated machine: memory, disks, CPUs and programs on a virtual clock
///
/// The file says what the machine is made of and what its tasks do; the kernel is one of the eras. Same
/// scenario, kernel and seed: same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag simulate samples/small-build.toml
  unfrag simulate samples/small-build.toml --kernel 2.6.32 --html build.html
  unfrag simulate samples/small-build.toml --kernel 2.6.14 --seed 7 --json
  unfrag simulate samples/recorded-build.toml --set vm.min_free_kbytes=8192

For many settings or seeds at once there is `sweep` in the Python package, on all CPUs of this computer or on
Dask or Ray.")]
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
    if let Some(path) = &args.html {
        check_not_input(path, &args.file)?;
        check_writable(path)?;
    }
    let options = file::Options {
        kernel: args.kernel.as_deref(),
        set: &args.set,
        machine: args.machine.as_deref(),
        seed: args.seed,
        oom_killer: !args.no_oom_killer,
        costs: args.costs.as_deref(),
    };
    let bar = Progress::new("simulating");
    let outcome = file::run(&args.file, &options, |done, all| bar.at(done, all))?;
    drop(bar);
    if args.json {
        console.print_json(&outcome)?;
    } else {
        console.print(text::render(&outcome))?;
    }
    if let Some(path) = &args.html {
        write_file(path, html::render(&outcome).as_bytes())?;
        say_line(format!("wrote {}", name_of(path)));
    }
    Ok(())
}
