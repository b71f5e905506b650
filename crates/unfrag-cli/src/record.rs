//! `unfrag record` and `unfrag snapshot`: this host, into a file.
//!
//! Invariant: the recorded command has the standard output to itself; what the recorder has to say goes to the standard
//! error. If the recording itself goes to the standard output, the command's goes to the standard error. The exit status is the command's; 1 if the recording failed and the command did not.

mod long;
mod said;

use crate::failure::{Failure, Result};
use crate::output::{Console, check_directory, json, name_of, write_recording};
use crate::quantity::{bytes, seconds, size, thousands};
use crate::standard::say;
use said::{NotTaken, names, not_taken};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use unfrag_lab::replay::answer::LEAST_SHARE;
use unfrag_lab::report::number::percent;
use unfrag_lab::report::screen::printable;
use unfrag_linux::Error;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::record::{self, Done, Found, Keep, Options, Scope, Watched};
use unfrag_linux::recording::Recording;
use unfrag_linux::share::Share;

/// Record a command, or this whole host, into a file that `replay` takes
///
/// Traces the page allocator in a tracer of its own, with copies of procfs once a second and the flags of
/// every page frame at both ends. Needs root. With a command, only it and what it starts are traced, unless
/// --system is given; its exit status is that of `unfrag record`, and ^C goes to it. The names of programs are kept, their arguments are not.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  unfrag record -o du.unfrag -- du -s /usr\n  unfrag record --system -o du.unfrag -- du -s /usr\n  unfrag record --system --for 60s\n  unfrag record --system --keep 20G --for 7d -o recording\n  unfrag record --system --for-later --for 10m\n  unfrag record --system --stacks --for 5m"
)]
pub struct Args {
    /// File to write; - for the standard output, and what the command prints then goes to the standard error
    /// [default: recording.unfrag]. With --keep a directory [default: recording]
    #[arg(short, long, value_name = "NAME.unfrag|DIR")]
    output: Option<PathBuf>,
    /// Record the whole host: while the command runs; without one until ^C, or for the time of --for
    #[arg(long, required_unless_present_any = ["command", "recover"])]
    system: bool,
    /// Record for days, into a directory of segments: keep so many bytes of them, such as 20G; the oldest go first
    #[arg(long, value_name = "SIZE", requires = "system", conflicts_with = "command", value_parser = size)]
    keep: Option<u64>,
    /// Begin a new segment after this time, or sooner where much is recorded
    #[arg(long, value_name = "TIME", requires = "keep", default_value = "15m", value_parser = segment)]
    segment: Duration,
    /// How long, such as 60s, 5m, 1h, or with --keep 7d
    #[arg(long = "for", value_name = "TIME", requires = "system", conflicts_with = "command", value_parser = duration)]
    time: Option<Duration>,
    /// Record what any later question needs, but kernel stacks: --slab and --processes
    #[arg(long, conflicts_with = "anonymous")]
    for_later: bool,
    /// Record what slab caches allocate and free, too: up to several times as many events
    #[arg(long)]
    slab: bool,
    /// Record which process did what, too: starts, the paths of programs, ends, time on a CPU; few more events
    #[arg(long, conflicts_with = "anonymous")]
    processes: bool,
    /// Record kernel stacks, too, for `unfrag blame --wakes`: of requests of order 3 and more, of wake-ups of kswapd and kcompactd, and of
    /// compaction; and when these daemons are on a CPU. Linux 5.17 and later
    #[arg(long, conflicts_with = "anonymous")]
    stacks: bool,
    /// Record this event, too; may be given several times
    #[arg(long, value_name = "SUBSYSTEM:NAME", value_parser = event)]
    event: Vec<String>,
    /// Keep neither names nor numbers of processes
    #[arg(long)]
    anonymous: bool,
    /// Keep the words of the command, too
    #[arg(long, conflicts_with = "anonymous", requires = "command")]
    command_line: bool,
    /// Ring buffer of each CPU; if events were lost, make it larger
    #[arg(long, value_name = "SIZE", value_parser = buffer)]
    buffer: Option<u64>,
    /// Print what was recorded as JSON (to the standard error, after the command)
    #[arg(long)]
    json: bool,
    /// Make the file from what a recorder that was killed together with its guardian left behind
    #[arg(long, value_name = "DIR", conflicts_with_all = ["system", "command"])]
    recover: Option<PathBuf>,
    /// The command, after --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Stands by while another process records (started by `record` itself)
#[derive(Debug, clap::Args)]
pub struct GuardianArgs {
    /// Whether it is a recording in segments
    #[arg(long)]
    in_segments: bool,
    spool: PathBuf,
    output: PathBuf,
    instance: PathBuf,
}

/// Copy what this host shows of its memory into a small file that `inspect` takes
///
/// Procfs and the flags of every page frame, of one moment. Works without root, with less in it: what
/// could not be read is said.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  unfrag snapshot -o now.unfrag && unfrag inspect now.unfrag")]
pub struct SnapshotArgs {
    /// File to write; - for the standard output
    #[arg(
        short,
        long,
        value_name = "NAME.unfrag",
        default_value = "snapshot.unfrag"
    )]
    output: PathBuf,
    /// Where procfs is, such as /host/proc in a container
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    proc: PathBuf,
    /// Print what is in it as JSON
    #[arg(long)]
    json: bool,
}

