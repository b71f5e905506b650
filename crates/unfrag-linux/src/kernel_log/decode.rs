//! From the bytes of a line to lines of text: mail, HTML, escapes, JSON, fields of the journal. `spec: K.3`
//!
//! Invariant: lines come in order; nothing is kept of one but a soft line break of quoted mail, and what fields before a
//! message say of it.

use super::json::{self, Objects, Record};
use std::borrow::Cow;

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clean {
    /// The number of the line of the log that it comes from.
    pub number: u64,
    /// Its text, with what stands before the message.
    pub text: String,
    /// When it was logged, if fields beside it say so.
    pub date: String,
    /// The host, if fields beside it say so.
    pub host: String,
    /// Whether it was a message by itself.
    pub is_record: bool,
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
    objects: Objects,
    /// What the journal's fields before a message said.
    fields: Record,
    /// Bytes of a message's length that the next line begins with.
    length_bytes: usize,
}

/// Bytes of a line that a soft break can be put behind; more is no mail.
const MOST_SOFT: usize = 16 << 10;
/// Bytes of the length that the journal's export writes before a message of several lines.
const LENGTH: usize = 8;

impl Decoder {
    /// Whether a line is kept until the next one is known.
    pub fn is_holding(&self) -> bool {
        !self.soft.is_empty()
    }

    /// Gives the text of a line to `sink`: none, one, or several lines.
    pub fn decode(&mut self, number: u64, bytes: &[u8], sink: &mut dyn FnMut(Clean)) {
        let bytes = match std::mem::take(&mut self.length_bytes) {
            0 => bytes,
            // A byte of the length may be a line break.
            most if bytes.len() < most => {
                self.length_bytes = most - bytes.len() - 1;
                return;
            }
            most => &bytes[most..],
        };
        if let Some(text) = self.as_it_is(bytes) {
            sink(Clean {
                number,
                text: text.to_owned(),
                ..Clean::default()
            });
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        let plain = plain(text.trim_end());
        let Some(plain) = self.unwrap_mail(plain) else {
            return;
        };
        let trimmed = plain.trim_start_matches(['>', ' ']);
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            return;
        }
        if let Some(field) = self.field(trimmed) {
            if let Some(text) = field {
                let record = Record {
                    text,
                    ..self.fields.clone()
                };
                give(number, record, sink);
            }
            return;
        }
        if trimmed.contains('"') || trimmed.contains('}') {
            match self.objects.line(trimmed) {
                json::Line::Other => {}
                json::Line::Nothing => return,
                json::Line::Records(records) => {
                    for record in records {
                        give(number, record, sink);
                    }
                    return;
                }
            }
        }
        sink(Clean {
            number,
            text: plain.into_owned(),
            ..Clean::default()
        });
    }

    /// The text of a line in which there is nothing to decode, as of most: it is as it is, but for blanks at its end.
    fn as_it_is<'a>(&self, bytes: &'a [u8]) -> Option<&'a str> {
        let bytes = bytes.trim_ascii_end();
        let seen = bytes
            .iter()
            .fold(0, |seen, &b| seen | LOOKS[usize::from(b)]);
        if seen & DECODED != 0 || self.may_be_sum || !self.soft.is_empty() {
            return None;
        }
        let has = |words: &[u8]| memchr::memmem::find(bytes, words).is_some();
        if seen & QUOTED != 0 && has(QUOTED_PRINTABLE.as_bytes()) {
            return None;
        }
        let is_mails = || {
            self.is_quoted_printable
                || bytes.ends_with(b"=")
                || bytes.ends_with(b"=20")
                || has(b"=3D")
        };
        let text = std::str::from_utf8(bytes).ok()?;
        let is_field = || field_name(text.trim_start_matches(['>', ' '])).is_some();
        match seen & EQUALS != 0 {
            true if is_mails() || is_field() => None,
            false if text.ends_with("MESSAGE") => None,
            _ => Some(text),
        }
    }

    /// A field of the journal, as `-o export` and `-o verbose` write them: the message, or `None` for another field.
    fn field(&mut self, text: &str) -> Option<Option<String>> {
        let name = field_name(text)?;
        let rest = &text[name.len()..];
        if text == "MESSAGE" {
            self.length_bytes = LENGTH;
            return Some(None);
        }
        let value = rest.strip_prefix('=')?;
        match name {
            "MESSAGE" => return Some(Some(value.to_owned())),
            "__CURSOR" => self.fields = Record::default(),
            _ => {}
        }
        // What a kernel prints has no such name but those of its own.
        if !name.starts_with('_')
            && !name.starts_with("SYSLOG")
            && !matches!(name, "PRIORITY" | "MESSAGE_ID")
        {
            return None;
        }
        json::besides(name, &serde_json::Value::from(value), &mut self.fields);
        Some(None)
    }

    /// Undoes quoted-printable; `None` while the line goes on.
    fn unwrap_mail<'a>(&mut self, text: Cow<'a, str>) -> Option<Cow<'a, str>> {
        self.is_quoted_printable |=
            text.contains("=3D") || text.ends_with("=20") || text.contains(QUOTED_PRINTABLE);
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

