//! What a recording in segments says: what it found at its beginning, and at its end what it holds and what it cost.

use super::said::{NotTaken, names_of_the_host, not_taken, of_names};
use crate::failure::{Failure, Result};
use crate::output;
use crate::own_memory::{most_memory, number};
use crate::quantity::{bytes, counted, thousands};
use crate::standard::say;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use unfrag_lab::report::screen::printable;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::record::{DoneInSegments, Found, Keep, Options, Rate};

/// What the recorder itself took, as far as procfs says it.
#[derive(Debug, Default, Serialize)]
struct Cost {
    /// Seconds of CPU time, user and system.
    cpu_seconds: Option<f64>,
    /// Largest resident size.
    memory_bytes: Option<u64>,
    /// Bytes written to disks.
    written_bytes: Option<u64>,
}

impl Cost {
    fn own() -> Cost {
        let ticks = || {
            let stat = fs::read_to_string("/proc/self/stat").ok()?;
            // Behind the name, which may hold anything: user and system time are the 12th and the 13th.
            let (_, rest) = stat.rsplit_once(')')?;
            let mut words = rest.split_whitespace().skip(11);
            let mut ticks = || words.next()?.parse::<u64>().ok();
            Some(ticks()? + ticks()?)
        };
        Cost {
            cpu_seconds: ticks().map(|t| t as f64 / rustix::param::clock_ticks_per_second() as f64),
            memory_bytes: most_memory(),
            written_bytes: number("/proc/self/io", "write_bytes:"),
        }
    }
}

/// A spool of which no segment was made.
#[derive(Serialize)]
struct Kept {
    spool: String,
    /// Where it lies now.
    kept_as: String,
    why: String,
}

/// The spools of which no segment was made.
fn kept(found: &[Found]) -> Vec<Kept> {
    let one = |f: &Found| {
        let (spool, kept_as, why) = match f {
            Found::Segment(_) => return None,
            Found::SetAside { from, to, why } => (from, to.as_ref().unwrap_or(from), why),
            Found::Waits { spool, why } => (spool, spool, why),
        };
        Some(Kept {
            spool: spool.display().to_string(),
            kept_as: kept_as.display().to_string(),
            why: why.cause.to_string(),
        })
    };
    found.iter().filter_map(one).collect()
}

/// Names of the segments made of what dead recorders had left.
fn recovered(found: &[Found]) -> Vec<String> {
    let name = |f: &Found| match f {
        Found::Segment(path) => Some(path.file_name()?.to_string_lossy().into_owned()),
        _ => None,
    };
    found.iter().filter_map(name).collect()
}

/// What became of a spool, as a line.
pub fn sentence(found: &Found) -> String {
    let shown = |path: &Path| printable(&path.to_string_lossy());
    let text = match found {
        Found::Segment(path) => format!(
            "{}: made of what a recorder that died had left",
            shown(path)
        ),
        Found::SetAside { from, to, why } => {
            let place = match to {
                Some(to) => format!("kept as {}", shown(to)),
                None => "it stays, as it cannot be renamed".to_owned(),
            };
            format!(
                "warning: {}: no segment can be made of it: {}; {place}",
                shown(from),
                printable(&why.cause.to_string())
            )
        }
        Found::Waits { spool, why } => format!(
            "warning: {}: no segment is made of it yet: {}; it stays for the next start",
            shown(spool),
            printable(&why.cause.to_string())
        ),
    };
    text + "\n"
}

#[derive(Serialize)]
struct Json<'a> {
    directory: String,
    segments: u64,
    segments_removed: u64,
    /// What is there at the end, of earlier recorders too.
    segments_kept: u64,
    kept_bytes: u64,
    /// At the measured rate; `null` if no segment was made.
    bytes_per_minute: Option<u64>,
    keep_lasts_seconds: Option<u64>,
    recovered: Vec<String>,
    kept_spools: Vec<Kept>,
    events: u64,
    lost_events: u64,
    file_bytes: u64,
    most_bytes: u64,
    /// Of each CPU's ring buffer.
    buffer_bytes: usize,
    cost: Cost,
    failed: &'a [String],
    not_taken: Vec<NotTaken>,
    /// What in it names somebody.
    names: Vec<&'static str>,
}

