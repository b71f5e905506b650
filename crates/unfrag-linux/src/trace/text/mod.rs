//! Text of `trace-cmd report`, of `perf script` and of the kernel's `trace` and `trace_pipe`, kernels
//! 2.6.32 to 6.18 (`spec: 7.6, 7.7, 7.8`).
//!
//! A line is a prefix (`line`: task, CPU, flags, time, event) and the event's own text, whose
//! `key=value` pairs (`pairs`) become columns (`fields`) under the names they have in the text.
//!
//! Lines that a mailer wrapped are put together again, and the marks of a quoted mail taken off (`lines`).
//!
//! Invariant: no line by itself makes the reader fail. Lines that were not understood are counted, and the first of
//! them kept ([`NotUnderstood`]). Not among them are what a tracer writes beside events (comments, stacks, calls of
//! functions, `CPU 1 is empty`), fences of Markdown and blank lines. Known differences from the same recording
//! read in binary:
//! - `page=` is dropped (a hash or an address); an allocation that failed has pfn 0, not 2^64 - 1;
//! - times end at the digits printed, mostly microseconds;
//! - values that the kernel prints by name (zone, reason, call_site, ...) are strings, but for gfp
//!   flags, which become masks of the kernel that is named by the caller, else by the newest kernel's
//!   (`meta.facts`: `gfp flags read as those of`).

mod fields;
mod leftover;
mod line;
mod lines;
mod pairs;
mod value;

use std::io::Read;

use crate::content::read_some;
use crate::error::{Error, Result};
use crate::recording::UNKNOWN_COMM;
use crate::recording::{Meta, Recording};
use crate::trace::event::batches::{Batches, all_at_once};
use crate::trace::event::columns::{Columns, Common, MAX_CPUS};

pub use leftover::{NotUnderstood, joined};

use fields::Tables;
use leftover::Tally;
use line::{Line, STACK_TRACE, Stamp, is_head};
use lines::{Lines, MOST_PARTS};

/// Reads trace text. `kernel_release` (`uname -r` of the recorded host) decides what gfp names mean.
///
/// # Errors
/// If no line of `data` is an event, more than half of its lines were not understood, or there are more than
/// 256 kinds of events.
pub fn read(data: &[u8], kernel_release: Option<&str>) -> Result<Recording> {
    let mut reader = Reader::new(kernel_release, data.len() as u64);
    // Lines of page events take some 120 bytes.
    reader.columns.reserve(data.len() / 128);
    all_at_once(|batches| {
        reader.piece(data, true, batches)?;
        reader.finish(batches)
    })
}

/// Bytes of the text that are read at a time.
const PIECE: usize = 4 << 20;
/// Bytes of a line, at most.
const MOST_LINE: usize = 64 << 20;

/// Reads trace text of perhaps `size` bytes, and gives those events away that fill a batch.
///
/// # Errors
/// As [`read`]; and if it cannot be read, a line is longer than 64 MiB, or the events are too far out of order for
/// batches.
pub(crate) fn stream(
    from: &mut dyn Read,
    size: u64,
    kernel_release: Option<&str>,
    batches: &mut Batches<'_>,
) -> Result<Recording> {
    let mut reader = Reader::new(kernel_release, size);
    let mut piece = vec![];
    loop {
        let old = piece.len();
        piece.resize(old + PIECE, 0);
        let n = read_some(from, &mut piece[old..])?;
        piece.truncate(old + n);
        let is_last = n < PIECE;
        let taken = reader.piece(&piece, is_last, batches)?;
        if is_last {
            return reader.finish(batches);
        }
        piece.drain(..taken);
        if piece.len() > MOST_LINE {
            let (size, limit) = (piece.len() as u64, MOST_LINE as u64);
            return Err(
                Error::too_large("the length of a line in bytes", size, limit)
                    .at(reader.at)
                    .help("it should be trace text, an event on each line"),
            );
        }
    }
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    columns: Columns,
    tables: Tables,
    meta: Meta,
    /// Time of the event before, for those that have none.
    time: u64,
    untimed: u64,
    tally: Tally,
    cpus: u32,
    perf: bool,
    trace_cmd: bool,
    trace_file: bool,
    /// Whether a stack is being listed.
    in_stack: bool,
    /// Bytes and lines before the present piece.
    at: u64,
    lines: u64,
}

impl Reader {
    fn new(kernel_release: Option<&str>, size: u64) -> Reader {
        let release = kernel_release.filter(|r| !r.is_empty());
        Reader {
            columns: Columns::for_input(size),
            tables: Tables::new(release),
            meta: Meta {
                kernel_release: release.unwrap_or_default().to_owned(),
                page_size: 4096,
                ..Meta::default()
            },
            ..Reader::default()
        }
    }

