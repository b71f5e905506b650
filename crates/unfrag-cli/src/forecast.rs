//! `unfrag forecast`: how long until a need of large blocks fails, from looks of days.

use crate::failure::Result;
use crate::output::{print, print_json};
use crate::quantity::page_size;
use crate::terminal;
use crate::window::{WindowArgs, Within, below_line};
use std::path::PathBuf;
use unfrag_lab::doctor::gate::Need;
use unfrag_lab::find::days::foretold;
use unfrag_lab::forecast::text;

/// Say how long until a need of large blocks fails, from copies of procfs of several days
///
/// Follows two numbers of blocks over time: those that are free, and those that reclaim and compaction could make at best.
/// The answer is an interval in which the need fails in eight of ten futures, or that it is not known.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag forecast days --need 500x2M
  unfrag forecast samples/looks-5-days.tar.zst --need 130x256K --json
  unfrag forecast range.json --need 500x2M")]
pub struct Args {
    /// A directory of copies of procfs, each in a directory that is named by its date; an archive of these; a directory of
    /// segments (unfrag record --keep); an .unfrag file; what Prometheus answers to /api/v1/query_range; - for standard input
    #[arg(value_name = "DIR|FILE|-")]
    path: PathBuf,
    /// So many blocks of one size, on any node or on one: 500x2M, 64x2M@node0
    #[arg(long, value_name = "NxSIZE[@nodeK]")]
    need: Need,
    #[command(flatten)]
    window: WindowArgs,
    /// Size of a page, where no file tells it: 4K, 8K, 16K or 64K
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<u64>,
    /// Seed of the futures that are made
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries it out.
///
/// # Errors
/// If the input cannot be read, has no dates, or the need is of blocks that its host does not make.
pub fn run(args: &Args) -> Result<()> {
    let (found, covered) = foretold(
        &args.path,
        &args.window.window(),
        args.need,
        args.page_size,
        args.seed,
    )?;
    let covered = covered.as_ref();
    match args.json {
        true => print_json(&Within::of(covered, &found)),
        false => print(below_line(
            covered,
            "",
            &text::render(&found, &terminal::screen()),
        )),
    }
}
