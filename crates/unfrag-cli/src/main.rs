//! The command `unfrag`.
//!
//! One module a subcommand:
//!
//! - [`import`]: a trace and the procfs snapshots beside it become one file.
//! - [`replay`]: what memory would have looked like under another kernel, and how far to trust that.
//! - [`doctor`]: what is wrong with a host's memory, and what to do about it.
//! - [`explain`]: why allocations failed, from a kernel log.
//! - [`account`]: where the memory is, every frame once. [`frames`]: in how many frames that of a process lies.
//! - `exporter`: the doctor's figures for Prometheus; `no_exporter` in a command that was built without it.
//! - [`experiment`]: a published experiment, run again on the simulated machine.
//! - [`simulate`]: a scenario file on it.
//! - [`summary`]: what a trace alone tells, without snapshots.
//! - [`inspect`]: the indexes of fragmentation of a snapshot or of this host.
//! - [`top`]: what memory does, in a pool that runs, a replay or this host.
//! - `record`: this host, traced or copied, into a file.
//! - [`profile`]: what a recorded command does to memory.
//! - [`redact`]: a recording that can be shared.
//! - [`paste`]: a host as a few lines of text for an issue or a chat.
//! - [`calibrate`]: what the kernel's work on pages costs on this computer.
//! - [`slab`]: what the slab allocators would have held for the allocations of a trace.
//! - `pages`, with the feature of that name: man pages and completions.
//!
//! Below them, what they share: `input` reads what a command line names, `output` writes results, `standard` writes to the
//! standard streams, `terminal` and `progress` know the terminal, `quantity` writes and reads quantities, `costs` reads files of costs, `failure` says what went wrong, and `help` which commands there are.
//!
//! Invariant: the exit status is 0 for success, 1 for an input that cannot be used or an output that
//! cannot be written, 2 for a wrong command line; where a script asks (`--check` and the formats of `doctor`, `explain
//! --check`) it is the answer's. Whoever stops reading early (`| head`) is no error.
#![forbid(unsafe_code)]
// Text goes to the standard streams through `standard` alone.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod account;
mod blame;
mod calibrate;
mod doctor;
mod experiment;
mod explain;
#[cfg(feature = "exporter")]
mod exporter;
mod failure;
mod frames;
mod help;
mod import;
mod inputs;
mod inspect;
#[cfg(not(feature = "exporter"))]
mod no_exporter;
mod no_kernel;
mod output;
mod own_memory;
#[cfg(feature = "pages")]
mod pages;
mod paste;
mod profile;
mod progress;
mod quantity;
#[cfg(target_os = "linux")]
mod record;
mod redact;
mod replay;
mod simulate;
mod slab;
mod standard;
mod summary;
mod terminal;
mod top;
mod window;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
#[cfg(not(feature = "exporter"))]
use no_exporter as exporter;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Says why a Linux host with free memory cannot give large or huge pages, who is to blame, and what to do.
#[derive(Debug, Parser)]
#[command(name = "unfrag", version, propagate_version = true, help_template = help::TEMPLATE)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Import(import::Args),
    Summary(summary::Args),
    Replay(replay::Args),
    Inspect(inspect::Args),
    Top(top::Args),
    #[cfg(target_os = "linux")]
    Record(record::Args),
    #[cfg(target_os = "linux")]
    Snapshot(record::SnapshotArgs),
    #[cfg(target_os = "linux")]
    #[command(hide = true, name = record::GUARDIAN)]
    Guardian(record::GuardianArgs),
    Doctor(doctor::Args),
    Explain(explain::Args),
    Account(account::Args),
    Frames(frames::Args),
    Blame(blame::Args),
    Exporter(exporter::Args),
    Experiment(experiment::Args),
    Simulate(simulate::Args),
    Slab(slab::Args),
    Profile(profile::Args),
    Paste(paste::Args),
    Calibrate(calibrate::Args),
    Redact(redact::Args),
    #[cfg(feature = "pages")]
    #[command(hide = true)]
    Pages(pages::Args),
}

fn main() -> ExitCode {
    standard::take_panics();
    let cli = match standard::options::<Cli>() {
        Ok(cli) => cli,
        Err(said) => {
            let status = standard::say_of_options(&said);
            if let Some(instead) = help::instead(&said, &Cli::command()) {
                standard::say(instead);
            }
            return ExitCode::from(doctor::gate::status_of_wrong_options(status));
        }
    };
    // A recorder ends at a signal when its recording is made.
    #[cfg(target_os = "linux")]
    let is_recorder = matches!(cli.command, Command::Record(_));
    #[cfg(not(target_os = "linux"))]
    let is_recorder = false;
    if !is_recorder {
        // Without it a signal leaves behind what is being written, and nothing else is lost.
        let _ = unfrag_linux::signals::end_without_leftovers();
    }
    let done = match cli.command {
        Command::Import(args) => import::run(&args),
        Command::Summary(args) => summary::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Top(args) => top::run(&args),
        #[cfg(target_os = "linux")]
        Command::Record(args) => match record::run(&args) {
            Ok(status) => return status,
            Err(failure) => Err(failure),
        },
        #[cfg(target_os = "linux")]
        Command::Snapshot(args) => record::snapshot(&args),
        #[cfg(target_os = "linux")]
        Command::Guardian(args) => record::guard(&args),
        Command::Doctor(args) => match doctor::run(&args) {
            Ok(status) => return status,
            Err(failure) => Err(failure),
        },
        Command::Explain(args) => match explain::run(&args) {
            Ok(status) => return status,
            Err(failure) => Err(failure),
        },
        Command::Account(args) => account::run(&args),
        Command::Frames(args) => frames::run(&args),
        Command::Blame(args) => blame::run(&args),
        Command::Exporter(args) => exporter::run(&args),
        Command::Experiment(args) => experiment::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Slab(args) => slab::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Paste(args) => paste::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Redact(args) => redact::run(&args),
        #[cfg(feature = "pages")]
        Command::Pages(args) => pages::run(&args, Cli::command()),
    };
    match done {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
