//! `unfrag top`: what memory does, in a pool that runs, a replay or this host.

use crate::failure::{Failure, Result};
use crate::output::{Progress, Screen, Text, print, print_json_line};
use crate::quantity::interval;
use crate::terminal;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};
use unfrag_eras::Manager;
use unfrag_eras::kernel;
use unfrag_lab::find::recordings;
use unfrag_lab::input::MEMORY_BUDGET;
use unfrag_lab::replay::model::ReplayHost;
use unfrag_lab::replay::{self, Options, Watch};
use unfrag_lab::top::show::Shown;
use unfrag_lab::top::text::{self, Style};
use unfrag_lab::top::{View, directory, memory_blocks, replayed};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::segments::{Beginning, Window};

/// Watch memory: blocks as a coloured map, rates of events, how long allocations waited
///
/// Of a program's pool that writes its state into a directory (Pool::write_procfs), of a recording that is replayed,
/// snapshot by snapshot, or of this host, which has a map with --blocks alone. A block's colour says what is in use in it, its height how much.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag top samples/gcc-768M.unfrag
  unfrag top samples/gcc-768M.unfrag --kernel unfrag --count 3 --json
  unfrag top --count 1
  unfrag top --blocks --interval 10s
  unfrag top /run/my-pool")]
pub struct Args {
    /// Directory that a pool writes to, or an .unfrag file to replay; this host if none is given
    #[arg(value_name = "DIR|FILE", default_value = "/proc")]
    path: PathBuf,
    /// Time between two pictures, such as 2, 0.5s or 1m; of a replay at most
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = |text: &str| interval(text, 0.01))]
    interval: f64,
    /// Pictures, then end; without a terminal, one of a directory, and all of a replay
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Kernel to replay under; the recorded one if none is given
    #[arg(long, value_name = "NAME", value_parser = kernels(), ignore_case = true)]
    kernel: Option<String>,
    /// Show this host's memory blocks (128 MiB), as they are unplugged: which could go, and which the kernel keeps. Reads the
    /// flags of each frame for each picture, which needs root
    #[arg(long)]
    blocks: bool,
    /// Print a line of JSON for each picture
    #[arg(long)]
    json: bool,
}

fn kernels() -> PossibleValuesParser {
    kernel::kernels().map(|p| p.name).collect::<Vec<_>>().into()
}

/// Carries it out.
///
/// # Errors
/// If the directory or the recording cannot be read.
pub fn run(args: &Args) -> Result<()> {
    let mut pictures = Pictures::new(args);
    if args.path.is_dir() {
        return follow(args, &mut pictures);
    }
    if args.blocks {
        return Err(Failure::usage(
            "--blocks says nothing about a recording",
            "leave it out, or give no file for this host",
        ));
    }
    let recording = recordings::streamed(
        &args.path,
        &[],
        None,
        &Window::default(),
        Beginning::PageFlags,
    )?;
    let name = args.path.file_name().unwrap_or_default().to_string_lossy();
    let options = Options {
        kernels: args.kernel.iter().cloned().collect(),
        members: Some(1),
        ..Options::default()
    };
    let mut watcher = Watcher {
        progress: Progress::new("replaying"),
        pictures,
        failure: None,
    };
    replay::replay(
        recording.input(MEMORY_BUDGET),
        &name,
        &options,
        &mut watcher,
    )
    .map_err(|e| e.about(&args.path))?;
    drop(watcher.progress);
    match watcher.failure {
        Some(failure) => Err(failure),
        None if watcher.pictures.before.is_none() => Err(Failure::usage(
            "the recording has no snapshot to show",
            "record with snapshots: unfrag record",
        )),
        None => Ok(()),
    }
}

/// Shows a directory as it changes.
fn follow(args: &Args, pictures: &mut Pictures) -> Result<()> {
    if args.kernel.is_some() {
        return Err(Failure::usage(
            "--kernel says nothing about a directory",
            "leave it out, or name an .unfrag file",
        ));
    }
    let begin = Instant::now();
    let once = pictures.height.is_none();
    let most = args.count.or(once.then_some(1)).unwrap_or(u64::MAX);
    for shown in 1..=most {
        let mut view = directory::read(&args.path, begin.elapsed().as_secs_f64())?;
        if args.blocks {
            view.areas.push(memory_blocks::area(&args.path)?);
        }
        pictures.show(view)?;
        if shown < most {
            sleep(Duration::from_secs_f64(args.interval));
        }
    }
    Ok(())
}

/// Draws one view after the other.
struct Pictures {
    screen: Screen,
    height: Option<usize>,
    json: bool,
    interval: Duration,
    left: u64,
    before: Option<View>,
}

impl Pictures {
    fn new(args: &Args) -> Pictures {
        Pictures {
            screen: terminal::screen(),
            height: terminal::height(),
            json: args.json,
            interval: Duration::from_secs_f64(args.interval),
            left: args.count.unwrap_or(u64::MAX),
            before: None,
        }
    }

    fn show(&mut self, view: View) -> Result<()> {
        let before = self.before.as_ref();
        if self.json {
            print_json_line(&Shown::new(&view, before))?;
        } else {
            let style = Style {
                screen: self.screen,
                // The rest is for the numbers.
                rows: self.height.map_or(24, |h| (h / 2).max(4)),
            };
            let mut out = Text::new();
            if self.screen.color {
                out.clear_screen();
            }
            out.append(&text::render(&view, before, &style));
            if !self.screen.color {
                out.push('\n');
            }
            print(out)?;
        }
        self.before = Some(view);
        Ok(())
    }
}

/// Watches a replay.
struct Watcher {
    progress: Progress,
    pictures: Pictures,
    failure: Option<Failure>,
}

impl Watch for Watcher {
    fn progress(&mut self, done: u64, total: u64) {
        if self.pictures.before.is_none() {
            self.progress.at(done, total);
        }
    }

    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, manager: &Manager<'_, ReplayHost>) {
        if self.failure.is_some() || self.pictures.left == 0 {
            return;
        }
        self.pictures.left -= 1;
        let shown = replayed::view(kernel, snap, manager)
            .map_err(Failure::from)
            .and_then(|view| self.pictures.show(view));
        if let Err(failure) = shown {
            self.failure = Some(failure);
        } else if self.pictures.height.is_some() && !self.pictures.json {
            sleep(self.pictures.interval);
        }
    }
}
