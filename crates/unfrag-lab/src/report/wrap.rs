//! Paragraphs that are as wide as a screen.

use std::fmt;

/// Where the lines of a paragraph begin.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// The first at the margin, the others after this.
    Hanging(&'a str),
    /// Each of them after this.
    Each(&'a str),
}

/// Appends a paragraph, broken between words. A word that is wider than the screen has a line of its own.
pub fn wrapped(out: &mut impl fmt::Write, place: Place, width: usize, text: &str) {
    let (first, next) = match place {
        Place::Hanging(next) => ("", next),
        Place::Each(next) => (next, next),
    };
    let indent = text.len() - text.trim_start_matches(' ').len();
    let mut line = format!("{first}{}", &text[..indent]);
    let mut is_empty = true;
    for word in text[indent..].split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(out, "{line}");
            line = next.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_begin_where_they_should() {
        let of = |place, text| {
            let mut out = String::new();
            wrapped(&mut out, place, 10, text);
            out
        };
        assert_eq!(
            of(Place::Hanging("  "), "one two three four"),
            "one two\n  three\n  four\n"
        );
        assert_eq!(
            of(Place::Each("# "), "one two three"),
            "# one two\n# three\n"
        );
        assert_eq!(
            of(Place::Hanging("  "), "a bbbbbbbbbbbbbbbbb c"),
            "a\n  bbbbbbbbbbbbbbbbb\n  c\n"
        );
        assert_eq!(of(Place::Hanging("  "), ""), "\n");
    }
}
