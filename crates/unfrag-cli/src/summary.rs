//! `unfrag summary`: what a trace alone tells, without snapshots.

use crate::failure::Result;
use crate::output::{Progress, print, print_json};
use crate::terminal;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use unfrag_lab::find::recordings;
use unfrag_lab::summary::{summarize, text};
use unfrag_linux::recording::Recording;
use unfrag_linux::segments::Window;
use unfrag_linux::{Error, Options, file};

/// Say what a trace alone tells, without snapshots: who asks for what, what failed, what was done about it
///
/// Who asks for which orders, failed requests, requests served from blocks of another type (extfrag), runs
/// of compaction and what they gained, wake-ups of kswapd, stalls of direct reclaim. What the trace does
/// not hold is named.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag summary samples/gcc-768M.unfrag
  unfrag summary --kernel 6.1.0 --top 5 - < trace.dat
  unfrag summary trace.dat --json")]
pub struct Args {
    /// A trace (trace.dat, perf.data, text, also compressed), or an .unfrag file; - is the standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Kernel that was traced (`uname -r`), where the trace does not say
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Rows of each list; --json has all of them
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries it out.
///
/// # Errors
/// If the trace cannot be read.
pub fn run(args: &Args) -> Result<()> {
    let progress = Progress::new("reading");
    let (recording, source) = match args.file == Path::new("-") {
        true => (
            standard_input(args.kernel.as_deref())?,
            "standard input".to_owned(),
        ),
        false => (
            recordings::recording(&args.file, &[], args.kernel.as_deref(), &Window::default())?,
            args.file.display().to_string(),
        ),
    };
    progress.message("counting".into());
    let summary = summarize(&recording, &source)?;
    drop(progress);
    if args.json {
        print_json(&summary)
    } else {
        print(text::render(&summary, args.top, &terminal::screen()))
    }
}

/// Most bytes that are read from the standard input.
const CAP: u64 = 8 << 30;

/// A recording of any format from the standard input.
fn standard_input(release: Option<&str>) -> Result<Recording> {
    let name = Path::new("standard input");
    let mut data = vec![];
    let read = io::stdin().lock().take(CAP).read_to_end(&mut data);
    read.map_err(|e| Error::from(e).in_file(name))?;
    let options = Options {
        kernel_release: release,
        ..Default::default()
    };
    let read = match data.starts_with(file::MAGIC) {
        true => file::from_bytes(&data),
        false => unfrag_linux::read(&data, &options),
    };
    let mut recording = read.map_err(|e| e.in_file(name))?;
    if recording.meta.kernel_release.is_empty() {
        recording.meta.kernel_release = release.unwrap_or_default().to_owned();
    }
    Ok(recording)
}
