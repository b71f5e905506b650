//! `unfrag experiment`: a published experiment, run again on the simulated machine.

use crate::failure::Result;
use crate::output::{Progress, print, print_json};
use clap::ValueEnum;
use unfrag_lab::experiment::{self, Name, Options, text};
use unfrag_linux::Error;

/// Run a published experiment again on a simulated machine, and print its numbers beside ours
///
/// highorder: blocks of 4 MiB while seven kernels are built, and at rest (2005). aim9: eight small
/// programs, with and without grouping (2005). slab-order: two builds on tmpfs in 1 GiB, with slabs of
/// several orders (2009). atomic: reclaim behind an encrypted disk, with order-2 requests from
/// interrupts (2009). Same seed, same bytes. On a computer of today a run of highorder takes 10 to 25
/// seconds, one of aim9 about as long, one of slab-order 30 to 70, one of atomic one to three.
///
/// What is beside the sources' experiments runs only if it is named: of atomic the kernels
/// congestion-both-everywhere and kswapd-quickly-notice-high-order, of highorder the machines xeon-1024 to
/// xeon-2048, of slab-order the machines stoakley-10k and stoakley-7200, and the kernels without
/// MIGRATE_RESERVE: slqb-no-reserve, slub-no-reserve, slub-order-1-no-reserve and
/// slub-order-0-no-reserve.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag experiment atomic --kernel 2.6.30 --machine x86 --runs 1
  unfrag experiment atomic --kernel congestion-both --machine x86-64 --runs 2 --seed 7 --json
  unfrag experiment atomic --kernel congestion-both-everywhere --machine x86 --runs 1")]
pub struct Args {
    /// The experiment
    #[arg(value_enum)]
    name: Experiment,
    /// Kernels or variants, separated by commas; those of the source if none is given
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    kernel: Vec<String>,
    /// Machines, separated by commas; those of the source if none is given
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    machine: Vec<String>,
    /// Runs of each kernel, with a seed each
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Seed of the first run; the others follow
    #[arg(
        long,
        value_name = "S",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Experiment {
    #[value(name = "highorder")]
    HighOrder,
    Aim9,
    SlabOrder,
    Atomic,
}

impl From<Experiment> for Name {
    fn from(e: Experiment) -> Name {
        match e {
            Experiment::HighOrder => Name::HighOrder,
            Experiment::Aim9 => Name::Aim9,
            Experiment::SlabOrder => Name::SlabOrder,
            Experiment::Atomic => Name::Atomic,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let options = Options {
        kernels: args.kernel.clone(),
        machines: args.machine.clone(),
        runs: args.runs,
        seed: args.seed,
    };
    let name = args.name.into();
    let bar = Progress::new("running");
    let report = experiment::run(name, &options, &|done, total| bar.at(done, total))?;
    drop(bar);
    if args.json {
        print_json(&report)?;
    } else {
        print(&text::render(name, &report))?;
    }
    match report.unfinished() {
        0 => Ok(()),
        n => {
            let all = report.results.len() * args.runs as usize;
            let told = format!("{n} of {all} runs did not come to their end");
            let help = "the numbers are those of the others; `unfinished` in --json names them";
            Err(Error::malformed(told).help(help).into())
        }
    }
}
