//! `unfrag doctor`: what is wrong with a host's memory, and what to do about it.

pub mod gate;

use gate::Gate;

use crate::failure::{Failure, Result};
use crate::inputs::shell_word;
use crate::no_kernel::NoKernel;
use crate::output::{
    Console, Screen, Text, check_not_input, is_stdout, name_of, print_json_line, write_file,
};
use crate::quantity::{interval, page_size};
use crate::standard::say_line;
use crate::window::{WindowArgs, Within, below_line, line};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use unfrag_lab::doctor::first_screen::{self, Asked};
use unfrag_lab::doctor::gate::answer::Room;
use unfrag_lab::doctor::gate::{Needs, huge_page_rooms, render, room_by_any_means};
use unfrag_lab::doctor::judged_settings::judged;
use unfrag_lab::doctor::{Attainability, Diagnosis, Examined, examine, map, predict, text};
use unfrag_lab::era::Era;
use unfrag_lab::find::evidence::{Examine, evidence, is_own};
use unfrag_lab::find::recordings;
use unfrag_lab::report::screen::printable;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::recording::Recording;
use unfrag_linux::segments::Covered;
use unfrag_linux::{Error, file};

/// Say what is wrong with memory, of this host or a snapshot, and what to change
///
/// For each node and zone: how fragmented it is and why; huge pages to be had at once, after compaction,
/// after reclaim; what stands in the way; what stalls and failures there were; whether atomic requests
/// are at risk; what memory is not for everybody; and what to do, why, at what cost, and which number it
/// changes. What happened since boot is told as history: only what happens while it watches (--for) is a
/// reason to act, and a lasting setting needs several readings. Reads only; root sees most, any user
/// something, and what could not be seen is named.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag doctor
  unfrag doctor --huge 64
  unfrag doctor --for 2
  unfrag doctor --need 20x4M --need 64x2M@node0 --after drop,compact
  unfrag doctor --need 1x2M --check || echo \"not enough memory: not started\"
  unfrag doctor --map --html map.html
  unfrag doctor samples/gcc-768M.unfrag --json
  unfrag doctor samples/gcc-768M.unfrag --to 30s
  unfrag doctor --release 4.9 - < /proc/buddyinfo")]
pub struct Args {
    /// An .unfrag file, a directory of segments, a directory with a copy of procfs or several, an archive of these, a sosreport, files of
    /// procfs pasted into one text; - for standard input; this host if none is given
    #[arg(value_name = "FILE|DIR|-", default_value = "/proc")]
    path: PathBuf,
    /// Can N huge pages be had, and how? Of 2 MiB, or of the size that this host's files tell
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    huge: Option<u64>,
    #[command(flatten)]
    gate: Gate,
    #[command(flatten)]
    window: WindowArgs,
    /// Release of the kernel (`uname -r`), where no file tells it: the rules differ by it
    #[arg(long, value_name = "UNAME-R")]
    release: Option<String>,
    #[command(flatten)]
    kernel: NoKernel,
    /// Size of a page, where no file tells it: 4K, 8K, 16K or 64K
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<u64>,
    /// A recording, to say what a replay predicts for the advice; FILE itself if it is one
    #[arg(long, value_name = "FILE.unfrag")]
    recording: Option<PathBuf>,
    /// Of several snapshots, this one instead of the last
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,
    /// How long to watch this host, in seconds or as 10m: from 30 s on it is read every ten seconds, which a lasting
    /// setting needs before it is advised; 0 for one reading
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = |text: &str| interval(text, 0.0))]
    seconds: f64,
    /// Draw the memory map instead: every pageblock by what holds it
    #[arg(long, conflicts_with_all = ["json", "huge"])]
    map: bool,
    /// Write the memory map as one HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print every table as well: zones, what stands in the way, slab caches, counters, withheld memory
    #[arg(long, conflicts_with_all = ["json", "map"])]
    all: bool,
}

/// The answer to `--huge`.
#[derive(Serialize)]
struct Answer {
    wanted: u64,
    means: Attainability,
    predicted: Option<u64>,
    answer: String,
    commands: Vec<String>,
}

#[derive(Serialize)]
struct Json<'a> {
    huge: Option<Answer>,
    needs: Option<Needs>,
    diagnosis: &'a Diagnosis,
}

/// Carries it out; the exit status that the answer has for those who ask for one.
///
/// # Errors
/// If there is nothing to examine, or it is not what a kernel writes.
pub fn run(args: &Args) -> Result<ExitCode> {
    args.gate.settled(done(args))
}

