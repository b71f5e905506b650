//! From lines to messages of the kernel: what stands before and behind each line is taken off. `spec: K.3`
//!
//! Invariant: a line gives its messages in order; what stood before them says when and where they were printed, and is
//! never part of their text.

use super::decode::Clean;
use super::envelope::{self, Stripped};
use super::shape::{self, Quoting, Seen, Shape};
use super::statement::{Kind, kind_of};
use std::borrow::Cow;

/// A message.
pub struct Message<'a> {
    /// What stood around it, and its text.
    pub line: Stripped<'a>,
    /// Whether it is a further line of the message before it, so that it has no frame of its own.
    pub is_further: bool,
    /// Blanks that its line begins with.
    pub indent: usize,
    /// Host and printer, as far as they are named; empty if they are not.
    pub source: &'a str,
}

/// What the lines of a part of a log have around them.
#[derive(Debug, Default)]
pub struct Frame {
    quoting: Quoting,
    shapes: Vec<Shape>,
    /// What stands before the lines, too, that wrapped ones go on with.
    common: Option<Shape>,
    /// Whether the newest line is first.
    pub is_reversed: bool,
}

impl Frame {
    /// What `lines` have in common.
    pub fn of<'a>(lines: impl Iterator<Item = &'a Clean>) -> Frame {
        let lines: Vec<&str> = lines.map(|l| l.text.as_str()).collect();
        let quoting = Quoting::of(&lines);
        let lines: Vec<Seen> = lines.iter().map(|l| Seen::of(quoting.off(l))).collect();
        let shapes = shape::shapes(&lines);
        // Where most lines are of a known form, none needs it.
        let framed = lines.iter().filter(|l| l.stripped.is_framed).count();
        let needs_common = !shapes.is_empty() || framed * 2 < lines.len();
        Frame {
            common: needs_common.then(|| shape::common(&lines)).flatten(),
            shapes,
            is_reversed: shape::is_reversed(&lines),
            quoting,
        }
    }

    /// A line of none of the shapes.
    fn stripped<'a>(&self, text: &'a str) -> Stripped<'a> {
        let known = envelope::strip(text);
        let is_known = known.is_framed || kind_of(known.text).is_some();
        let common = self.common.as_ref().filter(|_| !is_known);
        match common.and_then(|c| c.fit(text)) {
            Some(fitted) => envelope::strip(fitted.text),
            None => known,
        }
    }

    /// Gives each message of a line to `sink`.
    pub fn messages(&self, clean: &Clean, sink: &mut dyn FnMut(Message)) {
        let text = self.quoting.off(&clean.text);
        let fitted = self.shapes.iter().find_map(|s| s.fit(text));
        let mut words = String::new();
        let mut line = match fitted {
            Some(fitted) => {
                words = fitted.words;
                Stripped {
                    text: fitted.text,
                    ..envelope::stamp_in(fitted.prefix)
                }
            }
            None => self.stripped(text),
        };
        line.text = envelope::unquoted(line.text);
        line.is_framed |= clean.is_record;
        if line.date.is_empty() && line.uptime.is_empty() {
            match clean.date.parse::<f64>() {
                Ok(_) => line.uptime = &clean.date,
                Err(_) => line.date = &clean.date,
            }
        }
        for name in [clean.host.as_str(), line.host, line.printer] {
            if !name.is_empty() {
                words.push_str(name);
                words.push(' ');
            }
        }
        let place = Place {
            indent: text.len() - text.trim_start_matches(' ').len(),
            source: &words,
        };
        if !text.contains("#0") {
            return pieces(line, &place, sink);
        }
        // syslog daemons escape what would break a line.
        let text = line.text.replace("#011", " ").replace("#015", "");
        let mut parts = text.split("#012");
        let first = parts.next().unwrap_or("");
        pieces(
            Stripped {
                text: first,
                ..line
            },
            &place,
            sink,
        );
        for text in parts {
            sink(place.message(Stripped { text, ..line }, false));
        }
    }
}

