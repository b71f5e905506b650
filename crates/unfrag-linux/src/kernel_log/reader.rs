//! Reads a log: looks ahead far enough to know what its lines have in common, and gives their messages in order of time.
//!
//! Invariant: at most [`AHEAD`] lines are looked ahead, or [`MOST_REVERSED`] where the newest is first, and at most
//! [`MOST_BYTES`] of text.

use super::anchor::has_statement;
use super::decode::{Clean, Decoder};
use super::frame::Frame;
use super::lines::Lines;
use super::open::Found;
use super::sources::Sources;
use super::statement::{Kind, kind_of};
use crate::error::Result;
use std::collections::VecDeque;
use std::io::Read;

/// Lines that are looked ahead for what they have in common.
const AHEAD: usize = 256;
/// Lines of a log in reverse order that are put in order together.
const MOST_REVERSED: usize = 8192;
/// Lines without a statement that end such a part.
const MOST_QUIET: usize = 200;
/// Bytes of lines that are kept.
const MOST_BYTES: usize = 4 << 20;

struct Reader<R, S> {
    lines: Lines<R>,
    decoder: Decoder,
    window: VecDeque<Clean>,
    bytes: usize,
    is_at_end: bool,
    frame: Frame,
    /// Lines of the window that the frame holds for.
    known: usize,
    /// Where in the window the line stands that may begin a report, if its frame is not known.
    begun: Option<usize>,
    sources: Sources<S>,
}

/// Reads a log, and gives what it holds to `sink`.
///
/// # Errors
/// If it cannot be read.
pub fn read(input: impl Read, sink: impl FnMut(Found)) -> Result<()> {
    let mut reader = Reader {
        lines: Lines::new(input),
        decoder: Decoder::default(),
        window: VecDeque::new(),
        bytes: 0,
        is_at_end: false,
        frame: Frame::default(),
        known: 0,
        begun: None,
        sources: Sources::new(sink),
    };
    while reader.step()? {}
    reader.sources.end();
    Ok(())
}

impl<R: Read, S: FnMut(Found)> Reader<R, S> {
    /// Takes a line, or a part of a log in reverse order; false at the end.
    fn step(&mut self) -> Result<bool> {
        if self.window.is_empty() {
            if self.is_at_end {
                return Ok(false);
            }
            match self.sources.is_idle() && !self.decoder.is_holding() {
                true => self.find()?,
                false => {
                    self.line(false)?;
                }
            }
        }
        let is_wanted = |c: &Clean| has_statement(&c.text);
        if self.begun.is_some()
            || self.known == 0
                && (!self.sources.is_idle() || self.window.front().is_some_and(is_wanted))
        {
            self.look_ahead()?;
        }
        if self.frame.is_reversed {
            return self.reversed();
        }
        self.known = self.known.saturating_sub(1);
        if let Some(clean) = self.pop() {
            let sources = &mut self.sources;
            self.frame
                .messages(&clean, &mut |m| sources.take(clean.number, &m));
        }
        Ok(true)
    }

    /// Reads on to the next line that may begin a report.
    fn find(&mut self) -> Result<()> {
        self.frame = Frame::default();
        self.known = 0;
        let mut before = 0;
        while self.line(true)? == Some(true) {
            before = self.window.len();
        }
        let mut found = self.window.iter().skip(before);
        self.begun = found.any(|c| has_statement(&c.text)).then_some(before);
        if self.begun.is_none() {
            // The line before may hold the first half of a beginning.
            self.keep_last(self.window.len() + 1 - before.max(1));
        }
        Ok(())
    }

    fn keep_last(&mut self, count: usize) {
        while self.window.len() > count {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Clean> {
        let clean = self.window.pop_front()?;
        self.bytes -= clean.text.len();
        Some(clean)
    }

    /// Reads a line; whether it only stands before one with a word of a report. `None` at the end.
    fn line(&mut self, wanted_only: bool) -> Result<Option<bool>> {
        let Some((number, bytes, is_before)) = self.lines.next(wanted_only)? else {
            self.is_at_end = true;
            return Ok(None);
        };
        let (window, kept) = (&mut self.window, &mut self.bytes);
        self.decoder.decode(number, bytes, &mut |clean| {
            *kept += clean.text.len();
            window.push_back(clean);
        });
        Ok(Some(is_before))
    }

    /// Fills the window, and learns what its lines have in common.
    fn look_ahead(&mut self) -> Result<()> {
        while self.window.len() < AHEAD && self.bytes < MOST_BYTES && !self.is_at_end {
            self.line(false)?;
        }
        self.frame = Frame::of(self.window.iter());
        self.known = (self.window.len() * 3 / 4).max(1);
        if self.is_at_end {
            self.known = self.window.len();
        }
        // What stands before a report matters only where the newest line is first.
        if let Some(before) = self.begun.take().filter(|_| !self.frame.is_reversed) {
            self.keep_last(self.window.len() - before.saturating_sub(1));
        }
        Ok(())
    }

    /// Takes a part of a log whose newest line is first.
    fn reversed(&mut self) -> Result<bool> {
        let mut quiet = 0;
        let mut looked = 0;
        loop {
            while let Some(clean) = self.window.get(looked) {
                quiet = if has_statement(&clean.text) {
                    0
                } else {
                    quiet + 1
                };
                looked += 1;
            }
            if self.is_at_end
                || quiet > MOST_QUIET
                || looked > MOST_REVERSED
                || self.bytes > MOST_BYTES
            {
                break;
            }
            self.line(false)?;
        }
        let mut part = self.window.len();
        if !self.is_at_end && quiet <= MOST_QUIET {
            // A report ends with its beginning.
            let begins = |c: &Clean| {
                let mut is_first = false;
                self.frame.messages(c, &mut |m| {
                    is_first |= matches!(kind_of(m.line.text), Some(Kind::Failure | Kind::Oom));
                });
                is_first
            };
            part = self
                .window
                .iter()
                .rposition(begins)
                .map_or(part, |at| at + 1);
        }
        let lines: Vec<Clean> = (0..part).filter_map(|_| self.pop()).collect();
        let sources = &mut self.sources;
        for clean in lines.iter().rev() {
            self.frame
                .messages(clean, &mut |m| sources.take(clean.number, &m));
        }
        self.sources.end();
        self.known = 0;
        self.frame = Frame::default();
        Ok(true)
    }
}