/// What a mail says of itself if its lines are encoded.
const QUOTED_PRINTABLE: &str = "quoted-printable";

/// A byte that is decoded, or tells how others are.
const DECODED: u8 = 1;
/// A sign that decides in some places.
const EQUALS: u8 = 2;
/// The first letter of [`QUOTED_PRINTABLE`].
const QUOTED: u8 = 4;

/// What each byte of a line means to the decoder; 0 where it stands for itself.
const LOOKS: [u8; 256] = {
    let mut looks = [DECODED; 256];
    let mut b = 0x20;
    while b < 0x7f {
        looks[b] = match b as u8 {
            b'&' | b'<' | b'^' | b'"' | b'}' | b'`' | b'~' => DECODED,
            b'=' => EQUALS,
            b'q' => QUOTED,
            _ => 0,
        };
        b += 1;
    }
    looks
};

/// The name that a field of the journal would have: capital letters, at least three.
fn field_name(text: &str) -> Option<&str> {
    let name = text
        .bytes()
        .take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
        .count();
    let begins = |b: &u8| b.is_ascii_uppercase() || *b == b'_';
    (name >= 3 && text.as_bytes().first().is_some_and(begins)).then(|| &text[..name])
}

/// Gives the lines of a record.
fn give(number: u64, record: Record, sink: &mut dyn FnMut(Clean)) {
    for line in record.text.lines() {
        sink(Clean {
            number,
            text: plain(line.trim_end()).into_owned(),
            date: record.date.clone(),
            host: record.host.clone(),
            is_record: true,
        });
    }
}

/// Without what terminals, web pages and editors put into text: escapes, tags, signs without a width.
fn plain(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    if text.contains(['\u{1b}', '\u{9b}']) || text.contains("^[[") {
        out = Cow::Owned(without_escapes(text));
    }
    if out.ends_with("^M") {
        let end = out.len() - 2;
        out = Cow::Owned(out[..end].to_owned());
    }
    if out.contains('&') {
        out = Cow::Owned(without_entities(&out));
    }
    if !out.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        let seen = |c: char| match c {
            '\t' => Some(' '),
            c if c.is_control() || has_no_width(c) => None,
            c if c.is_whitespace() => Some(' '),
            c => Some(c),
        };
        out = Cow::Owned(out.chars().filter_map(seen).collect());
    }
    const TAGS: [&str; 12] = [
        "<pre>", "</pre>", "<code>", "</code>", "<br>", "<br/>", "<br />", "<p>", "</p>", "<tt>",
        "</tt>", "</span>",
    ];
    if out.contains('<') && TAGS.iter().any(|t| out.contains(t)) {
        out = Cow::Owned(
            TAGS.iter()
                .fold(out.into_owned(), |text, tag| text.replace(tag, "")),
        );
    }
    out
}

/// Joiners, marks of direction and byte order, soft hyphens.
fn has_no_width(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

/// Without `ESC [ ... letter`, as it is or as `cat -v` shows it.
fn without_escapes(text: &str) -> String {
    let text = text.replace("^[[", "\u{1b}[").replace('\u{9b}', "\u{1b}[");
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            clean.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => {
                chars.by_ref().find(char::is_ascii_alphabetic);
            }
            // A title ends with a bell.
            Some(']') => {
                chars.by_ref().find(|c| *c == '\u{7}');
            }
            _ => {}
        }
    }
    clean
}