/// Where messages of one line stand.
struct Place<'a> {
    indent: usize,
    source: &'a str,
}

impl<'a> Place<'a> {
    fn message(&self, line: Stripped<'a>, is_further: bool) -> Message<'a> {
        Message {
            line,
            is_further,
            indent: self.indent,
            source: self.source,
        }
    }
}

/// Gives the messages of a line, which may hold the beginning of another CPU's line.
fn pieces(whole: Stripped, place: &Place, sink: &mut dyn FnMut(Message)) {
    let single = single_blanks(whole.text);
    let mut rest = &*single;
    let mut line = Stripped {
        text: rest,
        ..whole
    };
    let mut is_further = false;
    while let Some(at) = time_within(rest) {
        line.text = &rest[..at];
        sink(place.message(line, is_further));
        line = envelope::strip(&rest[at..]);
        rest = line.text;
        is_further = false;
    }
    line.text = rest;
    while let Some(at) = statement_within(line.text) {
        let (text, next) = line.text.split_at(at);
        sink(place.message(Stripped { text, ..line }, is_further));
        line.text = next;
        is_further = true;
    }
    sink(place.message(line, is_further));
}

/// The text with one blank where it has several; those that it begins with are one too.
fn single_blanks(text: &str) -> Cow<'_, str> {
    if !text.contains("  ") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Where a kernel's time stands within a line.
fn time_within(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'[', bytes)
        .filter(|&at| at > 0)
        .find(|&at| {
            let inner = bytes[at + 1..].iter().take(16).take_while(|b| **b != b']');
            let inner: Vec<u8> = inner.copied().collect();
            let end = at + 1 + inner.len();
            let dot = inner.iter().position(|b| *b == b'.');
            bytes.get(end) == Some(&b']')
                && dot.is_some_and(|d| d > 0 && inner.len() - d == 7)
                && inner
                    .iter()
                    .all(|b| b.is_ascii_digit() || b". ".contains(b))
        })
}

/// Where another statement of a memory report begins within a line, in text that was wrapped as a paragraph.
fn statement_within(text: &str) -> Option<usize> {
    if !text.contains("kB") {
        return None;
    }
    let begins = |at: usize| {
        let is_statement = |k| {
            matches!(
                k,
                Kind::Zone
                    | Kind::Node
                    | Kind::Blocks
                    | Kind::Reserve
                    | Kind::Table
                    | Kind::MemInfo
            )
        };
        kind_of(&text[at..]).is_some_and(is_statement)
    };
    ["Node ", "lowmem_reserve[]", "Mem-Info:"]
        .iter()
        .flat_map(|word| text.match_indices(word))
        .map(|(at, _)| at)
        .filter(|&at| at > 0 && text.as_bytes()[at - 1] == b' ')
        .filter(|&at| !text[..at].trim().is_empty() && begins(at))
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(line: &str) -> Vec<String> {
        let clean = Clean {
            text: line.into(),
            ..Clean::default()
        };
        let mut out = vec![];
        Frame::default().messages(&clean, &mut |m| out.push(m.line.text.to_owned()));
        out
    }

    #[test]
    fn another_cpus_line_within_a_line_is_apart() {
        let line =
            "[   12.154241] Node 0 DMA free:1[   12.154244] Node 0 DMA free:15876kB min:12kB";
        assert_eq!(
            messages(line),
            ["Node 0 DMA free:1", "Node 0 DMA free:15876kB min:12kB"]
        );
        let line = "free_cma:0kB lowmem_reserve[]: 0 1827 Node 0 DMA32 free:1936kB min:2100kB";
        assert_eq!(
            messages(line),
            [
                "free_cma:0kB ",
                "lowmem_reserve[]: 0 1827 ",
                "Node 0 DMA32 free:1936kB min:2100kB"
            ]
        );
        assert_eq!(messages("k: a#012 b#012 c"), ["k: a", " b", " c"]);
    }
}
