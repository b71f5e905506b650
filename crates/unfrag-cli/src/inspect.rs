//! `unfrag inspect`: the indexes of fragmentation of a snapshot, a recording or this host.

mod table;

use crate::doctor::inside;
use crate::failure::{Failure, Result};
use crate::input;
use crate::output::{Screen, print, print_json};
use std::fs;
use std::path::{Path, PathBuf};
use unfrag_lab::inspect::{self, Inspection};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::{Error, file, snapshots};

/// Show how fragmented memory is: of a procfs snapshot, a recording, or this host
///
/// Of each zone: free blocks by order, the unusable free space index, the fragmentation index, free
/// huge blocks, pageblocks by type. Several snapshots are shown a line each; choose one with
/// --snapshot.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  unfrag inspect /proc\n  unfrag inspect samples/gcc-768M.unfrag --snapshot 1050"
)]
pub struct Args {
    /// Directory with a copy of procfs, or several of them; an archive of these; an .unfrag file; or
    /// /proc
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
    /// Show this snapshot alone
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries it out.
///
/// # Errors
/// If there is nothing to inspect, or it is not what a kernel writes.
pub fn run(args: &Args) -> Result<()> {
    let inspection = inspect(args)?;
    if args.json {
        print_json(&inspection)
    } else {
        print(&table::render(&inspection, &Screen::stdout()))
    }
}

fn inspect(args: &Args) -> Result<Inspection> {
    let path = &args.path;
    let source = path.display().to_string();
    if args.snapshot.is_none() && path.join("buddyinfo").exists() {
        let moment = inspect::moment(&source, |name| fs::read(path.join(name)))
            .map_err(|e| inside(e, path))?;
        return Ok(Inspection {
            source,
            snapshots: vec![moment],
        });
    }
    let mut found = read(path)?;
    if let Some(name) = &args.snapshot {
        let names: Vec<String> = found.iter().map(|s| s.name.clone()).collect();
        found.retain(|s| &s.name == name);
        if found.is_empty() {
            return Err(Failure::usage(
                format!("{source} has no snapshot `{name}`"),
                format!("it has {}", list(&names)),
            ));
        }
    }
    let snapshots = found
        .iter()
        .map(|s| inspect::of_snapshot(s).map_err(|e| inside(e, &path.join(&s.name))))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    if snapshots.iter().all(|m| m.zones.is_empty()) {
        return Err(Error::malformed("no snapshot in it holds a buddyinfo")
            .in_file(path)
            .help("give a directory with a copy of /proc/buddyinfo, an archive of such, or /proc")
            .into());
    }
    Ok(Inspection { source, snapshots })
}

fn read(path: &Path) -> Result<Vec<Snapshot>> {
    let is_dir = fs::metadata(path)
        .map_err(|e| Error::from(e).in_file(path))?
        .is_dir();
    Ok(if !is_dir && input::is_unfrag(path)? {
        file::read(path)?.snapshots
    } else {
        snapshots::read(path)?
    })
}

/// Names, or the ends of a long list of them.
fn list(names: &[String]) -> String {
    match names {
        [] => "none at all".into(),
        [first, second, third, .., last] if names.len() > 8 => {
            format!("{}: {first}, {second}, {third} … {last}", names.len())
        }
        names => names.join(", "),
    }
}