    /// Reads a piece of the text; gives the number of bytes that were taken. Of a piece that is not the last, lines are
    /// left that may go on in the next one.
    fn piece(&mut self, data: &[u8], is_last: bool, batches: &mut Batches<'_>) -> Result<usize> {
        let mut lines = Lines::of(data, self.lines + 1);
        let until = if is_last {
            data.len()
        } else {
            whole_lines(data)
        };
        while let Some(line) = lines.peek().filter(|l| (l.at as usize) < until) {
            lines.next();
            let (text, joined) = lines.whole(line.text);
            self.tally.joined += joined;
            self.tally.all += joined;
            let at = self.at + line.at;
            self.line(&text, line.number).map_err(|e| e.at(at))?;
            self.columns.spill(batches)?;
        }
        let next = lines.peek();
        let taken = next.map_or(data.len(), |l| l.at as usize);
        self.lines = next.map_or(self.lines, |l| l.number - 1);
        self.at += taken as u64;
        Ok(taken)
    }

    fn line(&mut self, text: &[u8], number: u64) -> Result<()> {
        self.tally.all += 1;
        match Line::parse(text) {
            Line::Event(prefix) => {
                self.in_stack = prefix.event == STACK_TRACE;
                if self.in_stack {
                    return Ok(());
                }
                let time = match prefix.time {
                    Stamp::Nanos(t) => t,
                    Stamp::None => {
                        self.untimed += 1;
                        self.time
                    }
                };
                self.time = time;
                let task = match (prefix.pid, prefix.comm) {
                    (pid, comm) if comm == UNKNOWN_COMM.as_bytes() => {
                        self.columns.tasks.of_pid(pid)
                    }
                    (pid, comm) => {
                        let comm = String::from_utf8_lossy(comm);
                        self.columns.tasks.of_task(pid, &comm)
                    }
                };
                self.perf |= prefix.system.is_some();
                self.cpus = self.cpus.max(u32::from(prefix.cpu) + 1);
                let system = prefix.system.unwrap_or_default();
                let kind = self.tables.kind(system, prefix.event, &mut self.columns)?;
                self.columns.push(Common {
                    time,
                    cpu: prefix.cpu,
                    task,
                    flags: prefix.flags,
                    preempt: prefix.preempt,
                    kind,
                });
                self.tables.row(kind, prefix.text, &mut self.columns)?;
            }
            Line::Lost { cpu, count } => self.columns.push_lost(cpu, count),
            Line::Cpus(n) => {
                self.trace_cmd = true;
                self.meta.cpus = n.min(MAX_CPUS);
            }
            Line::Comment => {
                self.tally.all -= 1;
                self.comment(text);
            }
            Line::Stack => self.in_stack = true,
            Line::Blank => {
                self.tally.all -= 1;
                self.in_stack = false;
            }
            Line::Skipped => {}
            Line::Other if self.in_stack => {}
            Line::Other => self.tally.not_understood(number, text, is_head(text)),
        }
        Ok(())
    }

    /// Takes what the head of a trace file says: `# entries-in-buffer/entries-written: 7/9   #P:2`.
    fn comment(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.trace_file |= text.starts_with("# tracer:");
        let number = |s: &str| s.trim().parse::<u64>().ok();
        // The latency format names the kernel: `# nop latency trace v1.1.5 on 6.18.44`.
        if let Some((_, release)) = text.split_once(" latency trace v")
            && let Some((_, release)) = release.split_once(" on ")
            && self.meta.kernel_release.is_empty()
        {
            self.meta.kernel_release = release.trim().to_owned();
            self.tables.set_release(release.trim());
        }
        if let Some((_, cpus)) = text.split_once("#P:") {
            let digits: String = cpus.chars().take_while(char::is_ascii_digit).collect();
            self.meta.cpus = self
                .meta
                .cpus
                .max(digits.parse().unwrap_or(0).min(MAX_CPUS));
        }
        if let Some((_, rest)) = text.split_once("entries-in-buffer/entries-written:")
            && let Some((kept, rest)) = rest.split_once('/')
            && let Some(written) = rest.split_ascii_whitespace().next()
            && let (Some(kept), Some(written)) = (number(kept), number(written))
            && written > kept
        {
            let name = "events overwritten before the first".to_owned();
            self.meta.facts.insert(name, (written - kept).to_string());
        }
    }

    fn finish(mut self, batches: &mut Batches<'_>) -> Result<Recording> {
        if self.columns.is_empty() {
            return Err(Error::unsupported("no line of the text is a trace event").help(
                "it should be the text of `trace-cmd report`, `perf script` or the kernel's `trace` \
                 file",
            ));
        }
        self.columns.spill_rest(batches)?;
        let mut meta = self.meta;
        meta.cpus = meta.cpus.max(self.cpus);
        meta.source = match (self.perf, self.trace_cmd, self.trace_file) {
            (true, ..) => "text of perf script",
            (_, true, _) => "text of trace-cmd report",
            (_, _, true) => "text of a trace file",
            _ => "trace text",
        }
        .to_owned();
        let mut count = |name: &str, n: u64| {
            if n > 0 {
                meta.facts.insert(name.to_owned(), n.to_string());
            }
        };
        count("events without a time", self.untimed);
        self.tally.facts(&mut meta.facts)?;
        self.tables.facts(&mut meta.facts);
        Ok(self.columns.finish(meta))
    }
}

/// Where the last lines begin of which one may be put together with what comes after the piece.
fn whole_lines(data: &[u8]) -> usize {
    let ends = memchr::memrchr_iter(b'\n', data);
    ends.take(MOST_PARTS + 3).last().unwrap_or(0)
}
