//! `unfrag inspect`: the indexes of fragmentation of a snapshot, a recording or this host; two of them compared.

use crate::failure::{Failure, Result};
use crate::output::{print, print_json};
use crate::quantity::page_size;
use crate::terminal;
use crate::window::{WindowArgs, Within, below_line};
use std::path::{Path, PathBuf};
use unfrag_lab::find::moments::moments;
use unfrag_lab::find::snapshots::is_stdin;
use unfrag_lab::inspect::compare::compare;
use unfrag_lab::inspect::{Moment, changes, text};

/// Show how fragmented memory is: of a procfs snapshot, a recording, or this host
///
/// Of each zone: free blocks by order, the unusable free space index, the fragmentation index, free
/// huge blocks, pageblocks by type. Several snapshots are shown a line each; choose one with
/// --snapshot. Two inputs, or two snapshots of one, are compared.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag inspect
  unfrag inspect - < /proc/buddyinfo
  unfrag inspect samples/gcc-768M.unfrag --snapshot 1050
  unfrag inspect samples/gcc-768M.unfrag --snapshot 0000-idle --snapshot 1050
  unfrag inspect samples/gcc-768M.unfrag /proc")]
pub struct Args {
    /// Directory with a copy of procfs, or several of them; an archive of these; a sosreport; files of procfs pasted
    /// into one text; an .unfrag file or a directory of segments; - for standard input; this host if none is given
    #[arg(value_name = "DIR|FILE|-", default_value = "/proc")]
    path: PathBuf,
    /// Another one, to compare with
    #[arg(value_name = "OTHER")]
    other: Option<PathBuf>,
    /// Show this snapshot alone; given twice, compare the two. Of two inputs the first name is one of the first. Without
    /// a name the last snapshot is compared
    #[arg(long, value_name = "NAME")]
    snapshot: Vec<String>,
    #[command(flatten)]
    window: WindowArgs,
    /// Size of a page, where no file tells it: 4K, 8K, 16K or 64K
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries it out.
///
/// # Errors
/// If there is nothing to inspect, or it is not what a kernel writes.
pub fn run(args: &Args) -> Result<()> {
    if args.snapshot.len() > 2 {
        return Err(Failure::usage(
            "more than two snapshots are named",
            "name one to see it, or two to compare them",
        ));
    }
    if let Some((before, after)) = pair(args)? {
        let comparison = compare(&before, &after);
        return if args.json {
            print_json(&comparison)
        } else {
            print(changes::render(&comparison, &terminal::screen()))
        };
    }
    let name = args.snapshot.first().map(String::as_str);
    let inspection = moments(&args.path, name, args.page_size, &args.window.window())?;
    let covered = inspection.covered.as_ref();
    if args.json {
        print_json(&Within::of(covered, &inspection))
    } else {
        let text = text::render(&inspection, &terminal::screen());
        print(below_line(covered, "", &text))
    }
}

/// The two moments that are to be compared; `None` if one is to be shown.
fn pair(args: &Args) -> Result<Option<(Moment, Moment)>> {
    let name = |at: usize| args.snapshot.get(at).map(String::as_str);
    let other = match (&args.other, args.snapshot.as_slice()) {
        (Some(other), _) if is_stdin(other) && is_stdin(&args.path) => {
            return Err(Failure::usage(
                "standard input is given twice",
                "give a file for one of the two",
            ));
        }
        (Some(other), _) => other,
        (None, [_, _]) if is_stdin(&args.path) => {
            return Err(Failure::usage(
                "two snapshots of standard input cannot be read",
                "write it to a file, and give that",
            ));
        }
        (None, [_, _]) => &args.path,
        (None, _) => return Ok(None),
    };
    let one = |path: &Path, name: Option<&str>| -> Result<Moment> {
        let inspection = moments(path, name, args.page_size, &args.window.window())?;
        let source = inspection.source;
        let telling = |m: &Moment| !m.zones.is_empty();
        let mut moments = inspection.snapshots;
        let at = moments.iter().rposition(telling).unwrap_or(0);
        let is_one = moments.len() == 1 && name.is_none();
        let mut moment = moments.swap_remove(at);
        if !is_one || moment.name.is_empty() {
            moment.name = format!("{source}, snapshot {}", moment.name);
        } else {
            moment.name = source;
        }
        Ok(moment)
    };
    Ok(Some((one(&args.path, name(0))?, one(other, name(1))?)))
}
