//! `unfrag profile`: what a recorded command does to memory.

use crate::failure::{Failure, Result};
use crate::output::{Console, Progress, check_not_input, write_file};
use crate::window::{WindowArgs, Within, below_line};
use std::path::PathBuf;
use unfrag_lab::find::recordings;
use unfrag_lab::profile::{Identity, Profile, text};
use unfrag_linux::Error;
use unfrag_linux::segments::Beginning;

/// Say what a recorded command does to memory: pages by use and life, files, slab objects, program by program
///
/// Reads what `unfrag record --processes -- COMMAND` wrote (with --slab, slab objects too), and writes a small file that
/// scenarios of the simulated machine take programs from.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag record --processes --slab -o ls.unfrag -- ls -R /usr
  unfrag profile ls.unfrag -o ls.toml
  unfrag profile samples/gcc-768M.unfrag --json")]
pub struct Args {
    /// A recording: an .unfrag file, a directory of segments, or a trace (trace.dat, perf.data, text)
    file: PathBuf,
    /// Write the profile as TOML; - for the standard output
    #[arg(short, long, value_name = "NAME.toml")]
    output: Option<PathBuf>,
    #[command(flatten)]
    window: WindowArgs,
    /// Kernel that was recorded (`uname -r`), where the recording does not say
    #[arg(long, value_name = "UNAME-R")]
    release: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries it out.
///
/// # Errors
/// If the recording has no page events, or is not what it should be, or the output cannot be written.
pub fn run(args: &Args) -> Result<()> {
    args.output
        .iter()
        .try_for_each(|to| check_not_input(to, &args.file))?;
    let console = Console::beside([("--output", args.output.as_deref())], args.json)?;
    let progress = Progress::new("reading");
    let (rec, covered) = recordings::recording(
        &args.file,
        &[],
        args.release.as_deref(),
        &args.window.window(),
        Beginning::Exact,
    )?;
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let mut content =
        recordings::identity(&args.file).map_err(|e| Error::from(e).in_file(&args.file))?;
    let in_file = |e: unfrag_lab::error::Error| Failure::from(e.in_file(&args.file));
    let identity = Identity::of(&name, &mut content).map_err(in_file)?;
    progress.message("counting".into());
    let profile = Profile::of(&rec, &identity).map_err(in_file)?;
    drop(progress);
    if let Some(path) = &args.output {
        write_file(path, profile.to_toml()?.as_bytes())?;
    }
    if args.json {
        console.print_json(&Within::of(Some(&covered), &profile))
    } else {
        let text = text::render(&profile, &console.screen());
        console.print(below_line(Some(&covered), "", &text))
    }
}
