//! `unfrag import`: a trace and the procfs snapshots beside it become one file.
//!
//! Invariant: of the events no more than a few batches are held, unless they have to be read as a whole.

use crate::failure::{Failure, Result};
use crate::output::{Console, Progress, check_not_input, name_of, not_written, write_recording};
use crate::quantity::{bytes, counted, thousands};
use std::fmt::Write as _;
use std::fs;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;
use unfrag_lab::era::settings::Setting;
use unfrag_lab::find::recordings;
use unfrag_lab::report::screen::printable;
use unfrag_linux::error::Cause;
use unfrag_linux::file::Writer;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::output::{Holds, Output};
use unfrag_linux::recording::{Events, Recording};
use unfrag_linux::target::Target;
use unfrag_linux::text::{NotUnderstood, joined};
use unfrag_linux::{Meter, open, stream};

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
    /// A sysctl that the recorded host had, where its snapshots do not show it: from the beginning, or from SECONDS
    /// after the first event on; may be given several times
    #[arg(long, value_name = "vm.NAME=VALUE[@SECONDS]", value_parser = Setting::parse)]
    set: Vec<Setting>,
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
    if recordings::is_unfrag(&args.trace)? {
        return Err(Failure::usage(
            format!("{} is an .unfrag file already", escaped_path(&args.trace)),
            "import takes the trace as a tracer wrote it",
        ));
    }
    let progress = Progress::new("reading");
    let start = Instant::now();
    let mut beside = recordings::Beside::read(&args.snapshots, args.release.as_deref())?;
    let imported = match in_batches(args, &mut beside, &progress) {
        Err(Failure::Input(e)) if let Cause::NotInBatches(why) = e.cause => {
            progress.message(format!("reading again with all events in memory: {why}"));
            in_memory(args, &mut beside)?
        }
        imported => imported?,
    };
    let total = start.elapsed();
    drop(progress);

    let events = imported.counts.events;
    let mut out = format!(
        "{}: {}, {:.2} bytes an event\n",
        name_of(&args.output),
        bytes(imported.file_bytes),
        imported.file_bytes as f64 / events.max(1) as f64
    );
    summarize(&imported.rest, &imported.counts, &mut out);
    if args.timing {
        let rate = events as f64 / total.as_secs_f64() / 1e6;
        let _ = writeln!(
            out,
            "read and written in {:.3} s: {rate:.2} million events a second",
            total.as_secs_f64(),
        );
    }
    console.print(out)
}

/// What was imported.
struct Imported {
    /// The recording without its events.
    rest: Recording,
    counts: Counts,
    file_bytes: u64,
}

/// Numbers of events.
#[derive(Default)]
struct Counts {
    events: u64,
    by_kind: Vec<u64>,
    /// Times of the first and the last.
    span: Option<(u64, u64)>,
}

impl Counts {
    fn add(&mut self, events: &Events) {
        self.events += events.len() as u64;
        self.by_kind.resize(events.tables.len(), 0);
        for &kind in &events.kind {
            self.by_kind[usize::from(kind)] += 1;
        }
        if let (Some(&first), Some(&last)) = (events.time.first(), events.time.last()) {
            self.span = Some((self.span.map_or(first, |s| s.0), last));
        }
    }
}

/// Batches that wait to be written, at most.
const WAITING: usize = 1;

/// Reads the trace and writes the file at the same time, a batch after the other.
fn in_batches(
    args: &Args,
    beside: &mut recordings::Beside,
    progress: &Progress,
) -> Result<Imported> {
    let to = Target::of(&args.output).and_then(|to| Output::create(&to, Holds::Recording));
    let mut writer = Writer::new(to.map_err(|e| Failure::output(&args.output, e))?);
    let meter = Meter::default();
    let size = fs::metadata(&args.trace).map_or(0, |m| m.len());
    let (sender, receiver) = sync_channel::<Events>(WAITING);
    let (read, counts) = thread::scope(|s| {
        let writing = s.spawn(|| {
            let mut counts = Counts::default();
            for events in receiver {
                writer.events(&events)?;
                counts.add(&events);
            }
            Ok(counts)
        });
        let read = stream(&args.trace, &beside.options(), &meter, &mut |events| {
            if size > 0 {
                let done = meter.bytes().min(size);
                progress.message(format!("{} of {} read", bytes(done), bytes(size)));
            }
            // If nobody takes it, the other thread knows why.
            let _ = sender.send(events);
            Ok(())
        });
        drop(sender);
        (read, writing.join().unwrap_or_else(|e| resume_unwind(e)))
    });
    let counts = counts.map_err(|e| not_written(&args.output, e))?;
    let mut rest = beside.complete(read?);
    note_settings(args, &mut rest);
    progress.message(format!("writing {}", counted(counts.events, "event")));
    let written = writer.finish(&rest).and_then(|to| Ok(to.commit()?));
    Ok(Imported {
        file_bytes: written.map_err(|e| not_written(&args.output, e))?,
        rest,
        counts,
    })
}

/// Reads all events into memory first.
fn in_memory(args: &Args, beside: &mut recordings::Beside) -> Result<Imported> {
    let read = open(&args.trace, &beside.options())?;
    let mut rest = beside.complete(read);
    note_settings(args, &mut rest);
    let mut counts = Counts::default();
    counts.add(&rest.events);
    let file_bytes = write_recording(&args.output, &rest)?;
    for table in &mut rest.events.tables {
        table.columns.clear();
    }
    Ok(Imported {
        rest,
        counts,
        file_bytes,
    })
}

/// Notes in the recording the settings that were given.
fn note_settings(args: &Args, recording: &mut Recording) {
    let facts = args.set.iter().map(Setting::fact);
    recording.meta.facts.extend(facts);
}

/// What a recording holds, in lines.
fn summarize(recording: &Recording, counts: &Counts, out: &mut String) {
    let meta = &recording.meta;
    let kernel = match meta.kernel_release.as_str() {
        "" => "unknown (a replay needs it: give --release)",
        release => &printable(release),
    };
    let _ = writeln!(out, "kernel     {kernel}");
    let _ = writeln!(
        out,
        "source     {}, {}",
        printable(&meta.source),
        counted(meta.cpus.into(), "CPU")
    );
    let span = counts
        .span
        .map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
    let _ = writeln!(
        out,
        "events     {} in {span:.1} s",
        thousands(counts.events)
    );
    let tables = recording.events.tables.iter();
    let mut kinds: Vec<_> = tables
        .zip(counts.by_kind.iter().copied())
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
