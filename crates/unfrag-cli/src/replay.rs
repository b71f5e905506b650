//! `unfrag replay`: what memory would have looked like under another kernel, and how far to trust it.

mod watcher;

use crate::failure::{Failure, Result};
use crate::output::{Console, Progress, check_directory, check_not_input, name_of, write_file};
use crate::own_memory::most_memory;
use crate::quantity;
use crate::standard::say_line;
use crate::window::{WindowArgs, Within, below_line};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use unfrag_eras::kernel;
use unfrag_lab::era::settings::Setting;
use unfrag_lab::find::recordings::{self, Streamed};
use unfrag_lab::replay::answer::ensemble;
use unfrag_lab::replay::view::detail::Detail;
use unfrag_lab::replay::view::said::Told;
use unfrag_lab::replay::view::{html, observed, svg, terminal};
use unfrag_lab::replay::{self, Report};
use unfrag_linux::Error;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::segments::{Beginning, Covered};
use watcher::Watcher;

/// What begins at page flags before a window.
const BEGINS: &str = "The replay, and what it counts, begins at";

/// Replay a recording: what would memory have looked like under another kernel or setting?
///
/// The recording gives what the workload asked for; the model of the kernel decides where each page
/// goes. For the kernel that was recorded, the result is compared with what that kernel really
/// showed, so the report says how far to trust it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag replay samples/gcc-768M.unfrag
  unfrag replay samples/gcc-768M.unfrag --kernel 6.1,6.18 --html report.html
  unfrag replay trace.dat --snapshots snapshots --set vm.min_free_kbytes=8192 --json")]
