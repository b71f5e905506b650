//! What the command says of itself: its commands by need, and the nearest right one for a command line that is wrong.
//!
//! Invariant: every command that is not hidden stands in the help once, and each example here works as it stands.

use crate::inputs::{is_kernel_log, shell_word};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;
use unfrag_lab::era::Era;

/// The help of `unfrag --help`.
pub const TEMPLATE: &str = "\
{about}

Usage: unfrag <COMMAND>        unfrag help <COMMAND> says its flags and examples

Something is wrong (reads only, takes seconds):
  explain     Why did this allocation fail, or the OOM killer run? From a kernel log
  doctor      What is wrong with this host's memory now, and what to do? --huge 500: can I have 500 huge pages?
  inspect     How fragmented is memory? Free memory by size of block; compares two moments
  account     Where is the memory? Every frame once, and what no counter of the kernel has
  frames      In how many frames does a process' memory lie, and what would huge pages take?
  top         Watch memory live

Who did it (tracing, needs root):
  record      Trace a command or the whole host, for a minute or for days
  blame       Which program holds the kernel memory that breaks up huge pages?
  profile     What a recorded command does to memory, and how long it keeps it
  summary     Who asked for what, and what failed: from a trace alone
  slab        Which slab allocator would have needed fewer pages?

What if:
  replay      The same load under another kernel or setting, with its measured error
  simulate    A load from a file, on a simulated machine
  experiment  A published experiment, run again
  calibrate   What the kernel's work on pages costs on this computer

Over weeks, and for others:
  exporter    Figures for Prometheus
  snapshot    What /proc says of memory now, as one small file
  paste       The same as a few lines of text, for an issue or a chat
  redact      A copy of a recording without names, to give away
  import      A trace of trace-cmd, perf or ftrace as one .unfrag file

Options:
{options}

First time here:   unfrag doctor          (as root sees most; changes nothing)
Pasted a log:      unfrag explain FILE    (this host's own: unfrag explain --journal)
";

/// A command that works, for a command line without what it needs.
const EXAMPLES: [(&str, &str); 13] = [
    (
        "explain",
        "unfrag explain --journal        (this host's kernel log; or a FILE, or - )",
    ),
    (
        "replay",
        "unfrag replay samples/gcc-768M.unfrag --kernel 6.1,6.18",
    ),
    (
        "frames",
        "unfrag frames 1234        (a process, or a cgroup)",
    ),
    ("blame", "unfrag blame samples/gcc-768M.unfrag"),
    ("profile", "unfrag profile samples/gcc-768M.unfrag"),
    ("summary", "unfrag summary samples/gcc-768M.unfrag"),
    ("slab", "unfrag slab samples/slab-find.unfrag"),
    (
        "record",
        "unfrag record --system --for 60s -o host.unfrag        (as root)",
    ),
    (
        "import",
        "unfrag import trace.dat --snapshots snapshots -o mine.unfrag",
    ),
    (
        "redact",
        "unfrag redact samples/gcc-768M.unfrag shared.unfrag",
    ),
    ("simulate", "unfrag simulate samples/small-build.toml"),
    ("snapshot", "unfrag snapshot -o now.unfrag"),
    (
        "experiment",
        "unfrag experiment atomic --kernel 2.6.30 --machine x86 --runs 1",
    ),
];

/// The commands that take a recording, and what each says of it.
const OF_RECORDINGS: [(&str, &str); 5] = [
    (
        "doctor",
        "what was wrong with memory at its end, and what to do",
    ),
    ("blame", "which program breaks up huge pages"),
    ("replay", "the same load under another kernel or setting"),
    ("inspect", "how fragmented memory was, moment by moment"),
    ("summary", "who asked for what, and what failed"),
];

/// What to type instead, for a command line that was not understood.
pub fn instead(said: &clap::Error, all: &Command) -> Option<String> {
    let word = |kind| match said.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    match said.kind() {
        ErrorKind::InvalidSubcommand => of_word(&word(ContextKind::InvalidSubcommand)?),
        ErrorKind::MissingRequiredArgument => {
            let command = first_word()?;
            let (_, example) = EXAMPLES.iter().find(|(name, _)| *name == command)?;
            Some(format!("such as:\n  {example}\n"))
        }
        ErrorKind::UnknownArgument => {
            let flag = word(ContextKind::InvalidArg)?;
            let is_first = first_word()?.starts_with(&flag);
            is_first.then(|| of_flag(&flag, all)).flatten()
        }
        ErrorKind::InvalidValue if word(ContextKind::InvalidArg)?.starts_with("--kernel ") => {
            of_kernel(&word(ContextKind::InvalidValue)?)
        }
        _ => None,
    }
}

/// The first word of the command line, whatever bytes are in the others.
fn first_word() -> Option<String> {
    std::env::args_os().nth(1)?.into_string().ok()
}

/// For a flag where a command should be: the commands that have it.
fn of_flag(flag: &str, all: &Command) -> Option<String> {
    let name = flag.strip_prefix("--")?;
    let has = |c: &&Command| c.get_arguments().any(|a| a.get_long() == Some(name));
    let mut of: Vec<&str> = all
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .filter(has)
        .map(Command::get_name)
        .collect();
    // Whoever names none most likely means this host as it is now.
    of.sort_by_key(|c| *c != "doctor");
    let first = of.first()?;
    let others = match &of[1..] {
        [] => String::new(),
        others => format!("    # {} have it, too", others.join(", ")),
    };
    let others = match of.len() {
        2 => others.replace("have it", "has it"),
        _ => others,
    };
    Some(format!(
        "a command comes first:\n  unfrag {first} {flag} ...{others}\n"
    ))
}

/// For a release that has no rules of its own: those nearest to it.
fn of_kernel(release: &str) -> Option<String> {
    let is_release = release.starts_with(|c: char| c.is_ascii_digit());
    let era = Era::of(release).ok().filter(|_| is_release)?;
    let rules = era.preset();
    Some(format!(
        "the rules that are known nearest to {release} are those of {rules}:\n  --kernel {rules}\n"
    ))
}

/// For a word that is no command: a file, or something else.
fn of_word(word: &str) -> Option<String> {
    let path = Path::new(word);
    let is_file = path.exists() || word.contains('/') || path.extension().is_some();
    if !is_file {
        return Some("to begin:\n  unfrag doctor\n".into());
    }
    let shown = shell_word(path);
    let is_recording = path.extension().is_some_and(|e| e == "unfrag") || path.is_dir();
    let is_log = match path.exists() {
        true => is_kernel_log(path),
        false => path.extension().is_some_and(|e| e == "log"),
    };
    let of_log = format!("  unfrag explain {shown}    # a kernel log: why allocations failed\n");
    let lines: Vec<String> = match (is_recording, is_log) {
        (true, _) => OF_RECORDINGS
            .iter()
            .map(|(command, what)| format!("  unfrag {command} {shown}    # {what}\n"))
            .collect(),
        (false, true) => vec![of_log],
        (false, false) => vec![
            of_log,
            format!(
                "  unfrag doctor {shown}    # files of /proc in one text or archive: what is wrong with memory\n"
            ),
            format!("  unfrag summary {shown}    # a trace: who asked for what\n"),
        ],
    };
    let is = match (path.exists(), lines.len()) {
        (true, 1) => format!("{shown} is no command. This one takes it:\n"),
        (true, _) => format!("{shown} is no command. These take it:\n"),
        (false, 1) => format!("If {shown} is a file, this command takes it:\n"),
        (false, _) => format!("If {shown} is a file, these commands take it:\n"),
    };
    Some(is + &lines.concat())
}