/// With the characters that HTML's entities stand for.
fn without_entities(text: &str) -> String {
    const NAMED: [(&str, char); 7] = [
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", ' '),
        ("vert", '|'),
        ("amp", '&'),
    ];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let entity = behind
            .as_bytes()
            .iter()
            .take(10)
            .position(|b| *b == b';')
            .map(|end| &behind[..end]);
        let char = entity.and_then(|e| match e.strip_prefix('#') {
            Some(n) => match n.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok().and_then(char::from_u32),
                None => n.parse().ok().and_then(char::from_u32),
            },
            None => NAMED.iter().find(|(name, _)| *name == e).map(|n| n.1),
        });
        match (char, entity) {
            (Some(c), Some(e)) => {
                out.push(if c == '\u{a0}' { ' ' } else { c });
                rest = &behind[e.len() + 1..];
            }
            _ => {
                out.push('&');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[&str]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut out = vec![];
        for line in lines {
            decoder.decode(1, line.as_bytes(), &mut |c| out.push(c.text));
        }
        out
    }

    /// `spec: K.3`
    #[test]
    fn json_mail_and_html_give_the_text() {
        let json =
            r#"{"__REALTIME_TIMESTAMP": "1707462579000000", "MESSAGE": "Mem-Info:\n free:3"}"#;
        assert_eq!(texts(&[json]), ["Mem-Info:", " free:3"]);
        assert_eq!(texts(&[r#"{"MESSAGE":[77,101,109]}"#]), ["Mem"]);
        assert_eq!(
            texts(&["&lt;4&gt;[ 1.500000] a -&gt; b &#38;&#x26; &unknown; &"]),
            ["<4>[ 1.500000] a -> b && &unknown; &"]
        );
        assert_eq!(
            texts(&["gfp_mask=3D0xcc0, order=", "=3D0"]),
            ["gfp_mask=0xcc0, order=0"]
        );
        assert_eq!(
            texts(&["\u{1b}[33m[ 1.500000]\u{1b}[0m x"]),
            ["[ 1.500000] x"]
        );
        assert_eq!(texts(&["^[[33m[ 1.500000]^[[0m x^M"]), ["[ 1.500000] x"]);
    }

    /// Lines that pass as they are, and those that do not, each behind each other.
    #[test]
    fn a_line_without_signs_passes_as_it_is() {
        for line in [
            "",
            "usb 1-1: new",
            "  a > b | c  \r",
            "MESSAGES of a b",
            "irq: a=3 b",
            "AB=c",
        ] {
            let text = line.trim_end();
            let alone = |before: &[&str]| {
                let mut all = before.to_vec();
                all.push(line);
                texts(&all)
            };
            assert_eq!(alone(&[]), [text]);
            let before = "x".repeat(71) + "=";
            assert_eq!(alone(&[&before]), ["x".repeat(71) + text]);
            let mails = alone(&["Content-Transfer-Encoding: quoted-printable"]);
            assert_eq!(mails[1], text);
        }
        assert_eq!(texts(&["a=3Db", "c=2Fd=zz"]), ["a=b", "c/d=zz"]);
        assert_eq!(texts(&["__CURSOR=s", "MESSAGE=a b"]), ["a b"]);
        assert!(texts(&["MESSAGE"]).is_empty());
        assert!(texts(&["> MESSAGE"]).is_empty());
    }

    #[test]
    fn signs_that_are_not_seen_are_not_there() {
        assert_eq!(
            texts(&["\u{feff}a\u{200b}b\u{0}c\u{2009}d\te\u{a0}f\u{8}"]),
            ["abc d e f"]
        );
    }

    #[test]
    fn fields_of_the_journal_give_the_message() {
        let mut decoder = Decoder::default();
        let mut out = vec![];
        for line in [
            &b"__CURSOR=s=1"[..],
            b"_HOSTNAME=web1",
            b"PRIORITY=4",
            b"MESSAGE=Mem-Info:",
            b"",
            b"MESSAGE",
            b"\x05\0\0\0\0\0\0\0a b",
            b" c d",
            b"MESSAGE",
            b"",
            b"\0\0\0\0\0\0\0ten bytes",
        ] {
            decoder.decode(1, line, &mut |c| out.push((c.text, c.host)));
        }
        let texts: Vec<&str> = out.iter().map(|o| o.0.as_str()).collect();
        assert_eq!(texts, ["Mem-Info:", "", "a b", " c d", "ten bytes"]);
        assert_eq!(out[0].1, "web1");
    }
}
