//! `unfrag account`: where the memory is, every frame once, and what no counter of the kernel has.

use crate::failure::Result;
use crate::output::{Console, check_not_input, name_of, write_file};
use crate::quantity::{interval, page_size};
use crate::standard::say_line;
use crate::window::{WindowArgs, Within, below_line};
use std::path::PathBuf;
use unfrag_lab::account::{svg, text};
use unfrag_lab::find::account::{Asked, accounted};

/// Say where the memory is: every frame that exists, once, by what it is used for, and what no counter of the kernel has
///
/// From the flags of each frame (root), beside what the kernel's own counters say. Pages of drivers, pipes and sockets, and
/// leaks, are in none of them: that is what is left, and what grew between two looks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag account
  unfrag account --every 10s
  unfrag account samples/fragmented-384M.unfrag
  unfrag account samples/fragmented-384M.unfrag --snapshot begin --snapshot end
  unfrag account monday.unfrag friday.unfrag --svg memory.svg")]
pub struct Args {
    /// An .unfrag file, a directory of segments, a directory with a copy of procfs or several, an archive of these; - for
    /// standard input; this host if none is given
    #[arg(value_name = "FILE|DIR|-", default_value = "/proc")]
    path: PathBuf,
    /// A later look at the same host, to say what grew
    #[arg(value_name = "LATER")]
    later: Option<PathBuf>,
    /// Of several snapshots, this one instead of the last with page flags; given twice, what grew from the first to the second
    #[arg(long, value_name = "NAME")]
    snapshot: Vec<String>,
    /// Look at this host again after this time, and say what grew: 10s, 5m
    #[arg(long, value_name = "TIME", value_parser = |text: &str| interval(text, 0.01), conflicts_with_all = ["later", "snapshot"])]
    every: Option<f64>,
    /// Bytes in a page, if no file tells: 4K, 16K, 64K
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<u64>,
    #[command(flatten)]
    window: WindowArgs,
    /// Print blocks by their size, and every place of the kernel's source (allocinfo), as well
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a picture: a tile for each use, as large as its share
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Carries it out.
///
/// # Errors
/// If an input cannot be read, or does not tell what memory is used for.
pub fn run(args: &Args) -> Result<()> {
    if let Some(to) = &args.svg {
        let mut inputs = args.later.iter().chain([&args.path]);
        inputs.try_for_each(|from| check_not_input(to, from))?;
    }
    let console = Console::beside([("--svg", args.svg.as_deref())], args.json)?;
    // A huge page that this program takes while page flags are read is 2 MiB that they and the counters tell differently.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let (found, covered) = accounted(&Asked {
        path: &args.path,
        later: args.later.as_deref(),
        snapshots: &args.snapshot,
        every: args.every,
        window: args.window.window(),
        page_size: args.page_size,
    })?;
    if let Some(to) = &args.svg {
        write_file(to, svg::render(&found.account).as_bytes())?;
    }
    let covered = covered.as_ref();
    if args.json {
        console.print_json(&Within::of(covered, &found))?;
    } else {
        let text = text::render(&found, args.all, &console.screen());
        console.print(below_line(covered, "", &text))?;
    }
    if let Some(to) = &args.svg {
        say_line(format!("wrote {}", name_of(to)));
    }
    Ok(())
}