pub struct Args {
    /// An .unfrag file, a directory of segments, or a trace together with --snapshots
    file: PathBuf,
    /// Directory or tar archive of dated procfs copies, where FILE is a trace
    #[arg(long, value_name = "DIR-or-tar", num_args = 1..)]
    snapshots: Vec<PathBuf>,
    #[command(flatten)]
    window: WindowArgs,
    /// Kernel that was recorded (`uname -r`), where the recording does not say
    #[arg(long, value_name = "UNAME-R")]
    release: Option<String>,
    /// Kernels to replay it under, separated by commas; the recorded one if none is given
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = kernels(), ignore_case = true)]
    kernel: Vec<String>,
    /// A sysctl to ask for, such as vm.min_free_kbytes=8192, or transparent_hugepage/enabled or /defrag; from SECONDS
    /// after the first event on; without @SECONDS from when the recorded host set its own while the trace ran, else from the beginning.
    /// May be given several times, and a wrong name is answered with those that are known
    #[arg(long, value_name = "vm.NAME=VALUE[@SECONDS]", value_parser = Setting::parse)]
    set: Vec<Setting>,
    /// A sysctl that the recorded host had, where the recording does not show it: from the beginning, or from
    /// SECONDS after the first event on; may be given several times
    #[arg(long, value_name = "vm.NAME=VALUE[@SECONDS]", value_parser = Setting::parse)]
    recorded: Vec<Setting>,
    /// Size of memory, such as 1G, if another than the recorded one
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    memory: Option<u64>,
    /// Who decides where a page goes
    #[arg(long, value_enum, default_value_t = Mode::Predict)]
    mode: Mode,
    /// Where the replay begins
    #[arg(long, value_enum, default_value_t = Start::Auto)]
    start: Start,
    /// Whose reclaim frees pages
    #[arg(long, value_enum, default_value_t = Reclaim::Modelled)]
    reclaim: Reclaim,
    /// Whose compaction moves pages; if not given, the same one's as reclaim
    #[arg(long, value_enum)]
    compaction: Option<Compaction>,
    /// Replays whose median is the answer, an odd number; 21 if not given. They differ in what nobody recorded, such
    /// as how fast kswapd is; where the model does not reclaim there is one
    #[arg(long, value_name = "N", value_parser = members)]
    members: Option<u32>,
    /// Replay, too, where little of what the host allocated was recorded
    #[arg(long)]
    any_share: bool,
    /// Memory for what is made of the recording's events; what exceeds it goes to a temporary file
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "128M")]
    memory_budget: u64,
    /// Show every number, zeros and those of which nothing can be said, too
    #[arg(long)]
    all: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Write the report as one HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a still picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the model's state at each snapshot as procfs files, a directory each
    #[arg(long, value_name = "DIR")]
    export_procfs: Option<PathBuf>,
    /// Say how long it took and how much memory, on the standard error
    #[arg(long)]
    timing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Reclaim {
    /// The model's own kswapd and direct reclaim
    Modelled,
    /// The recorded kernel's, as given
    Given,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compaction {
    /// The model's own, if its kernel compacts
    Modelled,
    /// The recorded kernel's: the pages that it moved move in the model too, if its kernel compacts
    Given,
    /// Nobody's: pages stay where they are
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// The model; the trace gives only causes
    Predict,
    /// The trace: checks the recording, and reconstructs what really was
    Observe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Start {
    /// The first of these that the recording allows
    Auto,
    /// At the kernel's own free lists
    Exact,
    /// With each frame free or in use as the page flags of the first snapshot say
    Occupancy,
    /// From what any host shows
    Counts,
    /// As each kernel would place what was in use after a boot of its own: without the host's history
    Boot,
}

/// The kernels that are known here.
fn kernels() -> PossibleValuesParser {
    kernel::kernels().map(|p| p.name).collect::<Vec<_>>().into()
}

/// A number of replays that has a middle.
fn members(text: &str) -> std::result::Result<u32, String> {
    let n: u32 = text.parse().map_err(|e| format!("{e}"))?;
    ensemble::check(n).map(|()| n).map_err(|e| e.to_string())
}

/// Carries it out.
///
/// # Errors
/// If the recording cannot be read or replayed, or an output cannot be written.
pub fn run(args: &Args) -> Result<()> {
    let mut outputs = [&args.html, &args.svg].into_iter().flatten();
    outputs.try_for_each(|to| check_not_input(to, &args.file))?;
    let files = [
        ("--html", args.html.as_deref()),
        ("--svg", args.svg.as_deref()),
    ];
    let console = Console::beside(files, args.json)?;
    if let Some(directory) = &args.export_procfs {
        check_directory("--export-procfs", directory)?;
    }
    if args.mode == Mode::Observe {
        check_observe(args)?;
    }
    let begin = Instant::now();
    let progress = Progress::new("reading");
    let recording = read(args)?;
    let loaded = begin.elapsed();
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let several = args.kernel.len() > 1;
    let mut watcher = Watcher::new(progress, args.export_procfs.as_deref(), several);
    let input = recording.input(args.memory_budget);
    let report = replay::replay(input, &name, &options(args), &mut watcher)
        .map_err(|e| e.about(&args.file))?;
    let done = begin.elapsed();
    let trees = watcher.finish()?;
    write(args, &report, recording.covered.as_ref(), console)?;
    if let (Some(directory), Some(trees)) = (&args.export_procfs, trees) {
        let trees = quantity::counted(trees, "snapshot");
        let broke = report.kernels.iter().any(|k| k.broke_down.is_some());
        let sign = match broke {
            true => ", those of a model that broke down among them, which are no answer",
            false => "",
        };
        say_line(format!(
            "wrote {trees} to {}{sign}",
            escaped_path(directory)
        ));
    }
    if args.timing {
        tell_time(&report, loaded, done);
    }
    Ok(())
}

fn check_observe(args: &Args) -> Result<()> {
    let given = [
        (!args.kernel.is_empty(), "--kernel"),
        (!args.set.is_empty(), "--set"),
        (args.memory.is_some(), "--memory"),
        (args.export_procfs.is_some(), "--export-procfs"),
        (args.members.is_some(), "--members"),
    ];
    match given.iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => Err(Failure::usage(
            format!("{option} says nothing where the trace decides"),
            "leave it out, or use --mode predict",
        )),
    }
}

fn read(args: &Args) -> Result<Streamed> {
    let file = &args.file;
    let streamed = recordings::streamed(
        file,
        &args.snapshots,
        args.release.as_deref(),
        &args.window.window(),
        Beginning::PageFlags,
    )?;
    let recording = &streamed.recording;
    if recording.meta.kernel_release.is_empty() {
        let e = Error::malformed("it does not say which kernel was recorded")
            .in_file(file)
            .help("give --release with what `uname -r` says there, such as --release 6.1.0");
        return Err(e.into());
    }
    if recording.snapshots.is_empty() {
        let e = Error::malformed("there are no procfs snapshots beside the trace")
            .in_file(file)
            .help("give --snapshots with a directory or archive of dated procfs copies");
        return Err(e.into());
    }
    Ok(streamed)
}

fn options(args: &Args) -> replay::Options {
    replay::Options {
        kernels: args.kernel.clone(),
        set: args.set.clone(),
        recorded: args.recorded.clone(),
        memory: args.memory,
        mode: match args.mode {
            Mode::Predict => replay::Mode::Predict,
            Mode::Observe => replay::Mode::Observe,
        },
        start: match args.start {
            Start::Auto => replay::StartChoice::Auto,
            Start::Exact => replay::StartChoice::Exact,
            Start::Occupancy => replay::StartChoice::Occupancy,
            Start::Counts => replay::StartChoice::Counts,
            Start::Boot => replay::StartChoice::Boot,
        },
        reclaim: match args.reclaim {
            Reclaim::Modelled => replay::ReclaimChoice::Modelled,
            Reclaim::Given => replay::ReclaimChoice::Given,
        },
        compaction: args.compaction.map(|choice| match choice {
            Compaction::Modelled => replay::CompactionChoice::Modelled,
            Compaction::Given => replay::CompactionChoice::Given,
            Compaction::None => replay::CompactionChoice::None,
        }),
        members: args.members,
        any_share: args.any_share,
    }
}

fn write(args: &Args, report: &Report, covered: Option<&Covered>, console: Console) -> Result<()> {
    let detail = match args.all {
        true => Detail::All,
        false => Detail::Short,
    };
    if let Some(path) = &args.html {
        write_file(path, html::render(report, detail).as_bytes())?;
    }
    if let Some(path) = &args.svg {
        write_file(path, svg::render(report).as_bytes())?;
    }
    if args.json {
        console.print_json(&Within::of(covered, &Told::of(report)))?;
    } else {
        let text = match report.observe {
            Some(_) => observed::render(report, console.screen().width.min(110)),
            None => terminal::render(report, &console.screen(), detail),
        };
        console.print(below_line(covered, BEGINS, &text))?;
    }
    for path in [&args.html, &args.svg].into_iter().flatten() {
        say_line(format!("wrote {}", name_of(path)));
    }
    Ok(())
}

/// What was measured on this host, which is why it stands apart from the report.
fn tell_time(report: &Report, loaded: Duration, done: Duration) {
    let events = report.recording.events as f64 * report.kernels.len().max(1) as f64;
    say_line(format!(
        "timing: loaded in {:.3} s, replayed in {:.3} s: {:.2} million events a second, loading included",
        loaded.as_secs_f64(),
        (done - loaded).as_secs_f64(),
        events / done.as_secs_f64() / 1e6,
    ));
    if let Some(bytes) = most_memory() {
        say_line(format!("timing: {} MiB of memory at most", bytes >> 20));
    }
}
