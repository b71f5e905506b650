//! `unfrag summary`: what a trace alone tells, without snapshots; with other questions of the same recording beside it.

use crate::blame::HOLDERS;
use crate::failure::{Failure, Result};
use crate::inputs::shell_word;
use crate::no_kernel::NoKernel;
use crate::output::{Progress, Text, print, print_json};
use crate::terminal;
use crate::window::{WindowArgs, Within, below_line};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use unfrag_lab::blame;
use unfrag_lab::blame::text::{MOMENTS, Rows};
use unfrag_lab::find::recordings::{self, Streamed};
use unfrag_lab::input::MEMORY_BUDGET;
use unfrag_lab::profile::{self, Identity};
use unfrag_lab::report::window::COUNTED_FROM;
use unfrag_lab::summary::text;
use unfrag_lab::together::{Answers, Questions, ask};
use unfrag_linux::segments::{Beginning, Window};
use unfrag_linux::{Error, Options, file};

/// Say what a trace alone tells, without snapshots: who asks for what, what failed, what was done about it
///
/// Who asks for which orders, failed requests, requests served from blocks of another type (extfrag), runs
/// of compaction and what they gained, wake-ups of kswapd, stalls of direct reclaim. What the trace does
/// not hold is named. --blame and --profile answer what `unfrag blame` and `unfrag profile` do; the recording is
/// read once for all of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag summary samples/gcc-768M.unfrag
  unfrag summary --release 6.1.0 --top 5 - < trace.dat
  unfrag summary samples/gcc-768M.unfrag --blame --profile --json")]
pub struct Args {
    /// A trace (trace.dat, perf.data, text, also compressed), an .unfrag file, or a directory of segments; - is the
    /// standard input
    #[arg(value_name = "FILE|DIR|-")]
    file: PathBuf,
    #[command(flatten)]
    window: WindowArgs,
    /// Kernel that was recorded (`uname -r`), where the recording does not say
    #[arg(long, value_name = "UNAME-R")]
    release: Option<String>,
    #[command(flatten)]
    kernel: NoKernel,
    /// Rows of each list; --json has all of them
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Say, too, who holds the kernel memory that breaks up huge pages
    #[arg(long)]
    blame: bool,
    /// Say, too, what the recorded command does to memory
    #[arg(long)]
    profile: bool,
    /// Print JSON: the summary; with --blame or --profile an object with `summary`, `blame` and `profile`
    #[arg(long)]
    json: bool,
}

/// Carries it out.
///
/// # Errors
/// If the trace cannot be read, or a question not be answered.
pub fn run(args: &Args) -> Result<()> {
    args.kernel.check()?;
    let progress = Progress::new("reading");
    let window = args.window.window();
    // What was held before the window tells who spoils blocks in it.
    let beginning = match args.blame {
        true => Beginning::PageFlags,
        false => Beginning::Exact,
    };
    let is_stdin = args.file == Path::new("-");
    if is_stdin && args.profile {
        return Err(Failure::usage(
            "--profile says of which file it is, and the standard input is none",
            "name the file",
        ));
    }
    let (streamed, source) = match is_stdin {
        true => (
            standard_input(args.release.as_deref(), &window, beginning)?,
            "standard input".to_owned(),
        ),
        false => (
            match args.profile {
                // That reads them twice.
                true => recordings::streamed(
                    &args.file,
                    &[],
                    args.release.as_deref(),
                    &window,
                    beginning,
                )?,
                false => {
                    recordings::read_once(&args.file, args.release.as_deref(), &window, beginning)?
                }
            },
            args.file.display().to_string(),
        ),
    };
    let name = match is_stdin {
        true => source.as_str().into(),
        false => args.file.file_name().unwrap_or_default().to_string_lossy(),
    };
    let questions = Questions {
        blame: args.blame,
        profile: match args.profile {
            true => Some(identity(&args.file, &name)?),
            false => None,
        },
    };
    progress.message("counting".into());
    let about = |e: unfrag_lab::error::Error| match is_stdin {
        true => e,
        false => e.about(&args.file),
    };
    let covered = streamed.covered.clone();
    let covered = covered.as_ref();
    let answers = ask(streamed, &source, &name, questions, MEMORY_BUDGET).map_err(about)?;
    drop(progress);
    match (args.json, args.blame || args.profile) {
        (true, true) => print_json(&Within::of(covered, &answers)),
        (true, false) => print_json(&Within::of(covered, &answers.summary)),
        (false, _) => {
            let text = rendered(&answers, &args.file, args.top);
            print(below_line(covered, COUNTED_FROM, &text))
        }
    }
}

/// The answers, one below the other.
fn rendered(answers: &Answers, file: &Path, top: usize) -> Text {
    let screen = terminal::screen();
    let mut out = text::render(&answers.summary, top, &screen);
    let head = |out: &mut Text, title: &str| {
        out.push('\n');
        out.push_head(&screen, title);
    };
    if let Some(blame) = &answers.blame {
        head(
            &mut out,
            "Who holds the kernel memory that breaks up huge pages",
        );
        let rows = Rows {
            holders: top.max(HOLDERS),
            intervals: MOMENTS,
        };
        out.append(&blame::text::render(
            blame,
            rows,
            &shell_word(file),
            &screen,
        ));
    }
    if let Some(profile) = &answers.profile {
        head(&mut out, "What the command does to memory");
        out.append(&profile::text::render(profile, &screen));
    }
    out
}

/// The identity of the recording in a file.
fn identity(file: &Path, name: &str) -> Result<Identity> {
    let content = recordings::identity(file).map_err(|e| Error::from(e).in_file(file));
    let found = Identity::of(name, &mut content?);
    Ok(found.map_err(|e| e.in_file(file))?)
}

/// Most bytes that are read from the standard input.
const CAP: u64 = 8 << 30;

/// A recording of any format from the standard input.
fn standard_input(
    release: Option<&str>,
    window: &Window,
    beginning: Beginning,
) -> Result<Streamed> {
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
    let mut streamed = Streamed::of(recording);
    streamed
        .cut(window, beginning)
        .map_err(|e| e.in_file(name))?;
    Ok(streamed)
}