/// The word that makes this program a guardian.
pub const GUARDIAN: &str = "record-guardian";

/// Carries it out; the status to exit with.
///
/// # Errors
/// If a right is missing, the command cannot be started, or the file cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(dir) = &args.recover {
        let _ = unfrag_linux::signals::end_without_leftovers();
        let recording = record::recover(dir, args.output.as_deref())?;
        say(described("recovered", &Summary::of(&recording)?));
        return Ok(ExitCode::SUCCESS);
    }
    let usual = if args.keep.is_some() {
        "recording"
    } else {
        "recording.unfrag"
    };
    let output = args.output.clone().unwrap_or_else(|| usual.into());
    if args.keep.is_none() && args.time.is_some_and(|t| t > Duration::from_secs(86_400)) {
        return Err(Failure::usage(
            "a recording in one file takes a day at most",
            "add --keep 20G to record into segments",
        ));
    }
    let scope = match args.system {
        true if !args.command.is_empty() => Scope::SystemWhile(args.command.clone()),
        true => Scope::System(args.time),
        false => Scope::Command(args.command.clone()),
    };
    let options = Options {
        scope,
        output: output.clone(),
        slab: args.slab || args.for_later,
        events: args.event.clone(),
        stacks: args.stacks,
        processes: args.processes || args.for_later,
        anonymous: args.anonymous,
        command_line: args.command_line,
        buffer: args.buffer.map(|b| b as usize),
    };
    let me = std::env::current_exe().map_err(|e| Failure::Input(Box::new(Error::from(e))))?;
    let mut guardian = std::process::Command::new(me);
    guardian.arg(GUARDIAN);
    if let Some(bytes) = args.keep {
        check_directory("--output", &output)?;
        let keep = Keep {
            bytes,
            segment: args.segment,
            tell: match args.json {
                true => |_, _| {},
                false => long::say_rate,
            },
        };
        let mut found = vec![];
        let tell = &mut |f: Found| {
            // With --json all that is said is one value, at the end.
            if !args.json {
                say(long::sentence(&f));
            }
            found.push(f);
        };
        let done = record::record_in_segments(&options, keep, guardian, tell)?;
        return long::report(done, &found, &options, bytes, args.json);
    }
    let done = record::record(&options, guardian)?;
    let mut summary = Summary::of(&done.recording)?;
    summary.file_bytes = done.file_bytes;
    summary.not_taken = not_taken(&done.untaken);
    if args.json {
        say(json(&summary)?);
    } else {
        say(said(&done, &summary, &output));
    }
    let status = done.status.map_or(0, record::command::status_of);
    if let Some(e) = done.cut_short {
        let failure = Failure::from(e).report();
        return Ok(if status == 0 {
            failure
        } else {
            ExitCode::from(status)
        });
    }
    Ok(ExitCode::from(status))
}

