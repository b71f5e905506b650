//! The lines of a log of any length, and those among them that may belong to a report.
//!
//! Invariant: memory stays within two buffers of [`ROOM`] bytes; a longer line comes in pieces. Line numbers count line
//! breaks of the input.

use super::event;
use super::phrases::searcher;
use aho_corasick::AhoCorasick;
use memchr::{memchr, memchr_iter, memrchr};
use std::io::{self, ErrorKind, Read};

/// Bytes that are looked at together.
const ROOM: usize = 1 << 20;

/// Words without which no line begins a report, or belongs to one whose beginning is missing. Single words, as text that
/// was wrapped anew has more blanks between them.
const WORDS: [&str; 27] = [
    "allocation",
    "Allocation",
    "oom-kill",
    "gfp_mask",
    "mode:0x",
    "order:",
    "order=",
    "Mem-Info",
    "Mem-info",
    "lowmem_reserve",
    "free:",
    "*4kB",
    "active_anon:",
    "Active:",
    "SLUB:",
    "SLAB:",
    "vmalloc",
    "vmap",
    "req-size:",
    "callbacks",
    "COMPACTION",
    "Kill",
    "killing",
    "killed",
    "SysRq",
    "sysrq:",
    "quoted-printable",
];

/// Lines before one with a word that come with it: the end of a report whose lines are in reverse order.
const CONTEXT: usize = 48;
/// Bytes of those lines.
const MOST_CONTEXT: usize = 16 << 10;

/// A line, its number, and whether it only stands before one with a word of a report.
pub type Line<'a> = (u64, &'a [u8], bool);

/// Lines of a log.
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    /// Number of the line that begins at `start`, from 1.
    number: u64,
    is_at_end: bool,
    words: AhoCorasick,
    /// The number of the line with a word that was found last: those before it come without being looked at.
    found: u64,
}

impl<R: Read> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Lines<R> {
        Lines {
            input,
            buffer: Vec::with_capacity(2 * ROOM),
            start: 0,
            number: 1,
            is_at_end: false,
            words: searcher(WORDS.iter().chain(&event::WORDS)),
            found: 0,
        }
    }

    /// The next line and its number, without its line break; with `wanted_only` the next one that holds a word of a
    /// report, or one of [`CONTEXT`] lines before it that were left out. `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn next(&mut self, wanted_only: bool) -> io::Result<Option<Line<'_>>> {
        loop {
            if self.start == self.buffer.len() && !self.fill()? {
                return Ok(None);
            }
            if wanted_only && self.number >= self.found && !self.skip_to_wanted() {
                continue;
            }
            let Some(len) = memchr(b'\n', &self.buffer[self.start..]) else {
                if self.fill()? {
                    continue;
                }
                let from = std::mem::replace(&mut self.start, self.buffer.len());
                let is_before = self.number < self.found;
                return Ok(Some((self.number, &self.buffer[from..], is_before)));
            };
            let from = self.start;
            self.start += len + 1;
            self.number += 1;
            return Ok(Some((
                self.number - 1,
                &self.buffer[from..from + len],
                self.number - 1 < self.found,
            )));
        }
    }

    /// Moves to the next whole line that holds such a word, or to lines before it; false if there is none in the buffer.
    fn skip_to_wanted(&mut self) -> bool {
        let rest = &self.buffer[self.start..];
        let (found, until) = match self.words.find(rest) {
            Some(found) => (
                true,
                memrchr(b'\n', &rest[..found.start()]).map_or(0, |at| at + 1),
            ),
            // The last line may go on in what is not read yet.
            None if self.is_at_end => (false, rest.len()),
            None => (false, memrchr(b'\n', rest).map_or(0, |at| at + 1)),
        };
        let lines = memchr_iter(b'\n', &rest[..until]).count() as u64;
        // Lines before the next word stay while it is looked for in what is not read yet.
        let mut from = until;
        let mut kept = 0;
        while from > 0 && kept < CONTEXT && until - from < MOST_CONTEXT {
            from = memrchr(b'\n', &rest[..from - 1]).map_or(0, |at| at + 1);
            kept += 1;
        }
        if found {
            self.found = self.number + lines;
            self.number += lines - kept as u64;
            self.start += from;
            return true;
        }
        self.number += lines - kept as u64;
        self.start += from;
        if !self.is_at_end && self.fill_or_end() {
            return false;
        }
        // Only lines without such a word are left.
        self.number += kept as u64;
        self.start = self.buffer.len();
        false
    }

    fn fill_or_end(&mut self) -> bool {
        match self.fill() {
            Ok(more) => more,
            Err(_) => {
                self.is_at_end = true;
                false
            }
        }
    }

    /// Reads more behind what is left; false if there is no more, or no room for a longer line.
    fn fill(&mut self) -> io::Result<bool> {
        if self.is_at_end || self.buffer.len() - self.start >= ROOM {
            return Ok(false);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let had = self.buffer.len();
        self.buffer.resize(had + ROOM, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[had..]) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(had + *read.as_ref().unwrap_or(&0));
        let read = read?;
        self.is_at_end = read == 0;
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, wanted_only: bool) -> Vec<(u64, String)> {
        let mut lines = Lines::new(text.as_bytes());
        let mut found = vec![];
        while let Some((n, line, is_before)) = lines.next(wanted_only).unwrap() {
            if !is_before {
                found.push((n, String::from_utf8_lossy(line).into_owned()));
            }
        }
        found
    }

    #[test]
    fn wanted_lines_keep_their_numbers() {
        let noise = "nothing here\n".repeat(200_000);
        let text = format!("first\n{noise}a: page allocation failure\n{noise}last oom-killer");
        let found = all(&text, true);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].0, found[1].0), (200_002, 400_003));
        assert_eq!(found[1].1, "last oom-killer");
        assert_eq!(
            all("a\n\nb", false),
            [(1, "a".into()), (2, String::new()), (3, "b".into())]
        );
    }

    #[test]
    fn lines_before_a_wanted_one_come_with_it_once() {
        for lines in [3, 100, 300_000] {
            let text = "nothing here\n".repeat(lines) + "oom-kill\nmore\noom-kill\n";
            let mut read = Lines::new(text.as_bytes());
            let mut numbers = vec![];
            while let Some((n, _, _)) = read.next(true).unwrap() {
                numbers.push(n);
            }
            let last = lines as u64 + 3;
            let first = (last - 2).saturating_sub(CONTEXT as u64).max(1);
            assert_eq!(numbers, (first..=last).collect::<Vec<_>>(), "{lines}");
        }
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let text = "x".repeat(5 * ROOM);
        let mut lines = Lines::new(text.as_bytes());
        let mut bytes = 0;
        while let Some((_, line, _)) = lines.next(false).unwrap() {
            bytes += line.len();
        }
        assert_eq!(bytes, text.len());
        assert!(lines.buffer.capacity() <= 3 * ROOM);
    }
}
