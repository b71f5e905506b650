//! Lines of a text that were not understood, and those that were put together again.
//!
//! Both are facts of the recording, so they stay with it in a file. A text without such lines has none of
//! these facts.
//!
//! Invariant: [`NotUnderstood::of`] reads what `Tally::facts` writes, and what files have that know the
//! number alone.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::recording::Meta;

/// The fact with the number of lines.
const LINES: &str = "lines not understood";
/// The fact with the number of all lines but blank ones and comments.
const OF: &str = "lines read";
/// The fact with the first of them, one a line.
const FIRST: &str = "first lines not understood";
/// The fact with the number of lines that go on the line before.
const JOINED: &str = "lines joined to the one before";

/// How many of them are kept.
const KEPT: usize = 5;
/// Characters of a line that are shown.
const SHOWN: usize = 48;

/// Lines of a trace's text that are no events, nor anything else that a tracer writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotUnderstood {
    /// How many.
    pub lines: u64,
    /// Of how many lines, blank ones and comments left out; `None` where a file does not say.
    pub of: Option<u64>,
    /// The first of them, as `line 3 is …`.
    pub first: Vec<String>,
}

impl NotUnderstood {
    /// What a recording says of its text; `None` if every line was understood, or it was no text.
    pub fn of(meta: &Meta) -> Option<NotUnderstood> {
        let number = |name| meta.facts.get(name)?.parse::<u64>().ok();
        let first = meta.facts.get(FIRST).map(String::as_str);
        Some(NotUnderstood {
            lines: number(LINES)?,
            of: number(OF),
            first: first
                .unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect(),
        })
    }

    /// `17 of 18 lines were not understood`, or without the second number where it is not known.
    pub fn sentence(&self) -> String {
        let n = self.lines;
        let were = if n == 1 { "was" } else { "were" };
        match self.of {
            Some(1) => format!("{n} of 1 line {were} not understood"),
            Some(of) => format!("{n} of {of} lines {were} not understood"),
            None if n == 1 => "1 line was not understood".to_owned(),
            None => format!("{n} lines were not understood"),
        }
    }
}

/// Lines that were put together with the one before, as a mailer had wrapped them; 0 for none.
pub fn joined(meta: &Meta) -> u64 {
    let known = meta.facts.get(JOINED).and_then(|n| n.parse().ok());
    known.unwrap_or(0)
}

/// Lines of the text that is being read.
#[derive(Default)]
pub(super) struct Tally {
    /// All but blank ones and comments.
    pub all: u64,
    /// Those that go on the line before.
    pub joined: u64,
    lines: u64,
    first: Vec<String>,
}

impl Tally {
    /// Counts a line that was not understood; `number` is its place in the text, from 1 on.
    pub fn not_understood(&mut self, number: u64, text: &[u8], is_head: bool) {
        self.lines += 1;
        if self.first.len() == KEPT {
            return;
        }
        let begin = text.trim_ascii_start();
        let text = String::from_utf8_lossy(&begin[..begin.len().min(SHOWN * 8)]);
        let text = text.trim();
        let mut shown: String = text
            .chars()
            .take(SHOWN)
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        if text.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        self.first.push(match is_head {
            true => format!("line {number} ends before the name of its event: `{shown}`"),
            false => format!("line {number} is no trace event: `{shown}`"),
        });
    }

    /// Adds what is worth to be known of the text.
    ///
    /// # Errors
    /// If more than half of its lines were not understood.
    pub fn facts(self, facts: &mut BTreeMap<String, String>) -> Result<()> {
        if self.joined > 0 {
            facts.insert(JOINED.to_owned(), self.joined.to_string());
        }
        if self.lines == 0 {
            return Ok(());
        }
        if self.lines > self.all / 2 {
            let found = NotUnderstood {
                lines: self.lines,
                of: Some(self.all),
                first: vec![],
            };
            let first = self.first.first().map_or("", String::as_str);
            return Err(
                Error::malformed(format!("{}, the first: {first}", found.sentence())).help(
                    "leave nothing but the trace in the text, a whole event on each line, as \
                     `trace-cmd report`, `perf script` or the kernel's `trace` file has them",
                ),
            );
        }
        facts.insert(LINES.to_owned(), self.lines.to_string());
        facts.insert(OF.to_owned(), self.all.to_string());
        facts.insert(FIRST.to_owned(), self.first.join("\n"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_were_written_and_files_with_the_number_alone_too() {
        let mut tally = Tally {
            all: 9,
            ..Tally::default()
        };
        tally.not_understood(3, b"hello \x1b world", false);
        tally.not_understood(4, b" sh-1 [000] ....  1.5:", true);
        let mut meta = Meta::default();
        assert_eq!(NotUnderstood::of(&meta), None);
        tally.facts(&mut meta.facts).unwrap();
        let found = NotUnderstood::of(&meta).unwrap();
        assert_eq!(found.sentence(), "2 of 9 lines were not understood");
        assert_eq!(found.first[0], "line 3 is no trace event: `hello ? world`");
        assert!(found.first[1].starts_with("line 4 ends before the name"));
        let number_alone = [(LINES.to_owned(), "7".to_owned())];
        meta.facts = BTreeMap::from(number_alone);
        let found = NotUnderstood::of(&meta).unwrap();
        assert_eq!(found.sentence(), "7 lines were not understood");
    }

    #[test]
    fn more_than_half_not_understood_is_an_error_that_names_the_line() {
        for (all, fails) in [(2, false), (1, true)] {
            let mut tally = Tally {
                all,
                ..Tally::default()
            };
            tally.not_understood(12, b"hello", false);
            let done = tally.facts(&mut BTreeMap::new());
            assert_eq!(done.is_err(), fails);
            if let Err(e) = done {
                assert!(e.to_string().contains("line 12"), "{e}");
                assert!(!e.help.is_empty());
            }
        }
    }
}