/// Stands by.
///
/// # Errors
/// If the recorder died and its recording cannot be finished.
pub fn guard(args: &GuardianArgs) -> Result<()> {
    let watched = Watched {
        spool: args.spool.clone(),
        output: args.output.clone(),
        instance: args.instance.clone(),
        in_segments: args.in_segments,
    };
    let tell = &mut |found: Found| say(long::sentence(&found));
    if let Some(recording) = record::watch(&watched, tell)? {
        let summary = Summary::of(&recording)?;
        say(described(
            "the recorder died; its recording was finished",
            &summary,
        ));
    }
    Ok(())
}

/// Carries it out.
///
/// # Errors
/// If the file cannot be written.
pub fn snapshot(args: &SnapshotArgs) -> Result<()> {
    let console = Console::beside([("--output", Some(args.output.as_path()))], false)?;
    let (recording, untaken) = record::snapshot(&args.proc);
    if recording.snapshots[0].files.is_empty() {
        return Err(Failure::usage(
            format!(
                "nothing of procfs can be read in {}",
                escaped_path(&args.proc)
            ),
            "give the directory where procfs is mounted",
        ));
    }
    let file_bytes = write_recording(&args.output, &recording)?;
    let taken = &recording.snapshots[0].files;
    if args.json {
        return console.print_json(&serde_json::json!({
            "file": name_of(&args.output),
            "file_bytes": file_bytes,
            "kernel": recording.meta.kernel_release,
            "taken": taken.iter().map(|f| &f.name).collect::<Vec<_>>(),
            "not_taken": not_taken(&untaken),
        }));
    }
    let mut out = format!(
        "{}: {}, kernel {}\n",
        name_of(&args.output),
        bytes(file_bytes),
        recording.meta.kernel_release
    );
    for f in taken {
        let _ = writeln!(out, "{:>16}  {}", f.name, bytes(f.content.len()));
    }
    for u in not_taken(&untaken) {
        let _ = writeln!(out, "{:>16}  not taken: {}", u.file, u.why);
    }
    console.print(out)
}

/// What was recorded.
#[derive(Debug, Default, Serialize)]
struct Summary {
    kernel: String,
    events: u64,
    seconds: f64,
    /// Pages allocations, and pages in them.
    allocations: u64,
    allocated_pages: u64,
    frees: u64,
    freed_pages: u64,
    /// Pages allocated in the recording and in use at its end.
    held_pages: u64,
    /// Pages allocated in the recording and freed with no event seen.
    freed_unseen_pages: u64,
    lost_events: u64,
    /// Share of the pages that the host allocated meanwhile of which the events are in the recording.
    share_of_allocations: Option<f64>,
    /// Whether only a command and what it started was traced.
    of_command: bool,
    /// What in it names somebody.
    names: Vec<&'static str>,
    /// What functions in kernel stacks are told by: `names` or `addresses`; `null` without stacks.
    stacks: Option<String>,
    /// Why the trace ended before the command did, or the time was over.
    ended_early: Option<String>,
    snapshots: usize,
    file_bytes: u64,
    not_taken: Vec<NotTaken>,
}

impl Summary {
    fn of(recording: &Recording) -> Result<Summary> {
        let events = &recording.events;
        let fact = |name: &str| recording.meta.facts.get(name);
        let balance =
            record::balance::balance(recording).map_err(unfrag_lab::error::Error::from)?;
        let span = match (events.time.first(), events.time.last()) {
            (Some(a), Some(b)) => b - a,
            _ => 0,
        };
        Ok(Summary {
            kernel: recording.meta.kernel_release.clone(),
            events: events.len() as u64,
            seconds: span as f64 / 1e9,
            allocations: balance.allocations,
            allocated_pages: balance.allocated,
            frees: balance.frees,
            freed_pages: balance.freed + balance.from_before,
            held_pages: balance.held,
            freed_unseen_pages: balance.unseen,
            ended_early: fact("ended_early").cloned(),
            lost_events: recording.meta.lost_events(),
            share_of_allocations: Share::noted(&recording.meta).map(Share::fraction),
            of_command: fact("scope").is_some_and(|s| s == "command"),
            names: names(recording),
            stacks: fact("stacks").cloned(),
            snapshots: recording.snapshots.len(),
            ..Summary::default()
        })
    }
}

