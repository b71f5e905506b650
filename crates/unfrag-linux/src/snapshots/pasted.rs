//! Text that people paste: one procfs file, or several with prompts, headings, fences and quotes, once
//! or again and again.
//!
//! Invariant: a file that stands alone is kept byte for byte. Of several, each gets its own lines, with
//! quotes, times and carriage returns taken off; a file ends where a line is of another one, and a file that begins
//! again begins a new snapshot. A setting that is stated again has the later value.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use super::decoration;
use super::foreign::{self, nodes};
use super::headings;
use super::line::Line;
use super::lines::{self, Context};
use super::settings;
use super::wrapped::{self, Piece};
use crate::error::Result;
use crate::recording::{Snapshot, SnapshotFile};

/// Levels of `>` without a blank that are taken off.
const MAX_QUOTES: usize = 8;

/// A file of a reading.
#[derive(Default)]
struct Part {
    text: String,
    /// Keys of its lines, and the stretch that each is in: one that comes again is of another moment.
    keys: BTreeMap<String, usize>,
    /// Stretches of lines that follow each other so far, and where the last of them begins.
    stretch: usize,
    begins: usize,
    /// The first key of that stretch.
    opening: Option<String>,
    /// Whether a program only said that it could not read the file.
    refused: bool,
}

/// What belongs to one moment.
#[derive(Default)]
struct Reading {
    parts: BTreeMap<&'static str, Part>,
    /// Settings by their names in a snapshot.
    settings: BTreeMap<String, String>,
}

#[derive(Default)]
struct Splitter {
    done: Vec<Reading>,
    reading: Reading,
    context: Context,
    /// The node whose files a heading named.
    node: Option<u32>,
    /// Settings whose values are expected, in order.
    expected: VecDeque<String>,
    /// Lines of pagetypeinfo before its first row; they belong to the reading of that row.
    pending: String,
    /// Whether lines were left out or changed.
    changed: bool,
    /// Whether the line before belongs to the current file too.
    adjacent: bool,
}

/// The snapshots in a text, undated; none if nothing in it is of a procfs file.
///
/// # Errors
/// If a table of another program is recognised, but not understood.
pub(super) fn split(bytes: &[u8]) -> Result<Vec<Snapshot>> {
    let text = String::from_utf8_lossy(bytes);
    let quotes = quotes(&text);
    let mut pieces: Vec<Piece> = vec![];
    let mut changed = quotes > 0;
    for line in text.split_inclusive('\n') {
        let ended = line.ends_with('\n');
        let whole = unquoted(line.trim_end_matches(['\n', '\r']), quotes);
        let bare = decoration::bare(whole);
        changed |= bare.len() < whole.len();
        pieces.push(Piece {
            text: Cow::Borrowed(bare),
            ended,
        });
    }
    let (pieces, any_joined) = wrapped::joined(pieces);
    let mut splitter = Splitter {
        changed: changed || any_joined,
        ..Splitter::default()
    };
    for piece in &pieces {
        splitter.line(&piece.text, piece.ended);
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
        reading
            .parts
            .retain(|file, part| *file != "meminfo" || is_meminfo(part));
    }
    done.retain(|r| !r.parts.is_empty() || !r.settings.is_empty());
    let alone = match &done[..] {
        [only] if only.parts.len() == 1 && only.settings.is_empty() && !changed => Some(bytes),
        _ => None,
    };
    let mut moments: Vec<Vec<SnapshotFile>> = vec![];
    for reading in done {
        moments.extend(files_of(reading, alone)?);
    }
    if moments.is_empty()
        && let Some(text) = foreign::bare_counts(&text)
    {
        moments.push(vec![file("buddyinfo", text)]);
    }
    let several = moments.len() > 1;
    let named = moments.into_iter().enumerate().map(|(n, files)| Snapshot {
        name: match several {
            true => format!("{:06}", n + 1),
            false => ".".to_owned(),
        },
        files,
    });
    Ok(named.collect())
}