fn done(args: &Args) -> Result<ExitCode> {
    args.gate.check(args.huge)?;
    if let Some(to) = &args.html {
        let mut inputs = args.recording.iter().chain([&args.path]);
        inputs.try_for_each(|from| check_not_input(to, from))?;
    }
    let console = Console::beside([("--html", args.html.as_deref())], args.gate.is_json())?;
    if args.gate.line().is_some() && args.html.as_deref().is_some_and(is_stdout) {
        return Err(Failure::usage(
            "--html and the answer in one line both go to the standard output",
            "give --html the name of a file",
        ));
    }
    args.kernel.check()?;
    if let Some(release) = &args.release {
        Era::of(release).map_err(|e| {
            Failure::usage(
                e.to_string(),
                "give what `uname -r` says there, such as 5.14.0",
            )
        })?;
    }
    let what = Examine {
        snapshot: args.snapshot.as_deref(),
        // Who asks for a line alone gets no rates.
        seconds: args.gate.line().map_or(args.seconds, |_| 0.0),
        window: args.window.window(),
    };
    let (mut evidence, within) = evidence(&args.path, &what)?;
    args.gate
        .agrees(evidence.host.geometry, args.page_size, args.huge)?;
    evidence.with_page_size(args.page_size);
    if evidence.host.release.is_none() {
        evidence.host.release.clone_from(&args.release);
    }
    let mut examined = examine(&evidence).map_err(|e| e.inside(&args.path))?;
    let needs = args.gate.judge(&evidence, &examined, args.huge)?;
    if let Some(path) = &args.html {
        write_file(path, map::html(&examined).as_bytes())?;
    }
    let status = args.gate.status(needs.as_ref());
    if let Some((format, n)) = args.gate.line().zip(needs.as_ref()) {
        // The status stays the answer's if nobody reads the line.
        match console.print(format.print(n)) {
            Ok(()) | Err(Failure::ReaderGone) => {}
            Err(failure) => return Err(failure),
        }
    } else {
        let given = args.recording.as_deref().map(input_recording).transpose()?;
        if let Some(recording) = given.or(within) {
            let name = args.recording.as_ref().unwrap_or(&args.path);
            let name = name.file_name().unwrap_or_default().to_string_lossy();
            predict::predict(&mut examined.diagnosis, &recording, &name)?;
            examined.diagnosis.judged_settings = judged(&examined.diagnosis);
        }
        let room = args
            .huge
            .and_then(|wanted| room_by_any_means(&evidence, &examined, wanted));
        let shown = Shown {
            covered: evidence.covered.as_ref(),
            needs,
            room,
            rooms: huge_page_rooms(&evidence, &examined),
        };
        match show(args, &examined, shown, console) {
            // As above.
            Err(Failure::ReaderGone) if args.gate.is_one_line() => {}
            shown => shown?,
        }
    }
    if let Some(path) = &args.html {
        say_line(format!("wrote {}", name_of(path)));
    }
    Ok(status)
}

/// What is shown beside the diagnosis.
struct Shown<'a> {
    covered: Option<&'a Covered>,
    needs: Option<Needs>,
    /// How many huge pages there are by any means, where so many are asked for.
    room: Option<Room>,
    /// How many there are after each means.
    rooms: Option<[Room; 4]>,
}

fn show(args: &Args, x: &Examined, shown: Shown, console: Console) -> Result<()> {
    let Shown {
        covered,
        needs,
        room,
        rooms,
    } = shown;
    let d = &x.diagnosis;
    let screen = console.screen();
    let answer = args.huge.map(|wanted| {
        let (means, predicted) = text::settled(d, wanted, room);
        let (answer, commands) = text::answer(d, wanted, room);
        Answer {
            wanted,
            means,
            predicted,
            answer,
            commands,
        }
    });
    if args.gate.is_json() {
        let json = Json {
            huge: answer,
            needs,
            diagnosis: d,
        };
        let json = Within::of(covered, &json);
        return match args.gate.is_one_line() {
            true => print_json_line(&json),
            false => console.print_json(&json),
        };
    }
    if args.map {
        return console.print(map::terminal(x, &screen));
    }
    let mut out = String::new();
    if let Some(a) = &answer {
        out += &format!("{}\n", a.answer);
        if let Some(note) = text::short_lists_note(&a.commands.join(" ")) {
            out += &format!("  # {note}\n");
        }
        for c in &a.commands {
            out += &format!("  {c}\n");
        }
    }
    match &needs {
        Some(n) => {
            out += &line(covered, "");
            out += &render(n);
        }
        None if answer.is_some() => {
            out += &line(covered, "");
            for note in &d.notes {
                out += &format!("note: {}\n", printable(note));
            }
        }
        None => {
            let mut text = first_screen(args, d, rooms, &screen);
            if args.all {
                text.append(&text::tables(d, &screen));
            }
            return console.print(below_line(covered, "", &text));
        }
    }
    console.print(out)
}

fn first_screen(args: &Args, d: &Diagnosis, rooms: Option<[Room; 4]>, screen: &Screen) -> Text {
    let is_now = is_own(&args.path);
    let command = match is_now {
        true => "unfrag doctor".to_owned(),
        false => format!("unfrag doctor {}", shell_word(&args.path)),
    };
    let asked = Asked {
        is_now,
        command: &command,
        has_tables: args.all,
        rooms,
    };
    first_screen::render(d, asked, screen)
}

fn input_recording(path: &Path) -> Result<Recording> {
    if !recordings::is_unfrag(path)? {
        return Err(Failure::usage(
            format!("{} is no .unfrag file", escaped_path(path)),
            "make one with `unfrag import`, and give that",
        ));
    }
    let recording = file::read(path)?;
    if recording.events.is_empty() {
        return Err(
            Error::malformed("it has no events, so there is nothing to replay")
                .in_file(path)
                .help("give a recording with a trace")
                .into(),
        );
    }
    Ok(recording)
}
