//! The command `unfrag`.
//!
//! - [`import`]: a trace and the procfs snapshots beside it become one file.
//! - [`replay`]: what memory would have looked like under another kernel, and how far to trust that.
//! - [`inspect`]: the indexes of fragmentation of a snapshot or of this host.
//! - [`slab`]: what the slab allocators would have held for the allocations of a trace.
//!
//! Invariant: the exit status is 0 for success, 1 for an input that cannot be used or an output that
//! cannot be written, 2 for a wrong command line. Whoever stops reading early (`| head`) is no error.
#![forbid(unsafe_code)]

mod failure;
mod import;
mod input;
mod inspect;
mod output;
mod replay;
mod slab;
mod words;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What memory looks like under any era of the Linux page allocator: replays what a real host
/// recorded, and measures its own error.
#[derive(Debug, Parser)]
#[command(name = "unfrag", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Import(import::Args),
    Replay(replay::Args),
    Inspect(inspect::Args),
    Slab(slab::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Import(args) => import::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Slab(args) => slab::run(&args),
    };
    match done {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
