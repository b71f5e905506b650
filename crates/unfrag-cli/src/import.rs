//! `unfrag import`: a trace and the procfs snapshots beside it become one file.

use crate::failure::{Failure, Result};
use crate::input;
use crate::output::{Console, Progress, check_not_input, name_of, write_recording};
use crate::quantity::{bytes, counted, thousands};
use crate::terminal::printable;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;
use unfrag_linux::recording::Recording;
use unfrag_linux::text::{NotUnderstood, joined};

/// Put a trace and the procfs snapshots beside it into one .unfrag file
///
/// The trace is a trace.dat of trace-cmd (version 6 or 7), a perf.data, or the text of `trace-cmd
/// report`, `perf script` or the kernel's trace_pipe; compressed with zstd or gzip, or as it is.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  unfrag import trace.dat --snapshots snapshots -o recording.unfrag"
)]
pub struct Args {
    /// The trace
    trace: PathBuf,
    /// Directory or tar archive of dated procfs copies; may be given several times
    #[arg(long, value_name = "DIR-or-tar", num_args = 1..)]
    snapshots: Vec<PathBuf>,
    /// Kernel that was recorded (`uname -r`), where neither trace nor snapshots say
    #[arg(long, value_name = "UNAME-R")]
    release: Option<String>,
    /// File to write; - for the standard output
    #[arg(short, long, value_name = "NAME.unfrag")]
    output: PathBuf,
    /// Print how long it took
    #[arg(long)]
    timing: bool,
}

/// Carries it out.
///
/// # Errors
/// If an input cannot be read, or the file cannot be written.
pub fn run(args: &Args) -> Result<()> {
    let mut inputs = args.snapshots.iter().chain([&args.trace]);
    inputs.try_for_each(|from| check_not_input(&args.output, from))?;
    let console = Console::beside([("--output", Some(args.output.as_path()))], false)?;
    if input::is_unfrag(&args.trace)? {
        return Err(Failure::usage(
            format!("{} is an .unfrag file already", args.trace.display()),
            "import takes the trace as a tracer wrote it",
        ));
    }
    let progress = Progress::new("reading");
    let start = Instant::now();
    let recording = input::raw(&args.trace, &args.snapshots, args.release.as_deref())?;
    let read = start.elapsed();
    progress.message(format!(
        "writing {}",
        counted(recording.events.len() as u64, "event")
    ));
    let file_bytes = write_recording(&args.output, &recording)?;
    let total = start.elapsed();
    drop(progress);

    let mut out = format!(
        "{}: {}, {:.2} bytes an event\n",
        name_of(&args.output),
        bytes(file_bytes),
        file_bytes as f64 / recording.events.len().max(1) as f64
    );
    summarize(&recording, &mut out);
    if args.timing {
        let rate = recording.events.len() as f64 / total.as_secs_f64() / 1e6;
        let _ = writeln!(
            out,
            "read in {:.3} s, read and written in {:.3} s: {rate:.2} million events a second",
            read.as_secs_f64(),
            total.as_secs_f64(),
        );
    }
    console.print(&out)
}

/// What a recording holds, in lines.
fn summarize(recording: &Recording, out: &mut String) {
    let meta = &recording.meta;
    let events = &recording.events;
    let kernel = match meta.kernel_release.as_str() {
        "" => "unknown (a replay needs it: give --release)",
        release => &printable(release),
    };
    let _ = writeln!(out, "kernel     {kernel}");
    let _ = writeln!(
        out,
        "source     {}, {}",
        meta.source,
        counted(meta.cpus.into(), "CPU")
    );
    let span = match (events.time.first(), events.time.last()) {
        (Some(first), Some(last)) => (last - first) as f64 / 1e9,
        _ => 0.0,
    };
    let _ = writeln!(
        out,
        "events     {} in {span:.1} s",
        thousands(events.len() as u64)
    );
    let mut rows = vec![0u64; events.tables.len()];
    for &kind in &events.kind {
        rows[usize::from(kind)] += 1;
    }
    let mut kinds: Vec<_> = events
        .tables
        .iter()
        .zip(rows)
        .filter(|(_, n)| *n > 0)
        .collect();
    kinds.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.name.cmp(&b.name)));
    for (table, n) in kinds {
        let colon = if table.system.is_empty() { "" } else { ":" };
        let _ = writeln!(
            out,
            "{:>12}  {}{colon}{}",
            thousands(n),
            printable(&table.system),
            printable(&table.name)
        );
    }
    lines(recording, out);
    let _ = writeln!(out, "lost       {}", lost(recording));
    let _ = match (recording.snapshots.first(), recording.snapshots.last()) {
        (Some(first), Some(last)) => {
            let n = counted(recording.snapshots.len() as u64, "snapshot");
            writeln!(
                out,
                "snapshots  {n}, {} to {}",
                printable(&first.name),
                printable(&last.name)
            )
        }
        _ => writeln!(
            out,
            "snapshots  none (a replay needs some: give --snapshots)"
        ),
    };
}

/// What is to be known of the lines of a text.
fn lines(recording: &Recording, out: &mut String) {
    match joined(&recording.meta) {
        0 => {}
        n => {
            let joined = counted(n, "line");
            let _ = writeln!(out, "lines      {joined} put together with the one before");
        }
    }
    if let Some(found) = NotUnderstood::of(&recording.meta) {
        let _ = writeln!(out, "lines      {}, the first:", found.sentence());
        for line in &found.first {
            let _ = writeln!(out, "           {}", printable(line));
        }
    }
}

fn lost(recording: &Recording) -> String {
    let gaps = &recording.meta.lost;
    if gaps.is_empty() && NotUnderstood::of(&recording.meta).is_some() {
        return "whatever stood in the lines that were not understood".into();
    }
    if gaps.is_empty() {
        return "no event".into();
    }
    let known: u64 = gaps
        .iter()
        .filter_map(|l| l.count)
        .fold(0, u64::saturating_add);
    let unknown = gaps.iter().filter(|l| l.count.is_none()).count();
    let mut text = format!(
        "{} in {}",
        counted(known, "event"),
        counted(gaps.len() as u64, "gap")
    );
    if unknown > 0 {
        let _ = write!(text, ", and an unknown number in {unknown} of them");
    }
    text
}
