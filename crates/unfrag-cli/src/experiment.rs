//! `unfrag experiment`: a published experiment, run again on the simulated machine.

use crate::failure::Result;
use crate::output::{Progress, print, print_json};
use crate::quantity;
use clap::ValueEnum;
use std::path::PathBuf;
use unfrag_lab::experiment::{self, Name, Options, text};
use unfrag_lab::real;
use unfrag_lab::simulate::file::costs;
use unfrag_linux::Error;

/// Run a published experiment again on a simulated machine, and print its numbers beside ours
///
/// highorder: blocks of 4 MiB while seven kernels are built, and at rest (2005). aim9: eight small
/// programs, with and without grouping (2005). slab-order: two builds on tmpfs in 1 GiB, with slabs of
/// several orders (2009). atomic: reclaim behind an encrypted disk, with order-2 requests from
/// interrupts (2009). thp-burst: 15 builds in little memory with bursts of huge-page requests, with and
/// without defrag_mode (2025). On page frames alone, up to 1 TiB of them (2020): hugepage-latency: as many huge pages
/// as possible out of fragmented memory. java-heap: a heap of 700 GiB is touched there. backoff: compaction
/// ahead of demand where nothing can be moved. one-time: 32 GiB compacted in one go. Same seed, same bytes. On a computer of today a run of highorder takes 10 to 25
/// seconds, one of aim9 about as long, one of slab-order 30 to 70, one of atomic one to three, one of thp-burst ten, one on page frames
/// alone one to two minutes for 1 TiB, with 4.4 GiB of memory.
///
/// What is beside the sources' experiments runs only if it is named: of atomic the kernels
/// congestion-both-everywhere and kswapd-quickly-notice-high-order, of highorder the machines xeon-1024 to
/// xeon-2048, of slab-order the machines stoakley-10k and stoakley-7200, and the kernels without
/// MIGRATE_RESERVE: slqb-no-reserve, slub-no-reserve, slub-order-1-no-reserve and
/// slub-order-0-no-reserve, of thp-burst the machines small-608 to small-1024. Of those on page frames alone the kernels 6.1, 6.18 and unfrag, and the machines
/// 1GiB to 256GiB.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag experiment atomic --kernel 2.6.30 --machine x86 --runs 1
  unfrag experiment atomic --kernel congestion-both --machine x86-64 --runs 2 --seed 7 --json
  unfrag experiment atomic --kernel congestion-both-everywhere --machine x86 --runs 1
  unfrag experiment hugepage-latency --machine 4GiB
  unfrag experiment hugepage-latency --kernel proactiveness-20,unfrag --machine 4GiB --json
  unfrag experiment hugepage-latency --on pool --machine 64MiB

It uses all CPUs of this computer. For more than one there is `sweep` in the Python package, on Dask or Ray.")]
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
    /// Runs of each kernel, with a seed each; 20 if not given, and 1 of those on page frames alone
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// Seed of the first run; the others follow
    #[arg(
        long,
        value_name = "S",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    seed: u64,
    /// Costs of the kernel's work, as `unfrag calibrate` measures them; without it those of a computer of the source's
    /// time
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Of hugepage-latency: real memory of this computer instead of a simulated machine, from a pool, from the host's own
    /// kernel, or from both in turn. `host` takes nearly all memory for a minute
    #[arg(long, value_enum, value_name = "GROUND,…", value_delimiter = ',')]
    on: Vec<On>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    Pool,
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Experiment {
    #[value(name = "highorder")]
    HighOrder,
    Aim9,
    SlabOrder,
    Atomic,
    HugepageLatency,
    JavaHeap,
    Backoff,
    OneTime,
    ThpBurst,
}

impl From<Experiment> for Name {
    fn from(e: Experiment) -> Name {
        match e {
            Experiment::HighOrder => Name::HighOrder,
            Experiment::Aim9 => Name::Aim9,
            Experiment::SlabOrder => Name::SlabOrder,
            Experiment::Atomic => Name::Atomic,
            Experiment::HugepageLatency => Name::HugepageLatency,
            Experiment::JavaHeap => Name::JavaHeap,
            Experiment::Backoff => Name::Backoff,
            Experiment::OneTime => Name::OneTime,
            Experiment::ThpBurst => Name::ThpBurst,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if !args.on.is_empty() {
        return run_on_real_memory(args);
    }
    let name: Name = args.name.into();
    let runs = args.runs.unwrap_or(name.default_runs());
    let options = Options {
        kernels: args.kernel.clone(),
        machines: args.machine.clone(),
        runs,
        seed: args.seed,
        costs: args.costs.as_deref().map(costs).transpose()?,
    };
    let bar = Progress::new("running");
    let report = experiment::run(name, &options, &|done, total| bar.at(done, total))?;
    drop(bar);
    if args.json {
        print_json(&report)?;
    } else {
        print(text::render(name, &report))?;
    }
    match report.unfinished() {
        0 => Ok(()),
        n => {
            let all = report.results.len() * runs as usize;
            let told = format!("{n} of {all} runs did not come to their end");
            let help = "the numbers are those of the others; `unfinished` in --json names them";
            Err(Error::malformed(told).help(help).into())
        }
    }
}

/// Memory that is fragmented, if no size is given.
const REAL: u64 = 8 << 30;

/// `hugepage-latency` on real memory.
fn run_on_real_memory(args: &Args) -> Result<()> {
    let refuse = |what: &'static str, help: &'static str| -> Result<()> {
        Err(Error::malformed(what).help(help).into())
    };
    if args.name != Experiment::HugepageLatency {
        return refuse(
            "only hugepage-latency runs on real memory",
            "leave --on out, or ask for hugepage-latency",
        );
    }
    if !args.kernel.is_empty() || args.costs.is_some() || args.runs.is_some() {
        return refuse(
            "real memory has the host's kernel, its own costs, and one run",
            "leave --kernel, --costs and --runs out, or --on",
        );
    }
    let bytes = match args.machine.as_slice() {
        [] => REAL,
        [size] => {
            quantity::size(size).map_err(|e| Error::malformed(e).help("give --machine one size"))?
        }
        _ => return refuse("one size of memory at a time", "give --machine one size"),
    };
    let ground = |on: &On| match on {
        On::Pool => real::Ground::Pool,
        On::Host => real::Ground::Host,
    };
    let grounds: Vec<real::Ground> = args.on.iter().map(ground).collect();
    let bar = Progress::new("running");
    let report = real::run(bytes, &grounds, &|done| bar.at(done, 1000))?;
    drop(bar);
    if args.json {
        print_json(&report)
    } else {
        print(real::render(&report))
    }
}
