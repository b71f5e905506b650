//! `unfrag inspect`: the indexes of fragmentation of a snapshot, a recording or this host; two of them compared.

mod changes;
mod table;

use crate::doctor::inside;
use crate::failure::{Failure, Result};
use crate::output::{Screen, print, print_json};
use crate::snapshot_input::{self, is_stdin, named, page_size};
use crate::window::WindowArgs;
use std::fs;
use std::path::{Path, PathBuf};
use unfrag_lab::inspect::compare::compare;
use unfrag_lab::inspect::{self, Inspection, Moment, Unread};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::segments::Window;

/// Show how fragmented memory is: of a procfs snapshot, a recording, or this host
///
/// Of each zone: free blocks by order, the unusable free space index, the fragmentation index, free
/// huge blocks, pageblocks by type. Several snapshots are shown a line each; choose one with
/// --snapshot. Two inputs, or two snapshots of one, are compared.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag inspect /proc
  unfrag inspect - < /proc/buddyinfo
  unfrag inspect samples/gcc-768M.unfrag --snapshot 1050
  unfrag inspect samples/gcc-768M.unfrag --snapshot 0000-idle --snapshot 1050
  unfrag inspect samples/gcc-768M.unfrag /proc")]
pub struct Args {
    /// Directory with a copy of procfs, or several of them; an archive of these; a sosreport; files of procfs pasted
    /// into one text; an .unfrag file or a directory of segments; - for standard input; or /proc
    #[arg(value_name = "DIR|FILE|-")]
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
            print(&changes::render(&comparison, &Screen::stdout()))
        };
    }
    let name = args.snapshot.first().map(String::as_str);
    let inspection = inspect(&args.path, name, args.page_size, &args.window.window())?;
    if args.json {
        print_json(&inspection)
    } else {
        print(&table::render(&inspection, &Screen::stdout()))
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
        let inspection = inspect(path, name, args.page_size, &args.window.window())?;
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

/// Files of which each alone tells something of free memory.
const TELLING: [&str; 5] = [
    "buddyinfo",
    "pagetypeinfo",
    "zoneinfo",
    "unusable_index",
    "extfrag_index",
];

fn inspect(
    path: &Path,
    name: Option<&str>,
    page_size: Option<u64>,
    window: &Window,
) -> Result<Inspection> {
    let source = snapshot_input::name(path);
    if name.is_none() && TELLING.iter().any(|f| path.join(f).is_file()) {
        let moment = inspect::moment(&source, page_size, |name| fs::read(path.join(name)))
            .map_err(|e| inside(e, path))?;
        return Ok(Inspection {
            source,
            snapshots: vec![moment],
        });
    }
    let mut found = snapshot_input::snapshots(path, window)?;
    if let Some(name) = name {
        found = vec![named(&found, name, &source)?.clone()];
    }
    let snapshots = match found.as_slice() {
        [one] => {
            vec![of(one, page_size).map_err(|e| inside(e, &Path::new(&source).join(&one.name)))?]
        }
        several => several.iter().map(|s| or_unread(s, page_size)).collect(),
    };
    if snapshots.iter().all(|m| m.zones.is_empty()) {
        return Err(inspect::nothing_in_it().in_file(source.as_ref()).into());
    }
    Ok(Inspection { source, snapshots })
}

fn of(snapshot: &Snapshot, page_size: Option<u64>) -> unfrag_linux::Result<Moment> {
    inspect::of_snapshot(snapshot, page_size)
}

/// A moment; of a snapshot that cannot be read only why.
fn or_unread(snapshot: &Snapshot, page_size: Option<u64>) -> Moment {
    of(snapshot, page_size).unwrap_or_else(|mut e| {
        let file = e.file.take().map(|f| f.display().to_string());
        Moment {
            name: snapshot.name.clone(),
            unread: vec![Unread {
                file: file.unwrap_or_default(),
                why: e.to_string(),
            }],
            ..Moment::default()
        }
    })
}
