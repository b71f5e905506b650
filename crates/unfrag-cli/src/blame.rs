//! `unfrag blame`: who holds the kernel memory that spoils pageblocks, hour by hour; with `--wakes` who has kswapd and
//! kcompactd work.

mod wakes;

use crate::failure::Result;
use crate::inputs::shell_word;
use crate::output::{Console, Progress, check_not_input, name_of, write_file};
use crate::standard::say_line;
use crate::window::{WindowArgs, Within, below_line};
use std::path::PathBuf;
use unfrag_lab::blame::text::{MOMENTS, Rows};
use unfrag_lab::blame::{blame, svg, text};
use unfrag_lab::find::recordings;
use unfrag_lab::input::MEMORY_BUDGET;
use unfrag_lab::report::window::COUNTED_FROM;
use unfrag_linux::segments::Beginning;

/// Holders that are shown if no other number is asked for.
pub const HOLDERS: usize = 12;

/// Say who holds the kernel memory that breaks up huge pages, by program and purpose, by day and by hour
///
/// A block of memory (a pageblock, 2 MiB on most hosts) is broken up where kernel memory takes fewer than half of its pages: all the
/// rest could move, and a huge page would fit but for these few. Each moment's broken blocks are shared out among those who
/// took these pages.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag blame samples/gcc-768M.unfrag
  unfrag blame days --from 06:00 --to 18:00 --svg blame.svg
  unfrag blame days --from 2026-11-28T06:00Z --to 2026-11-28T18:00Z
  unfrag blame days --top 30 --json
  unfrag blame --wakes samples/rings-1024M.unfrag")]
pub struct Args {
    /// An .unfrag file, a directory of segments (unfrag record --system --keep), or a trace
    #[arg(value_name = "FILE|DIR")]
    file: PathBuf,
    #[command(flatten)]
    window: WindowArgs,
    /// Kernel that was recorded (`uname -r`), where the recording does not say
    #[arg(long, value_name = "UNAME-R")]
    release: Option<String>,
    /// Say instead who woke kswapd and kcompactd, who compacted, and how long that took: by driver or subsystem where `unfrag record
    /// --stacks` recorded it, else by program
    #[arg(long, conflicts_with = "all")]
    wakes: bool,
    /// Holders, or with --wakes callers, that are shown; --json has all of them
    #[arg(long, value_name = "N", default_value_t = HOLDERS)]
    top: usize,
    /// Show every interval of time; else at most eight, of which each is the mean of several
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a picture: blocks that kernel memory breaks up over time, by holder; with --wakes a flame graph
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Carries it out.
///
/// # Errors
/// If the recording cannot be read or has no events of pages, or the picture cannot be written.
pub fn run(args: &Args) -> Result<()> {
    if let Some(to) = &args.svg {
        check_not_input(to, &args.file)?;
    }
    let console = Console::beside([("--svg", args.svg.as_deref())], args.json)?;
    if args.wakes {
        let asked = wakes::Asked {
            file: &args.file,
            window: &args.window,
            release: args.release.as_deref(),
            top: args.top,
            json: args.json,
            svg: args.svg.as_deref(),
        };
        return wakes::run(&asked, &console);
    }
    let progress = Progress::new("reading");
    let window = args.window.window();
    let recording = recordings::read_once(
        &args.file,
        args.release.as_deref(),
        &window,
        Beginning::PageFlags,
    )?;
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let found = blame(recording.input(MEMORY_BUDGET), &name).map_err(|e| e.about(&args.file))?;
    drop(progress);
    if let Some(to) = &args.svg {
        write_file(to, svg::render(&found).as_bytes())?;
    }
    let covered = recording.covered.as_ref();
    if args.json {
        console.print_json(&Within::of(covered, &found))?;
    } else {
        let file = shell_word(&args.file);
        let rows = Rows {
            holders: args.top,
            intervals: if args.all { usize::MAX } else { MOMENTS },
        };
        let text = text::render(&found, rows, &file, &console.screen());
        console.print(below_line(covered, COUNTED_FROM, &text))?;
    }
    if let Some(to) = &args.svg {
        say_line(format!("wrote {}", name_of(to)));
    }
    Ok(())
}
