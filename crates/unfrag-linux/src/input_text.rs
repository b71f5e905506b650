//! Text that an input holds, made safe to be shown.
//!
//! A name in a file may hold sequences that move a terminal's cursor, set its title or turn the order of what is read
//! around. What shows such text shows it through one of the functions here: each character that controls a screen is
//! written as its number, as `\u{1b}`, and each byte that is no UTF-8 as `\xff`.
//!
//! Invariant: what the functions answer holds no character that [`controls`] a screen, but for line breaks and tabs
//! where a function's name says lines.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

/// Whether a character controls a screen instead of being shown on it: the control characters of ASCII and those from
/// U+0080 to U+009F, separators of lines and paragraphs, and marks that change the direction of writing.
pub fn controls(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Text on one line, with each character that [`controls`] a screen as its number.
pub fn escaped(text: &str) -> Cow<'_, str> {
    written(text, controls, |c, out| {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    })
}

/// [`escaped`] text that keeps its line breaks and tabs.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    let is_layout = |c: char| matches!(c, '\n' | '\t');
    written(
        text,
        |c| controls(c) && !is_layout(c),
        |c, out| {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        },
    )
}

/// JSON with each character that [`controls`] a screen as an escape of JSON, so that every string keeps its value. Line
/// breaks between values stay.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    written(
        json,
        |c| controls(c) && c != '\n',
        |c, out| {
            // All that control a screen are below U+10000, so each is one unit of UTF-16.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        },
    )
}

/// A path, [`escaped`].
pub fn escaped_path(path: &Path) -> String {
    escaped_bytes(path.as_os_str().as_encoded_bytes())
}

/// Bytes that should be text, [`escaped`]; those that are no UTF-8 as `\xff`.
pub fn escaped_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out += &escaped(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// `text`, in which `write` writes those characters that `is_written` names.
fn written(
    text: &str,
    is_written: impl Fn(char) -> bool,
    write: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let Some(first) = text.find(&is_written) else {
        return Cow::Borrowed(text);
    };
    let mut out = text[..first].to_owned();
    for c in text[first..].chars() {
        match is_written(c) {
            true => write(c, &mut out),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    /// Every character that a screen may obey, by its number.
    fn all() -> String {
        let ranges = [
            0x00..=0x1f,
            0x7f..=0x9f,
            0x61c..=0x61c,
            0x200e..=0x200f,
            0x2028..=0x202e,
            0x2066..=0x2069,
        ];
        ranges
            .into_iter()
            .flatten()
            .filter_map(char::from_u32)
            .collect()
    }

    #[test]
    fn no_character_that_controls_a_screen_is_left() {
        let left = |text: &str| text.chars().filter(|&c| controls(c)).collect::<String>();
        assert_eq!(left(&escaped(&all())), "");
        assert_eq!(left(&escaped_path(Path::new(&all()))), "");
        assert_eq!(left(&escaped_lines(&all())), "\t\n");
        let json = serde_json::to_string(&all()).unwrap();
        let shown = escaped_json(&json);
        assert_eq!(left(&shown), "");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), all());
    }

    #[test]
    fn a_control_character_is_shown_as_its_number() {
        assert_eq!(escaped("s\x1b[2J\n0001"), "s\\u{1b}[2J\\u{a}0001");
        assert_eq!(escaped_lines("a\u{202e}b\nc"), "a\\u{202e}b\nc");
        assert_eq!(escaped_json("\"\u{9b}\u{202e}\""), "\"\\u009b\\u202e\"");
        let path = Path::new(OsStr::from_bytes(b"a\xff\x1bb"));
        assert_eq!(escaped_path(path), "a\\xff\\u{1b}b");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in ["", "plain", "größe 日本語 \\x1b ◂ ⠒"] {
            assert_eq!(escaped(text), text);
            assert!(matches!(escaped_lines(text), Cow::Borrowed(_)));
        }
    }
}