/// Says, soon after the beginning, how long what is kept lasts.
pub fn say_rate(keep: &Keep, rate: Rate) {
    say(of_rate(keep.bytes, rate));
}

/// How much is written, and how long what is kept lasts at that.
fn of_rate(keep: u64, rate: Rate) -> String {
    let about = if rate.is_estimate { "about " } else { "" };
    let lasts = rate.lasts(keep).map(|d| long_time(d.as_secs()));
    format!(
        "{about}{} a minute: --keep holds {} of it\n",
        bytes(rate.per_minute()),
        lasts.as_deref().unwrap_or("any time")
    )
}

/// A time of minutes, hours or days, in two units.
fn long_time(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if days >= 100 => counted(days, "day"),
        () if days > 0 => format!("{} {} h", counted(days, "day"), hours % 24),
        () if hours > 0 => format!("{hours} h {} min", minutes % 60),
        () if minutes > 0 => format!("{minutes} min {} s", seconds % 60),
        () => format!("{seconds} s"),
    }
}

/// Says it; the status to exit with.
///
/// # Errors
/// If a segment could not be made.
pub fn report(
    done: DoneInSegments,
    found: &[Found],
    options: &Options,
    keep: u64,
    json: bool,
) -> Result<ExitCode> {
    let dir = &options.output;
    let names = names_of_the_host(options);
    let t = &done.totals;
    let cost = Cost::own();
    if json {
        let json = Json {
            directory: dir.display().to_string(),
            segments: t.segments,
            segments_removed: t.removed,
            segments_kept: t.kept,
            kept_bytes: t.kept_bytes,
            bytes_per_minute: t.rate().map(|r| r.per_minute()),
            keep_lasts_seconds: t.rate().and_then(|r| r.lasts(keep)).map(|d| d.as_secs()),
            recovered: recovered(found),
            kept_spools: kept(found),
            events: t.events,
            lost_events: t.lost,
            file_bytes: t.bytes,
            most_bytes: t.most_bytes,
            buffer_bytes: done.buffer,
            cost,
            failed: &t.failed,
            not_taken: not_taken(&done.untaken),
            names,
        };
        say(output::json(&json)?);
    } else {
        say(said(&done, dir, keep, &cost) + &of_names(&names));
    }
    if let Some(failed) = t.failed.first() {
        return Err(Failure::usage(
            format!("a segment could not be made: {failed}"),
            "make room, and start the recorder there again: it makes segments of what was left",
        ));
    }
    Ok(match done.cut_short {
        Some(e) => Failure::from(e).report(),
        None => ExitCode::SUCCESS,
    })
}

fn said(done: &DoneInSegments, dir: &Path, keep: u64, cost: &Cost) -> String {
    let t = &done.totals;
    let mut out = String::new();
    for name in &done.stale {
        let _ = writeln!(
            out,
            "removed {}, left by a recorder that died",
            printable(name)
        );
    }
    let removed = match t.removed {
        0 => String::new(),
        n => format!(
            "; {} made, {} removed for lack of room",
            counted(t.segments, "segment"),
            thousands(n)
        ),
    };
    let _ = writeln!(
        out,
        "{}: {} kept, {}{removed}",
        escaped_path(dir),
        counted(t.kept, "segment"),
        bytes(t.kept_bytes)
    );
    if let Some(rate) = t.rate() {
        out += &of_rate(keep, rate);
    }
    let mut row = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<10}{text:>16}");
    };
    row("events", thousands(t.events));
    row("  lost", thousands(t.lost));
    if let Some(s) = cost.cpu_seconds {
        row("CPU time", format!("{s:.1} s"));
    }
    if let Some(n) = cost.memory_bytes {
        row("memory", bytes(n));
    }
    row("buffers", format!("{} a CPU", bytes(done.buffer as u64)));
    row("disk", format!("{} at most", bytes(t.most_bytes)));
    if let Some(n) = cost.written_bytes {
        row("written", bytes(n));
    }
    for u in not_taken(&done.untaken) {
        let _ = writeln!(
            out,
            "not taken: {}: {}",
            printable(&u.file),
            printable(&u.why)
        );
    }
    out
}