/// The files of a reading; more than one list where a table is of several hosts, or of a file that is there already.
/// `alone` is the whole text if it is this one file.
fn files_of(reading: Reading, alone: Option<&[u8]>) -> Result<Vec<Vec<SnapshotFile>>> {
    let mut moments: Vec<Vec<SnapshotFile>> = vec![vec![]];
    let only = reading.parts.len() + reading.settings.len() == 1;
    for (kind, part) in reading.parts {
        let of_hosts = match foreign::convert(kind, &part.text) {
            // What cannot be read costs itself alone.
            Err(_) if !only => {
                moments[0].push(file(foreign::stands_for(kind), part.text));
                continue;
            }
            converted => converted?,
        };
        let Some(of_hosts) = of_hosts else {
            moments[0].push(match (kind, alone) {
                ("version", _) => file(kind, part.text),
                (_, Some(bytes)) => SnapshotFile {
                    name: kind.to_owned(),
                    time: None,
                    content: bytes.to_vec().into(),
                },
                _ => file(kind, trimmed(part.text)),
            });
            continue;
        };
        for files in of_hosts {
            let is_there = |moment: &[SnapshotFile]| {
                let mut named = files.iter().filter(|(name, _)| name != "version");
                named.any(|(name, _)| moment.iter().any(|f| &f.name == name))
            };
            let at = moments
                .iter()
                .position(|m| !is_there(m))
                .unwrap_or_else(|| {
                    moments.push(vec![]);
                    moments.len() - 1
                });
            for (name, text) in files {
                if !moments[at].iter().any(|f| f.name == name) {
                    moments[at].push(file(&name, text));
                }
            }
        }
    }
    let settings = reading.settings.into_iter();
    moments[0].extend(settings.map(|(name, value)| file(&name, value + "\n")));
    Ok(moments)
}

