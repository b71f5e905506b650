//! What a screen can show, and the only text that is printed on one.
//!
//! A [`Text`] is what a view answers. It holds escape sequences in one place alone: where a [`Style`] begins and ends.
//! All other text that comes into it is escaped, wherever it is from, so that no name of an input can move a cursor or
//! set a title, whichever view forgets that it is one.
//!
//! Invariant: a [`Text`] holds no character that controls a screen but line breaks, tabs, and sequences of a [`Style`].

use std::fmt;
use std::ops::Deref;
use unfrag_linux::input_text::{escaped, escaped_lines};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub color: bool,
    /// Whether characters beyond ASCII may be used, such as box-drawing and braille.
    pub unicode: bool,
}

impl Default for Screen {
    /// Eighty columns, unicode, no colour.
    fn default() -> Self {
        Screen {
            width: 80,
            color: false,
            unicode: true,
        }
    }
}

impl Screen {
    /// Text that stands out, where there is colour.
    pub fn stressed(&self, text: &str) -> Text {
        let mut out = Text::new();
        out.push_styled(self.style(Style::Stressed), text);
        out
    }

    /// The style, where there is colour.
    pub fn style(&self, style: Style) -> Style {
        if self.color { style } else { Style::Plain }
    }
}

/// How text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As all other text.
    #[default]
    Plain,
    /// It stands out.
    Stressed,
    /// The word before an error.
    Error,
    /// In one of the terminal's own eight colours.
    Named(u8),
    /// In one of 256 colours.
    Ink(u8),
    /// In one of 256 colours, upon another.
    InkUpon(u8, u8),
}

impl Style {
    /// The escape sequence that begins it.
    fn sequence(self) -> String {
        match self {
            Style::Plain => String::new(),
            Style::Stressed => "\x1b[1m".into(),
            Style::Error => "\x1b[1;31m".into(),
            Style::Named(color) => format!("\x1b[3{}m", color % 8),
            Style::Ink(ink) => format!("\x1b[38;5;{ink}m"),
            Style::InkUpon(ink, ground) => format!("\x1b[38;5;{ink};48;5;{ground}m"),
        }
    }
}

/// Text for a screen. It has no `Display`: what shows it takes it whole, as another string would be escaped anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// No text.
    pub fn new() -> Text {
        Text::default()
    }

    /// Appends text, escaped but for line breaks and tabs.
    pub fn push_str(&mut self, text: &str) {
        self.0 += &escaped_lines(text);
    }

    /// Appends a character as [`push_str`](Text::push_str) does.
    pub fn push(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }

    /// Appends what is safe already, as it is.
    pub fn append(&mut self, other: &Text) {
        self.0 += &other.0;
    }

    /// Appends text in a style.
    pub fn push_styled(&mut self, style: Style, text: &str) {
        self.begin(style);
        self.push_str(text);
        self.end(style);
    }

    /// What follows has this style until [`end`](Text::end).
    pub fn begin(&mut self, style: Style) {
        self.0 += &style.sequence();
    }

    /// Ends a style.
    pub fn end(&mut self, style: Style) {
        if style != Style::Plain {
            self.0 += "\x1b[0m";
        }
    }

    /// Appends a line that stands out, where there is colour.
    pub fn push_head(&mut self, screen: &Screen, text: &str) {
        self.append(&screen.stressed(text));
        self.push('\n');
    }

    /// Takes blanks away from the end.
    pub fn drop_blanks(&mut self) {
        self.0.truncate(self.0.trim_end().len());
    }

    /// What follows is drawn on a screen that is empty.
    pub fn clear_screen(&mut self) {
        self.0 += "\x1b[2J\x1b[H";
    }

    /// The bytes that are printed.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

impl Extend<char> for Text {
    fn extend<I: IntoIterator<Item = char>>(&mut self, all: I) {
        all.into_iter().for_each(|c| self.push(c));
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(escaped_lines(text).into_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::from(text.as_str())
    }
}

/// Text of an input on one line, so that a name cannot begin a line of its own.
pub fn printable(text: &str) -> String {
    escaped(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use unfrag_linux::input_text::controls;

    const HOSTILE: &str = "s\x1b[2J\u{9b}1m\u{202e}\u{7f}\u{2028}\r0001";

    #[test]
    fn only_a_style_brings_a_sequence() {
        let screen = Screen {
            color: true,
            ..Screen::default()
        };
        let mut text = Text::from(HOSTILE);
        let _ = write!(text, "{HOSTILE}");
        text.push_str(HOSTILE);
        text.push('\x1b');
        text.extend(HOSTILE.chars());
        assert!(!text.chars().any(controls), "{:?}", &*text);
        for style in [
            Style::Stressed,
            Style::Error,
            Style::Named(4),
            Style::Ink(38),
            Style::InkUpon(38, 5),
        ] {
            let mut text = Text::new();
            text.push_styled(screen.style(style), HOSTILE);
            let inner = text.strip_prefix(&*style.sequence()).expect("it begins");
            let inner = inner.strip_suffix("\x1b[0m").expect("it ends");
            assert!(!inner.chars().any(controls), "{inner:?}");
            assert_eq!(Screen::default().style(style), Style::Plain);
        }
    }

    #[test]
    fn a_sequence_of_an_input_is_not_taken_for_a_style() {
        let stressed = Screen::default().stressed("\x1b[1mbold\x1b[0m");
        assert_eq!(&*stressed, "\\u{1b}[1mbold\\u{1b}[0m");
    }

    #[test]
    fn line_breaks_of_a_name_do_not_begin_a_line() {
        assert_eq!(printable("a\nerror: b"), "a\\u{a}error: b");
        assert_eq!(&*Text::from("a\nb\tc"), "a\nb\tc");
    }
}
