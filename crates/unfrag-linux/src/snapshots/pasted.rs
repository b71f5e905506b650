//! Text that people paste: one procfs file, or several with prompts, headings, fences and quotes, once
//! or again and again.
//!
//! Invariant: a file that stands alone is kept byte for byte. Of several, each gets its own lines, with
//! quotes and carriage returns taken off; a file that begins again begins a new snapshot.

use std::collections::{BTreeMap, VecDeque};

use super::foreign;
use super::line::Line;
use super::lines::{self, Context};
use super::settings::{self, Setting};
use crate::error::Result;
use crate::recording::{Snapshot, SnapshotFile};

/// Levels of `> ` that are taken off.
const MAX_QUOTES: usize = 8;

/// Words of the heading of a table of pageblocks that name no type.
const HEAD_OF_BLOCKS: [&str; 5] = ["Number", "of", "mixed", "blocks", "type"];

/// A file of a reading.
#[derive(Default)]
struct Part {
    text: String,
    first_key: Option<String>,
    /// Whether a program only said that it could not read the file.
    refused: bool,
}

#[derive(Default)]
struct Splitter {
    done: Vec<BTreeMap<&'static str, Part>>,
    reading: BTreeMap<&'static str, Part>,
    context: Context,
    /// Lines of pagetypeinfo before its first row; they belong to the reading of that row.
    pending: String,
    /// Whether lines were left out or changed.
    changed: bool,
    /// Whether the line before belongs to the current file too.
    adjacent: bool,
    /// Settings whose values the command before prints.
    waiting: VecDeque<Setting>,
}

/// The snapshots in a text, undated; none if nothing in it is of a procfs file.
///
/// # Errors
/// If a table of another program is recognised, but not understood.
pub(super) fn split(bytes: &[u8]) -> Result<Vec<Snapshot>> {
    let text = String::from_utf8_lossy(bytes);
    let quotes = quotes(&text);
    let mut splitter = Splitter::default();
    let mut all = text.split_inclusive('\n').peekable();
    while let Some(line) = all.next() {
        let ended = line.ends_with('\n');
        let whole = line.trim_end_matches(['\n', '\r']);
        let line = without_time(unquoted(whole, quotes));
        splitter.changed |= line.len() < whole.len();
        splitter.line(line, ended || all.peek().is_some());
    }
    splitter.flush();
    let Splitter {
        mut done,
        reading,
        changed,
        ..
    } = splitter;
    done.push(reading);
    // Any prose may have a line `Name: number`; an amount of memory shows meminfo.
    let amounts = ["Mem", "Huge", "Slab", "Cached", "Active", "Swap"];
    for reading in &mut done {
        let is_meminfo =
            |part: &Part| part.refused || amounts.iter().any(|a| part.text.contains(a));
        reading.retain(|file, part| *file != "meminfo" || is_meminfo(part));
    }
    done.retain(|reading| !reading.is_empty());
    if done.is_empty()
        && let Some((name, text)) = foreign::of_whole(&text)
    {
        return Ok(vec![Snapshot {
            name: ".".to_owned(),
            files: vec![file(name, text.into_bytes())],
        }]);
    }
    let alone = done.len() == 1 && done[0].len() == 1 && !changed;
    let several = done.len() > 1;
    let mut snapshots = vec![];
    for (n, reading) in done.into_iter().enumerate() {
        let mut files: Vec<SnapshotFile> = vec![];
        for (kind, part) in reading {
            let (name, content) = match (foreign::convert(kind, &part.text)?, kind) {
                (Some((name, text)), _) => (name, text.into_bytes()),
                (None, "version") => (kind, part.text.into_bytes()),
                (None, _) if alone => (kind, bytes.to_vec()),
                (None, _) => (kind, trimmed(part.text).into_bytes()),
            };
            if files.iter().all(|f| f.name != name) {
                files.push(file(name, content));
            }
        }
        let name = if several {
            format!("{:06}", n + 1)
        } else {
            ".".to_owned()
        };
        snapshots.push(Snapshot { name, files });
    }
    Ok(snapshots)
}

fn file(name: &str, content: Vec<u8>) -> SnapshotFile {
    SnapshotFile {
        name: name.to_owned(),
        time: None,
        content: content.into(),
    }
}

/// `text` without the blank lines at its end.
fn trimmed(mut text: String) -> String {
    let content = text.trim_end_matches('\n').len();
    if content < text.len() {
        text.truncate(content + 1);
    }
    text
}

/// How many levels of quoting most lines have.
fn quotes(text: &str) -> usize {
    let (mut lines, mut levels) = (0usize, [0usize; MAX_QUOTES + 1]);
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        lines += 1;
        let marks = line.bytes().take_while(|b| matches!(b, b'>' | b' '));
        let level = marks.filter(|&b| b == b'>').count().min(MAX_QUOTES);
        levels[..=level].iter_mut().for_each(|n| *n += 1);
    }
    (1..=MAX_QUOTES)
        .take_while(|&level| levels[level] * 2 > lines)
        .count()
}

fn unquoted(mut line: &str, levels: usize) -> &str {
    for _ in 0..levels {
        match line.trim_start().strip_prefix('>') {
            Some(rest) => line = rest.strip_prefix(' ').unwrap_or(rest),
            None => break,
        }
    }
    // A part may be quoted more deeply than the rest. A count that the kernel capped begins with the same sign.
    let marks = line.bytes().take_while(|b| *b == b'>').count();
    match line[marks..].strip_prefix(' ') {
        Some(rest) if (1..=MAX_QUOTES).contains(&marks) => rest,
        _ => line,
    }
}