fn said(done: &Done, summary: &Summary, output: &Path) -> String {
    let mut out = String::new();
    for name in &done.stale {
        let _ = writeln!(
            out,
            "removed {}, left by a recorder that died",
            printable(name)
        );
    }
    let each = summary.file_bytes as f64 / summary.allocations.max(1) as f64;
    let head = format!(
        "{}: {}, {each:.1} bytes an allocation",
        name_of(output),
        bytes(summary.file_bytes)
    );
    out += &described(&head, summary);
    for u in &summary.not_taken {
        let _ = writeln!(
            out,
            "not taken: {}: {}",
            printable(&u.file),
            printable(&u.why)
        );
    }
    out
}

fn described(head: &str, s: &Summary) -> String {
    let row = |name: &str, n: String, rest: String| {
        format!("{name:<14}{n:>12}  {rest}").trim_end().to_owned() + "\n"
    };
    let pages = |n| format!("{:>12} pages", thousands(n));
    let lost = match s.lost_events {
        0 => String::new(),
        _ if s.ended_early.is_some() => "as the recording ended early".into(),
        _ => "make --buffer larger".into(),
    };
    let unseen = 100.0 * s.freed_unseen_pages as f64 / s.allocated_pages.max(1) as f64;
    [
        format!("{head}\n"),
        row(
            "events",
            thousands(s.events),
            format!("in {:.1} s", s.seconds),
        ),
        row("  lost", thousands(s.lost_events), lost),
        row(
            "allocations",
            thousands(s.allocations),
            pages(s.allocated_pages),
        ),
        row("frees", thousands(s.frees), pages(s.freed_pages)),
        row(
            "  unseen",
            String::new(),
            format!(
                "{} ({unseen:.2} %), freed where nothing is traced",
                pages(s.freed_unseen_pages)
            ),
        ),
        row("held at end", String::new(), pages(s.held_pages)),
        row("snapshots", thousands(s.snapshots as u64), String::new()),
        share(s),
        stacks(s),
        said::of_names(&s.names),
    ]
    .concat()
}

/// That functions have no names, where the host hid them.
fn stacks(s: &Summary) -> String {
    match s.stacks.as_deref() {
        Some("addresses") => "functions in kernel stacks are addresses: this host shows no names (kernel.kptr_restrict), and later nothing tells them\n".into(),
        _ => String::new(),
    }
}

/// How much of what the host allocated was recorded, and what to do if that is too little for a replay.
fn share(s: &Summary) -> String {
    let Some(share) = s.share_of_allocations else {
        return "how much of what the host allocated was recorded is not known: no two snapshots within the trace have vmstat\n".into();
    };
    let said = format!(
        "{} of the pages that the host allocated meanwhile were recorded",
        percent(share)
    );
    let help = match () {
        () if share >= LEAST_SHARE => "",
        () if s.of_command => {
            ", too few for a replay: record the whole host while the command runs: unfrag record --system -- COMMAND"
        }
        () => ", too few for a replay: make --buffer larger",
    };
    format!("{said}{help}\n")
}

fn event(text: &str) -> std::result::Result<String, String> {
    let plain = |s: &str| {
        !s.is_empty()
            && s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    match text.split_once(':') {
        Some((system, name)) if plain(system) && plain(name) => Ok(text.to_owned()),
        _ => Err("an event is named SUBSYSTEM:NAME, such as kmem:mm_page_free_batched".into()),
    }
}

fn buffer(text: &str) -> std::result::Result<u64, String> {
    match size(text)? {
        n if (64 << 10..=1 << 30).contains(&n) => Ok(n),
        _ => Err("a ring buffer has 64K to 1G".into()),
    }
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    match seconds(text)? {
        s @ 1..=8_640_000 => Ok(Duration::from_secs(s)),
        _ => Err("a recording takes from a second to 100 days".into()),
    }
}

fn segment(text: &str) -> std::result::Result<Duration, String> {
    match seconds(text)? {
        s @ 1..=86_400 => Ok(Duration::from_secs(s)),
        _ => Err("a segment takes from a second to a day".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_bounds() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for bad in ["", "s", "0s", "1x", "-1s", "3000h", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
