//! Which host, and which task or CPU of it, a message comes from: reports of several are put together apart.
//!
//! Invariant: at most [`MOST`] sources are open, and what a source left open is closed when others have printed
//! [`STALE`] lines.

use super::assemble::Assembler;
use super::frame::Message;
use super::open::Found;

/// Sources that are open at most.
const MOST: usize = 16;
/// Lines of the log after which a source that printed nothing is closed.
const STALE: u64 = 2000;

struct Source {
    name: String,
    assembler: Assembler,
    /// The last line that it printed.
    line: u64,
}

/// The sources of a log.
pub struct Sources<S> {
    sink: S,
    open: Vec<Source>,
    /// The place of the one that printed last.
    last: usize,
}

impl<S: FnMut(Found)> Sources<S> {
    /// None; what they print goes to `sink`.
    pub fn new(sink: S) -> Sources<S> {
        Sources {
            sink,
            open: vec![],
            last: 0,
        }
    }

    /// Whether only a line with a phrase of a report matters next.
    pub fn is_idle(&self) -> bool {
        self.open.iter().all(|s| s.assembler.is_idle())
    }

    /// Takes the next message.
    pub fn take(&mut self, number: u64, message: &Message) {
        self.last = self.place(number, message.source);
        let source = &mut self.open[self.last];
        source.line = number;
        source.assembler.take(number, message);
        self.give();
    }

    /// Ends what is open.
    pub fn end(&mut self) {
        self.open.sort_by_key(|s| s.line);
        for source in &mut self.open {
            source.assembler.end();
        }
        self.give();
        self.open.clear();
        self.last = 0;
    }

    fn give(&mut self) {
        for source in &mut self.open {
            for mut found in source.assembler.found() {
                if let Found::Report(r) = &mut found {
                    r.source.clone_from(&source.name);
                }
                (self.sink)(found);
            }
        }
    }

    /// The place of the source called `name`; a message that names none comes from the source before.
    fn place(&mut self, number: u64, name: &str) -> usize {
        if let Some(last) = self.open.get_mut(self.last)
            && (name.is_empty() || last.name == name || last.name.is_empty())
        {
            if last.name.is_empty() {
                name.clone_into(&mut last.name);
            }
            return self.last;
        }
        if let Some(at) = self.open.iter().position(|s| s.name == name) {
            return at;
        }
        for source in &mut self.open {
            if source.line.abs_diff(number) > STALE {
                source.assembler.end();
            }
        }
        self.give();
        let at = match self.open.len() < MOST {
            true => self.open.len(),
            false => {
                let oldest = (0..MOST).min_by_key(|&i| self.open[i].line).unwrap_or(0);
                self.open[oldest].assembler.end();
                self.give();
                self.open.remove(oldest);
                MOST - 1
            }
        };
        self.open.push(Source {
            name: name.to_owned(),
            assembler: Assembler::new(),
            line: number,
        });
        at
    }
}