/// A line of a kernel log without the time before it, `[  178.490000] `.
fn without_time(line: &str) -> &str {
    let stamp = |line: &str| {
        let inner = line.strip_prefix('[')?;
        let (time, rest) = inner.split_once(']')?;
        let (seconds, fraction) = time.trim().split_once('.')?;
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        (digits(seconds) && digits(fraction)).then(|| line.len() - rest.len())
    };
    match stamp(line) {
        Some(at) => line[at..].strip_prefix(' ').unwrap_or(&line[at..]),
        None => line,
    }
}

impl Splitter {
    fn line(&mut self, line: &str, ended: bool) {
        if line.trim().is_empty() {
            if self.context.current == Some("pagetypeinfo") {
                self.pending.push('\n');
            }
            self.adjacent = false;
            return;
        }
        if self.waiting.is_empty() && self.continues_a_row(line) {
            return;
        }
        // A text that is cut off ends within a line of the file that it was in.
        if !ended
            && self.context.current.is_some_and(|c| c != "version")
            && line.starts_with("Node")
        {
            let current = self.context.current.unwrap_or_default();
            self.push(current, line, ended);
            return;
        }
        let line_is = match settings::value(&mut self.waiting, line) {
            Some(value) => value,
            None => {
                self.waiting = settings::printed_next(line);
                lines::classify(line, &self.context)
            }
        };
        match line_is {
            Line::Of(file, key) => self.take(file, key, line, ended),
            Line::As(file, key, text) => {
                self.changed = true;
                self.take(file, key, &text, true);
            }
            Line::Release(release) => {
                let part = self.reading.entry("version").or_default();
                if part.text.is_empty() {
                    part.text = match line.trim() {
                        text if text.starts_with("Linux version ") => format!("{text}\n"),
                        text => format!("Linux version {release} ({text})\n"),
                    };
                }
                self.leave();
            }
            Line::Heading(files) => {
                let watch = line.starts_with("Every ") && self.reading.is_empty();
                self.changed |= !watch;
                self.leave();
                self.context.named = match files[..] {
                    [file] => Some(file),
                    _ => None,
                };
            }
            Line::Refused(file) => {
                self.leave();
                let part = self.reading.entry(file).or_default();
                if part.text.is_empty() {
                    part.text = format!("{line}\n");
                    part.refused = true;
                }
            }
            Line::Other => match self.context.current {
                Some(current) if self.adjacent => self.push(current, line, ended),
                _ => {
                    self.changed = true;
                    self.leave();
                }
            },
        }
    }

    /// A row that a mailer broke into two is put together again.
    fn continues_a_row(&mut self, line: &str) -> bool {
        let numbers = line
            .split_ascii_whitespace()
            .all(|w| w.bytes().all(|b| b.is_ascii_digit() || b">.-".contains(&b)));
        let of_rows = [
            "buddyinfo",
            "pagetypeinfo",
            "extfrag_index",
            "unusable_index",
        ];
        let Some(current) = self.context.current.filter(|c| of_rows.contains(c)) else {
            return false;
        };
        if !numbers || !self.adjacent || !self.pending.is_empty() {
            return false;
        }
        let Some(part) = self.reading.get_mut(current) else {
            return false;
        };
        let kept = part.text.trim_end().len();
        part.text.truncate(kept);
        part.text.push_str("  ");
        part.text.push_str(line.trim_start());
        part.text.push('\n');
        self.changed = true;
        true
    }

    fn take(&mut self, file: &'static str, key: Option<String>, line: &str, ended: bool) {
        if self.context.current != Some(file) {
            self.flush();
        }
        if file == "pagetypeinfo" {
            if line.trim_start().starts_with("Number of") {
                let types = line
                    .split_ascii_whitespace()
                    .filter(|w| !HEAD_OF_BLOCKS.contains(w));
                self.context.block_types = Some(types.count());
            } else if key.is_some() || line.trim_start().starts_with("Page block order") {
                self.context.block_types = None;
            }
            if key.is_none() && !line.trim_start().starts_with("Node") {
                self.context.current = Some(file);
                self.pending.push_str(line);
                self.pending.push_str(if ended { "\n" } else { "" });
                self.adjacent = true;
                return;
            }
        }
        if key.is_some() {
            self.context.flat = false;
        }
        let text = line.trim_start();
        self.context.zone_over = file == "zoneinfo"
            && (text.starts_with("start_pfn") || text.starts_with("inactive_ratio"));
        if let Some(key) = key {
            let again = self
                .reading
                .get(file)
                .is_some_and(|part| part.first_key.as_ref() == Some(&key));
            if again {
                let before = std::mem::take(&mut self.reading);
                self.done.push(before);
            }
            let part = self.reading.entry(file).or_default();
            if part.refused {
                *part = Part::default();
            }
            part.first_key.get_or_insert(key);
        }
        self.context.current = Some(file);
        self.push(file, line, ended);
    }

    /// Adds a line, and what was pending before it, to `file`.
    fn push(&mut self, file: &'static str, line: &str, ended: bool) {
        let pending = std::mem::take(&mut self.pending);
        let part = self.reading.entry(file).or_default();
        part.text.push_str(&pending);
        part.text.push_str(line);
        part.text.push_str(if ended { "\n" } else { "" });
        // A zone's first line after its name tells whether indentation was lost.
        let flat = ["pages free", "per-node stats"]
            .iter()
            .any(|s| line.starts_with(s));
        self.context.flat |= file == "zoneinfo" && flat;
        self.adjacent = true;
    }

    /// Puts what is pending into the reading at hand.
    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if self.context.current == Some("pagetypeinfo") && !pending.trim().is_empty() {
            let part = self.reading.entry("pagetypeinfo").or_default();
            part.text.push_str(&pending);
        }
    }

    /// The current file is over.
    fn leave(&mut self) {
        self.flush();
        self.context = Context::default();
        self.adjacent = false;
    }
}
