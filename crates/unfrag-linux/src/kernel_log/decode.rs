//! From the bytes of a line to messages of the kernel: journal JSON, mail, HTML, escapes. `spec: K.3`
//!
//! Invariant: a line gives its messages in order; nothing is kept of it but a soft line break of quoted mail.

use super::envelope::{self, Stripped};
use crate::snapshots::dates::date;
use serde_json::Value;
use std::borrow::Cow;

/// A message.
pub struct Message<'a> {
    /// What stood around it, and its text.
    pub line: Stripped<'a>,
    /// Whether it is a further line of the message before it, so that it has no frame of its own.
    pub is_further: bool,
}

/// Decodes lines.
#[derive(Default)]
pub struct Decoder {
    /// A line that a mailer goes on with on the next one.
    soft: String,
    /// Whether quoted-printable was seen.
    is_quoted_printable: bool,
    /// Whether the kept line may as well end a row of free blocks, whose sum stands on the next one.
    may_be_sum: bool,
}

/// Bytes of a line that a soft break can be put behind; more is no mail.
const MOST_SOFT: usize = 16 << 10;

impl Decoder {
    /// Whether a line is kept until the next one is known.
    pub fn is_holding(&self) -> bool {
        !self.soft.is_empty()
    }

    /// Gives each message of a line to `sink`.
    pub fn decode(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Message)) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end();
        let plain = plain(text);
        let Some(plain) = self.unwrap_mail(plain) else {
            return;
        };
        let trimmed = plain.trim_start_matches(['>', ' ']);
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            return;
        }
        if let Some((message, date)) = journal(trimmed) {
            for part in message.lines() {
                let mut line = envelope::strip(part);
                line.is_framed = true;
                if line.date.is_empty() {
                    line.date = &date;
                }
                sink(Message {
                    line,
                    is_further: false,
                });
            }
            return;
        }
        if !plain.contains("#0") {
            return pieces(&plain, sink);
        }
        // syslog daemons escape what would break a line.
        let text = plain.replace("#011", "\t").replace("#015", "");
        let mut parts = text.split("#012");
        let first = parts.next().unwrap_or("");
        pieces(first, sink);
        for part in parts {
            let line = Stripped {
                text: part,
                ..envelope::strip(first)
            };
            sink(Message {
                line,
                is_further: false,
            });
        }
    }

    /// Undoes quoted-printable; `None` while the line goes on.
    fn unwrap_mail<'a>(&mut self, text: Cow<'a, str>) -> Option<Cow<'a, str>> {
        self.is_quoted_printable |=
            text.contains("=3D") || text.ends_with("=20") || text.contains("quoted-printable");
        if self.may_be_sum {
            self.may_be_sum = false;
            let is_sum = text
                .trim_start_matches(['>', ' '])
                .starts_with(|c: char| c.is_ascii_digit())
                && text.trim_end().ends_with("kB")
                && !text.contains('*');
            if is_sum {
                return Some(Cow::Owned(
                    std::mem::take(&mut self.soft) + "= " + text.trim_start_matches(['>', ' ']),
                ));
            }
        }
        // Mailers break lines at 76 characters.
        let is_soft = text.ends_with('=')
            && (self.is_quoted_printable || (70..=76).contains(&text.len()))
            && self.soft.len() < MOST_SOFT;
        if is_soft {
            self.soft.push_str(&text[..text.len() - 1]);
            self.may_be_sum = !self.is_quoted_printable && text.ends_with(" =");
            return None;
        }
        let text = match self.soft.is_empty() {
            true => text,
            false => Cow::Owned(std::mem::take(&mut self.soft) + &text),
        };
        Some(match self.is_quoted_printable && text.contains('=') {
            true => Cow::Owned(quoted_printable(&text)),
            false => text,
        })
    }
}

