//! `unfrag redact`: a recording that can be shared.

use crate::failure::{Failure, Result};
use crate::output::{Console, Progress, check_not_input, name_of};
use crate::quantity::{bytes, counted, thousands};
use crate::window::{WindowArgs, Within, line};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use unfrag_lab::find::recordings::is_unfrag;
use unfrag_lab::report::screen::printable;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::redact::{Removed, redact};
use unfrag_linux::{Error, segments};

/// Make a recording that can be shared: the same answers, and nobody's names
///
/// Names of programs, numbers of processes, devices and files, and addresses become numbers, the same ones throughout.
/// Paths, command lines, and whatever no answer is made of are left out. With --from or --to only that window is in it. Names of the kernel's threads, events, caches
/// and counters stay, and its release. Says what was taken out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag redact samples/gcc-768M.unfrag shared.unfrag
  unfrag redact samples/gcc-768M.unfrag some.unfrag --from 10s --to 20s")]
pub struct Args {
    /// An .unfrag file, or a directory of segments
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The .unfrag file to write; - for the standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    window: WindowArgs,
    /// Name all that is left out
    #[arg(long)]
    all: bool,
    /// Print as JSON what was taken out
    #[arg(long)]
    json: bool,
}

/// What was made, as JSON.
#[derive(Serialize)]
struct Made<'a> {
    file_bytes: u64,
    events: u64,
    removed: &'a Removed,
}

/// Carries it out.
///
/// # Errors
/// If the recording cannot be read, would be overwritten, or the file cannot be written.
pub fn run(args: &Args) -> Result<()> {
    check_not_input(&args.output, &args.input)?;
    let console = Console::beside([("OUT", Some(args.output.as_path()))], args.json)?;
    match segments::list(&args.input)?.as_slice() {
        [] if args.input.is_dir() => {
            return Err(Error::malformed("no segments of a recording are in it")
                .in_file(&args.input)
                .help("name an .unfrag file, or a directory of segments")
                .into());
        }
        [] if !is_unfrag(&args.input)? => {
            return Err(Error::unsupported("it is no .unfrag file")
                .in_file(&args.input)
                .help("make one of it with `unfrag import`, and redact that")
                .into());
        }
        [] => {}
        all => all
            .iter()
            .try_for_each(|s| check_not_input(&args.output, s))?,
    }
    check_beside(&args.output, &args.input)?;
    let progress = Progress::new("redacting");
    let done = redact(&args.input, &args.output, &args.window.window())?;
    drop(progress);
    if args.json {
        let made = Made {
            file_bytes: done.file_bytes,
            events: done.events,
            removed: &done.removed,
        };
        return console.print_json(&Within::of(Some(&done.covered), &made));
    }
    let head = format!(
        "{}: {}, {}\n",
        name_of(&args.output),
        bytes(done.file_bytes),
        counted(done.events, "event")
    );
    console.print(head + &line(Some(&done.covered), "") + &said(&done.removed, args.all))
}

/// Refuses a file in the directory of segments that is read: it would be one of them.
fn check_beside(to: &Path, from: &Path) -> Result<()> {
    let directory = match to.parent() {
        Some(parent) if parent == Path::new("") => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    let same = from.is_dir()
        && to != Path::new("-")
        && matches!((directory.canonicalize(), from.canonicalize()), (Ok(a), Ok(b)) if a == b);
    match same {
        true => Err(Failure::usage(
            format!(
                "{} would be one of the segments that are read",
                escaped_path(to)
            ),
            "write elsewhere",
        )),
        false => Ok(()),
    }
}

/// What was taken out, and what stays; by name with `all`.
fn said(r: &Removed, all: bool) -> String {
    let mut out = format!(
        "now numbers  names of programs: {}; processes: {}; devices and files: {}; addresses: {}; events of others than the kernel: {}\n",
        thousands(r.programs),
        thousands(r.tasks),
        thousands(r.files),
        thousands(r.addresses),
        thousands(r.events),
    );
    let lists = [
        ("fields of events", &r.fields),
        ("files of snapshots", &r.files_of_snapshots),
        ("facts", &r.facts),
    ];
    let lists = || lists.iter().filter(|(_, list)| !list.is_empty());
    if all {
        for (what, list) in lists() {
            let list: Vec<String> = list.iter().map(|name| printable(name)).collect();
            let _ = writeln!(out, "left out     {what}: {}", list.join(", "));
        }
    } else if lists().next().is_some() {
        let counts = lists().map(|(what, list)| format!("{what}: {}", list.len()));
        let counts: Vec<String> = counts.collect();
        let _ = writeln!(
            out,
            "left out     what no answer is made of: {} (--all names them)",
            counts.join("; ")
        );
    }
    out += "stays        numbers of pages, orders and flags; when it was; the kernel's release, names of its threads, events, functions,\n\
            \x20            caches and counters; settings in /proc/sys/vm; what the recorder calls its own tasks (unfrag, spooler)\n\
            So it names nobody, and may be shared. A cache that somebody named after themselves would still tell: look at `unfrag summary` first.\n";
    out
}
