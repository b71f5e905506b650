//! `unfrag explain`: why allocations failed, from a kernel log.

use crate::failure::{Failure, Result};
use crate::inputs::shell_word;
use crate::output::{print, print_json, print_json_line};
use crate::progress::Progress;
use crate::terminal::screen;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use unfrag_lab::explain::{Explanation, explain, found, text};
use unfrag_linux::Error;
use unfrag_linux::paste::Mark;

/// Say why allocations failed, from a kernel log
///
/// Reads any text that holds reports of failed allocations or of the OOM killer: dmesg, syslog, the journal, a mail,
/// from kernels 2.4 to today, also packed with gzip, xz, bzip2 or zstd. Says of each different failure who asked for what, what each zone had for it, why that
/// was not enough, and what would have helped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag explain samples/page-allocation-failure.log
  dmesg | unfrag explain -
  unfrag explain --journal --json
  unfrag explain --check samples/page-allocation-failure.log || echo \"allocations failed\"")]
pub struct Args {
    /// The log; - for standard input
    #[arg(value_name = "FILE", required_unless_present = "journal")]
    path: Option<PathBuf>,
    /// Read this host's kernel log: the journal, or else the kernel's ring buffer
    #[arg(long, conflicts_with = "path")]
    journal: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Say in one line of at most 80 signs whether anything failed; exit status 0 no failure, 1 failures, 3 not known, as
    /// lines were not understood or are missing, or none is a kernel's, 2 the log cannot be read. With --json the line is JSON
    #[arg(long)]
    check: bool,
}

/// Carries it out; the exit status is the answer's with `--check`.
///
/// # Errors
/// If the log cannot be read.
pub fn run(args: &Args) -> Result<ExitCode> {
    match done(args) {
        Err(failure) if args.check => {
            failure.report();
            Ok(ExitCode::from(2))
        }
        done => done,
    }
}

fn done(args: &Args) -> Result<ExitCode> {
    let answer = match &args.path {
        None => of_host()?,
        Some(path) if path == Path::new("-") => explained(io::stdin().lock(), "-")?,
        Some(path) => of_file(path)?,
    };
    let found = found::found(&answer);
    let printed = match (args.json, args.check) {
        (true, true) => print_json_line(&answer),
        (true, false) => print_json(&answer),
        (false, true) => print(format!("{}\n", found.line)),
        (false, false) => print(text::render(&answer, screen().width)),
    };
    match printed {
        // The status stays the answer's if nobody reads it.
        Err(Failure::ReaderGone) if args.check => {}
        printed => printed?,
    }
    Ok(match (args.check, found.any) {
        (true, Some(true)) => ExitCode::from(1),
        (true, None) => ExitCode::from(3),
        _ => ExitCode::SUCCESS,
    })
}

/// This host's log, with what it may lack.
#[cfg(target_os = "linux")]
fn of_host() -> Result<Explanation> {
    let log = unfrag_linux::kernel_log::host::open()?;
    let mut answer = explain(log.text)?;
    answer.is_log = true;
    answer.notes.push(format!("this was read: {}", log.source));
    answer.notes.extend(
        log.lacking
            .into_iter()
            .map(|l| format!("missing here: {l}")),
    );
    Ok(answer)
}

#[cfg(not(target_os = "linux"))]
fn of_host() -> Result<Explanation> {
    Err(Failure::usage(
        "this host is no Linux",
        "give a log as a file",
    ))
}

fn of_file(path: &Path) -> Result<Explanation> {
    let failed = |e: io::Error| Failure::from(Error::from(e).in_file(path));
    let file = File::open(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    let log = Counted {
        file,
        done: 0,
        total,
        progress: Progress::new("reading the log"),
    };
    explained(log, &shell_word(path)).map_err(|e| e.inside(path).into())
}

/// Explains a text; of one that is no log, but what `unfrag paste` printed, it is said who reads it. `path` is what the
/// shell calls it.
fn explained(mut text: impl Read, path: &str) -> unfrag_lab::error::Result<Explanation> {
    let mut head = vec![];
    text.by_ref()
        .take(16)
        .read_to_end(&mut head)
        .map_err(Error::from)?;
    // Bytes without a report would read as a log in which nothing failed.
    if let Some(what) = recording(&head) {
        let help = format!("ask of it: unfrag summary {path}");
        return Err(
            Error::unsupported(format!("{what}, which holds no kernel log"))
                .help(help)
                .into(),
        );
    }
    let mut noting = Noting {
        text: Cursor::new(head).chain(text),
        mark: Mark::default(),
    };
    let mut answer = explain(&mut noting)?;
    if noting.mark.is_there() && answer.reports.is_empty() {
        answer.notes.push(format!(
            "this is what `unfrag paste` printed: it tells how memory stands, and holds no kernel log; \
             `unfrag doctor {path}` reads it"
        ));
    }
    Ok(answer)
}

/// What a file is that begins so, if it is a recording.
fn recording(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'P', b'K', 3, 4, ..] => Some("it is a recording (.unfrag), or another archive"),
        [0x17, 8, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g', ..] => {
            Some("it is a trace of trace-cmd")
        }
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => Some("it is a trace of perf"),
        _ => None,
    }
}

/// A text of which is noted whether a paste is in it.
struct Noting<R> {
    text: R,
    mark: Mark,
}

impl<R: Read> Read for Noting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.text.read(buffer)?;
        self.mark.look(&buffer[..n]);
        Ok(n)
    }
}

/// A file whose reading is shown.
struct Counted {
    file: File,
    done: u64,
    total: u64,
    progress: Progress,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.done += n as u64;
        if self.total > 0 {
            self.progress.at(self.done.min(self.total), self.total);
        }
        Ok(n)
    }
}