fn file(name: &str, text: String) -> SnapshotFile {
    SnapshotFile {
        name: name.to_owned(),
        time: None,
        content: text.into_bytes().into(),
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
    line
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
        // A text that is cut off ends within a line of the file that it was in.
        if !ended
            && let Some(current) = self.context.current.filter(|c| *c != "version")
            && line.starts_with("Node")
        {
            self.push(current, line, ended);
            return;
        }
        let Some((path, line)) = headings::with_path(line) else {
            self.bare_line(line, ended);
            return;
        };
        self.changed = true;
        match headings::file_of_path(path) {
            Some(file) if self.context.named != Some(file) => {
                self.leave();
                self.context.named = Some(file);
            }
            Some(_) => {}
            None => {
                self.leave();
                self.node = headings::node_of_path(path);
            }
        }
        self.bare_line(line, ended);
    }

    /// A line without the path of its file.
    fn bare_line(&mut self, line: &str, ended: bool) {
        if let Some(name) = self.expected.front()
            && ended
            && settings::fits(name, line)
        {
            let name = self.expected.pop_front().unwrap_or_default();
            self.set(name, line.trim().to_owned());
            return;
        }
        if let Some((key, line)) = self.node.and_then(|n| nodes::counter(n, line)) {
            self.take(foreign::NODES, Some(key), &line, ended);
            return;
        }
        match lines::classify(line, &self.context) {
            Line::Of(file, key) => {
                self.expected.clear();
                self.take(file, key, line, ended);
            }
            Line::Release(release) => {
                let part = self.reading.parts.entry("version").or_default();
                if part.text.is_empty() {
                    part.text = match line.trim() {
                        text if text.starts_with("Linux version ") => format!("{text}\n"),
                        text => format!("Linux version {release} ({text})\n"),
                    };
                }
                self.leave();
            }
            Line::Setting(name, value) => {
                self.leave();
                self.set(name, value);
            }
            Line::Heading {
                files,
                settings,
                node,
            } => {
                let watch = line.starts_with("Every ") && self.reading.parts.is_empty();
                self.changed |= !watch;
                self.leave();
                self.context.named = match files[..] {
                    [file] if node.is_none() => Some(file),
                    _ => None,
                };
                self.node = node;
                self.expected = settings.into();
            }
            Line::Refused(file) => {
                self.leave();
                let part = self.reading.parts.entry(file).or_default();
                if part.text.is_empty() {
                    part.text = format!("{line}\n");
                    part.refused = true;
                }
            }
            Line::NoSetting(name) => {
                self.changed = true;
                self.expected.retain(|expected| *expected != name);
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

    fn set(&mut self, name: String, value: String) {
        self.changed = true;
        self.flush();
        match name.strip_prefix("sys/vm/") {
            // One line of a listing, as `sysctl` prints it: the last of a name counts.
            Some(name) => self.push("sysctl-vm", &format!("vm.{name} = {value}"), true),
            None => {
                self.reading.settings.insert(name, value);
            }
        }
    }

    /// Begins a new moment.
    fn next_reading(&mut self) {
        let before = std::mem::take(&mut self.reading);
        self.done.push(before);
    }

    fn take(&mut self, file: &'static str, key: Option<String>, line: &str, ended: bool) {
        if self.context.current != Some(file) {
            self.flush();
            let stands_for = foreign::stands_for(file);
            let is_told =
                |other: &&'static str| *other != file && foreign::stands_for(other) == stands_for;
            if self.reading.parts.keys().any(is_told) {
                self.next_reading();
            }
        }
        if file == "pagetypeinfo" {
            if line.trim_start().starts_with("Number of") {
                // `Number of blocks type` and `Number of mixed blocks` are four words.
                self.context.blocks = Some(line.split_ascii_whitespace().skip(4).count());
            } else if key.is_some() || line.trim_start().starts_with("Page block order") {
                self.context.blocks = None;
            }
            if key.is_none() && !line.trim_start().starts_with("Node") {
                self.context.current = Some(file);
                self.pending.push_str(line);
                self.pending.push_str(if ended { "\n" } else { "" });
                self.adjacent = true;
                return;
            }
        }
        if (self.context.current != Some(file) || !self.adjacent)
            && let Some(part) = self.reading.parts.get_mut(file)
        {
            part.stretch += 1;
            part.begins = part.text.len();
            part.opening = None;
        }
        if key.is_some() {
            self.context.flat = false;
            self.context.zone = lines::ZoneSoFar::default();
        }
        if let Some(key) = key {
            self.begin_again(file, &key);
            let part = self.reading.parts.entry(file).or_default();
            if part.refused {
                *part = Part::default();
            }
            let stretch = part.stretch;
            part.opening.get_or_insert_with(|| key.clone());
            part.keys.insert(key, stretch);
        }
        self.context.current = Some(file);
        self.push(file, line, ended);
    }

    /// Begins a new moment if `file` has a line with this key. The lines directly before it go there too, back to the last
    /// heading, gap or line of another file: a file that was read in part may be read whole later.
    fn begin_again(&mut self, file: &'static str, key: &str) {
        let Some(part) = self
            .reading
            .parts
            .get_mut(file)
            .filter(|part| !part.refused)
        else {
            return;
        };
        let earlier = match part.keys.get(key) {
            // The heading of a table, which has an empty key, is the first of its lines.
            _ if key.is_empty() => !part.text.is_empty(),
            // Two caches of one host may have one name.
            Some(stretch) if file == "slabinfo" => {
                *stretch < part.stretch || part.opening.as_deref() == Some(key)
            }
            found => found.is_some(),
        };
        if !earlier {
            return;
        }
        let is_older = !key.is_empty() && part.keys.get(key).is_some_and(|s| *s < part.stretch);
        let mut moved = Part::default();
        if is_older {
            moved.text = part.text.split_off(part.begins);
            let last = part.stretch;
            let keys = part.keys.extract_if(.., |_, stretch| *stretch == last);
            moved.keys = keys.map(|(key, _)| (key, 0)).collect();
            moved.opening = part.opening.take();
        }
        self.next_reading();
        self.reading.parts.insert(file, moved);
    }

    /// Adds a line, and what was pending before it, to `file`.
    fn push(&mut self, file: &'static str, line: &str, ended: bool) {
        let pending = std::mem::take(&mut self.pending);
        let part = self.reading.parts.entry(file).or_default();
        part.text.push_str(&pending);
        part.text.push_str(line);
        part.text.push_str(if ended { "\n" } else { "" });
        // A zone's first line after its name tells whether indentation was lost.
        let flat = ["pages free", "per-node stats"]
            .iter()
            .any(|s| line.starts_with(s));
        if file == "zoneinfo" {
            self.context.flat |= flat;
            self.context.zone.add(line);
        }
        self.adjacent = true;
    }

    /// Puts what is pending into the reading at hand.
    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if self.context.current == Some("pagetypeinfo") && !pending.trim().is_empty() {
            let part = self.reading.parts.entry("pagetypeinfo").or_default();
            part.text.push_str(&pending);
        }
    }

    /// The current file is over.
    fn leave(&mut self) {
        self.flush();
        self.context = Context::default();
        self.node = None;
        self.expected.clear();
        self.adjacent = false;
    }
}
