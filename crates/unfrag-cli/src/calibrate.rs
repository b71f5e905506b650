//! `unfrag calibrate`: what the kernel's work on pages costs on this computer.

use crate::failure::Result;
use crate::output::{Console, Progress, check_writable, name_of, write_file};
use crate::standard::say_line;
use std::path::PathBuf;
use unfrag_lab::calibrate::{self, Options};

/// Measure what the kernel's work on pages costs on this computer, for simulated machines
///
/// Times of `unfrag simulate` and `unfrag experiment` are sums of costs. This measures those of zeroing, copying
/// and splitting pages, of preparing huge pages, and of the looks of compaction. It takes some ten seconds, one
/// CPU and a few hundred MiB. The file that it writes has all other costs as they are committed, and is what
/// `--costs` of both commands takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag calibrate
  unfrag calibrate --mib 32 --rounds 2 -o costs.toml
  unfrag calibrate --mib 32 --rounds 2 --json")]
pub struct Args {
    /// Memory to measure in, in MiB: more than the caches hold
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(8..=65536))]
    mib: u32,
    /// Rounds, of which the least counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Write the costs to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let console = Console::beside([("--output", args.output.as_deref())], args.json)?;
    if let Some(path) = &args.output {
        check_writable(path)?;
    }
    let options = Options {
        mib: args.mib,
        rounds: args.rounds,
    };
    let bar = Progress::new("measuring");
    let costs = calibrate::run(options, &|done, all| bar.at(done, all));
    drop(bar);
    if args.json {
        console.print_json(&costs)?;
    } else {
        console.print(calibrate::render(&costs))?;
    }
    if let Some(path) = &args.output {
        write_file(path, costs.text.as_bytes())?;
        say_line(format!("wrote {}", name_of(path)));
    }
    Ok(())
}
