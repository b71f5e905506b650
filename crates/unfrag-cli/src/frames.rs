//! `unfrag frames`: in how many frames a process' memory lies, and what huge pages could be made of it.

use crate::failure::Result;
use crate::output::{print, print_json};
use crate::terminal;
use std::path::{Path, PathBuf};
use unfrag_lab::frames::answer::{Of, frames};
use unfrag_lab::frames::text;

/// Say in how many frames the memory of a process, or of a cgroup, lies, and what huge pages could be made of it
///
/// How many different frames of 2 MiB and 1 GiB, and how few it could be; what huge pages and larger folios map; how many huge
/// pages MADV_COLLAPSE would make of each mapping, and what it copies; what faults if the memory is mapped anew, as that of a
/// virtual machine from its snapshot. Reads only. Frames need root (CAP_SYS_ADMIN); the rest, the right to look at the process.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag frames 1234
  unfrag frames $(pidof qemu-system-x86_64) --all
  unfrag frames system.slice/postgresql.service --json")]
pub struct Args {
    /// Number of a process, or a cgroup: its path, or its name below /sys/fs/cgroup
    #[arg(value_name = "PID|CGROUP")]
    of: PathBuf,
    /// Show every mapping; else the largest
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Where procfs is
    #[arg(long, value_name = "DIR", default_value = "/proc", hide = true)]
    proc: PathBuf,
}

/// Carries it out.
///
/// # Errors
/// If there is no such process or cgroup, or it may not be read.
pub fn run(args: &Args) -> Result<()> {
    let answer = frames(&args.proc, &of(&args.of))?;
    match args.json {
        true => print_json(&answer),
        false => print(text::render(&answer, args.all, &terminal::screen())),
    }
}

fn of(text: &Path) -> Of<'_> {
    let number = text.to_str().and_then(|t| t.parse().ok());
    number.map_or(Of::Group(text), Of::Process)
}