/// Gives the messages of a line, which may hold the beginning of another CPU's line.
fn pieces(text: &str, sink: &mut dyn FnMut(Message)) {
    let whole = envelope::strip(text);
    let single = single_blanks(whole.text);
    let mut rest = &*single;
    let mut line = Stripped {
        text: rest,
        ..whole
    };
    let mut is_further = false;
    while let Some(at) = time_within(rest) {
        line.text = &rest[..at];
        sink(Message { line, is_further });
        line = envelope::strip(&rest[at..]);
        rest = line.text;
        is_further = false;
    }
    line.text = rest;
    while let Some(at) = statement_within(line.text) {
        let (text, next) = line.text.split_at(at);
        sink(Message {
            line: Stripped { text, ..line },
            is_further,
        });
        line.text = next;
        is_further = true;
    }
    sink(Message { line, is_further });
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
    use super::statement::{Kind, kind_of};
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

/// Without escapes of terminals and HTML.
fn plain(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    if text.contains('\u{1b}') {
        let mut clean = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '\u{1b}' {
                clean.push(c);
                continue;
            }
            // `ESC [ ... letter`.
            if chars.next() == Some('[') {
                chars.by_ref().find(char::is_ascii_alphabetic);
            }
        }
        out = Cow::Owned(clean);
    }
    if out.contains('&') {
        const ENTITIES: [(&str, &str); 9] = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
            ("&#x27;", "'"),
            ("&#124;", "|"),
            ("&nbsp;", " "),
            ("&#160;", " "),
            ("&amp;", "&"),
        ];
        let decoded = ENTITIES
            .iter()
            .fold(out.into_owned(), |t, (from, to)| t.replace(from, to));
        out = Cow::Owned(decoded);
    }
    if out.contains('\u{a0}') || out.contains('\t') {
        out = Cow::Owned(out.replace(['\u{a0}', '\t'], " "));
    }
    const TAGS: [&str; 6] = ["<pre>", "</pre>", "<code>", "</code>", "<br>", "<br/>"];
    if out.contains('<') && TAGS.iter().any(|t| out.contains(t)) {
        out = Cow::Owned(
            TAGS.iter()
                .fold(out.into_owned(), |text, tag| text.replace(tag, "")),
        );
    }
    out
}

fn quoted_printable(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let hex = after.get(..2).and_then(|h| std::str::from_utf8(h).ok());
        let is_upper = |h: &&str| {
            h.bytes()
                .all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b))
        };
        match hex
            .filter(|h| *first == b'=' && is_upper(h))
            .and_then(|h| u8::from_str_radix(h, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The message of a journal's JSON, and its time of day in UTC.
fn journal(text: &str) -> Option<(String, String)> {
    if !text.contains("\"MESSAGE\"") {
        return None;
    }
    if let Some(value) = text.strip_prefix("\"MESSAGE\"") {
        // A line of `-o json-pretty`.
        let value = value
            .trim_start()
            .strip_prefix(':')?
            .trim()
            .trim_end_matches(',');
        return Some((message(&serde_json::from_str(value).ok()?)?, String::new()));
    }
    let record: Value = serde_json::from_str(text).ok()?;
    let time = record.get("__REALTIME_TIMESTAMP").and_then(Value::as_str);
    let seconds = time.and_then(|t| Some(t.parse::<u64>().ok()? / 1_000_000));
    let date = seconds.map_or(String::new(), |s| {
        format!(
            "{}T{:02}:{:02}:{:02}",
            date(s),
            s / 3600 % 24,
            s / 60 % 60,
            s % 60
        )
    });
    Some((message(record.get("MESSAGE")?)?, date))
}

/// A message, which the journal writes as numbers where it is not text.
fn message(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(bytes) => {
            let byte = |b: &Value| b.as_u64().and_then(|b| u8::try_from(b).ok());
            let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
            Some(String::from_utf8_lossy(&bytes?).into_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(lines: &[&str]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut out = vec![];
        for line in lines {
            decoder.decode(line.as_bytes(), &mut |m| out.push(m.line.text.to_owned()));
        }
        out
    }

    /// `spec: K.3`
    #[test]
    fn json_mail_and_html_give_the_message() {
        let json =
            r#"{"__REALTIME_TIMESTAMP": "1707462579000000", "MESSAGE": "Mem-Info:\n free:3"}"#;
        assert_eq!(messages(&[json]), ["Mem-Info:", " free:3"]);
        assert_eq!(messages(&[r#"{"MESSAGE":[77,101,109]}"#]), ["Mem"]);
        assert_eq!(messages(&["&lt;4&gt;[ 1.500000] a -&gt; b"]), ["a -> b"]);
        assert_eq!(
            messages(&["gfp_mask=3D0xcc0, order=", "=3D0"]),
            ["gfp_mask=0xcc0, order=0"]
        );
        assert_eq!(messages(&["k: a#012 b#012 c"]), ["k: a", " b", " c"]);
        assert_eq!(messages(&["\u{1b}[33m[ 1.500000]\u{1b}[0m x"]), ["x"]);
    }

    #[test]
    fn another_cpus_line_within_a_line_is_apart() {
        let line =
            "[   12.154241] Node 0 DMA free:1[   12.154244] Node 0 DMA free:15876kB min:12kB";
        assert_eq!(
            messages(&[line]),
            ["Node 0 DMA free:1", "Node 0 DMA free:15876kB min:12kB"]
        );
        let line = "free_cma:0kB lowmem_reserve[]: 0 1827 Node 0 DMA32 free:1936kB min:2100kB";
        assert_eq!(
            messages(&[line]),
            [
                "free_cma:0kB ",
                "lowmem_reserve[]: 0 1827 ",
                "Node 0 DMA32 free:1936kB min:2100kB"
            ]
        );
    }
}
