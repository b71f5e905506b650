//! From messages to statements: lines that were wrapped are put together, and each statement goes to the open reports.
//!
//! Invariant: what is kept does not grow with the log: a statement has at most [`MOST_BYTES`], and reports are closed
//! once their end or [`MOST_QUIET`] other lines are seen.

use super::event;
use super::frame::Message;
use super::open::{Found, Open};
use super::report::Stamp;
use super::statement::{self, Kind, Statement};
use super::wrap;

/// Lines that say nothing of a report, after which it is closed.
const MOST_QUIET: u32 = 400;
/// Bytes of a statement at most.
const MOST_BYTES: usize = 16 << 10;

/// A statement whose end was not seen yet.
struct Pending {
    statement: Statement,
    is_framed: bool,
    /// Blanks that its first line begins with.
    indent: usize,
    /// A short line that was put behind it last, and where it stands in `text` and `tight`.
    last_piece: Option<(String, [usize; 2])>,
}

/// Puts statements together.
pub struct Assembler {
    open: Open,
    pending: Option<Pending>,
    quiet: u32,
    /// Blanks that the line begins with which is taken.
    indent: usize,
    /// The last line that stated nothing, which may be the first half of a beginning.
    unknown: Option<(u64, String)>,
}

impl Assembler {
    /// One that has taken nothing.
    pub fn new() -> Self {
        Assembler {
            open: Open::default(),
            pending: None,
            quiet: 0,
            indent: 0,
            unknown: None,
        }
    }

    /// Whether only a line with a phrase of a report matters next.
    pub fn is_idle(&self) -> bool {
        self.pending.is_none()
            && (self.open.is_empty() || self.open.is_complete() && self.quiet > 2)
    }

    /// What was found since this was asked last.
    pub fn found(&mut self) -> Vec<Found> {
        self.open.found()
    }

    /// Takes the next message.
    pub fn take(&mut self, number: u64, message: &Message) {
        let line = &message.line;
        self.indent = message.indent;
        if line.is_foreign {
            return;
        }
        if let Some(kind) = statement::kind_of(line.text)
            && !self.ends_in_name_of(kind, line.is_framed)
        {
            // The second half of a wrapped `Node 0 DMA32 free:` reads as a zone by itself.
            if matches!(kind, Kind::Zone | Kind::Blocks)
                && !line.text.trim_start().starts_with("Node")
                && let Some((kind, text)) = self.beginning_in_two(number, line.text)
            {
                self.begin(kind, text, number, line.stamp(), false);
                return;
            }
            self.begin(
                kind,
                line.text.to_owned(),
                number,
                line.stamp(),
                line.is_framed && !message.is_further,
            );
            return;
        }
        if let Some((kind, text)) = self.beginning_in_last_piece(line.text) {
            self.begin(kind, text, number, line.stamp(), false);
            return;
        }
        if self.go_on(line.text, line.is_framed) {
            return;
        }
        self.flush();
        if let Some((kind, text)) = self.beginning_in_two(number, line.text) {
            let from = self.unknown.take().map_or(number, |(n, _)| n);
            self.begin(kind, text, from, line.stamp(), false);
            return;
        }
        if let Some(event) = event::event(line.text, number, line.stamp())
            && (line.is_framed || event.about != event::About::Refused)
        {
            self.open.event(event);
            return;
        }
        self.unknown = (line.text.len() < 200 && !line.text.trim().is_empty())
            .then(|| (number, line.text.to_owned()));
        self.look_at_unknown(number, line.text);
        if !self.open.is_empty() {
            self.quiet += 1;
            if self.quiet > MOST_QUIET {
                self.close();
            }
        }
    }

    /// Ends the log.
    pub fn end(&mut self) {
        self.flush();
        self.close();
    }

    fn close(&mut self) {
        self.open.close();
        self.quiet = 0;
    }

    fn begin(&mut self, kind: Kind, text: String, line: u64, time: Option<Stamp>, is_framed: bool) {
        self.flush();
        self.unknown = None;
        self.pending = Some(Pending {
            statement: Statement {
                kind,
                tight: text.clone(),
                text,
                line,
                time,
            },
            last_piece: None,
            is_framed,
            indent: self.indent,
        });
    }

    /// Whether the statement before ends in a piece of a name, with which a line goes on that reads as counts by itself.
    fn ends_in_name_of(&self, kind: Kind, is_framed: bool) -> bool {
        let before = self.pending.as_ref().map(|p| &p.statement);
        let before = before.filter(|_| kind == Kind::Counts && !is_framed);
        before.is_some_and(|s| {
            let last = s.text.rsplit(' ').next().unwrap_or("");
            let is_name = |b: u8| b.is_ascii_lowercase() || b == b'_';
            s.kind == Kind::Counts && !last.is_empty() && last.bytes().all(is_name)
        })
    }

    /// Puts a line without a beginning behind the statement before it, if it belongs there.
    fn go_on(&mut self, text: &str, is_framed: bool) -> bool {
        let Some(p) = &mut self.pending else {
            return false;
        };
        // Blanks before all lines are none of the statement.
        let text = match self.indent == p.indent {
            true => text.trim_start_matches(' '),
            false => text,
        };
        // Of two framed lines the second goes on with the first only where the kernel or a logger cut it.
        let is_cut = !is_framed || !p.is_framed || {
            let begun = p.statement.text.trim_end();
            let has_open = begun.matches('(').count() > begun.matches(')').count();
            matches!(
                p.statement.kind,
                Kind::Zone | Kind::Node | Kind::Blocks | Kind::Counts
            ) || begun.ends_with(',')
                || has_open
        };
        if !is_cut
            || p.statement.text.len() + text.len() > MOST_BYTES
            || !wrap::goes_on(p.statement.kind, &p.statement.text, text)
        {
            return false;
        }
        p.last_piece = (text.len() < 40).then(|| {
            (
                text.to_owned(),
                [p.statement.text.len(), p.statement.tight.len()],
            )
        });
        wrap::join(p.statement.kind, &mut p.statement.text, text);
        p.statement.tight.push_str(text.trim_end());
        true
    }

    /// A beginning whose first half was taken for a piece of the statement before it; that gives it back.
    fn beginning_in_last_piece(&mut self, text: &str) -> Option<(Kind, String)> {
        let p = self.pending.as_mut()?;
        let (piece, [at, tight_at]) = p.last_piece.take()?;
        let found = begun_in_two(&piece, text)?;
        p.statement.text.truncate(at);
        p.statement.tight.truncate(tight_at);
        Some(found)
    }

    /// A beginning that was wrapped in the midst of its phrase.
    fn beginning_in_two(&self, line: u64, text: &str) -> Option<(Kind, String)> {
        let (at, first) = self.unknown.as_ref()?;
        (line.saturating_sub(*at) <= 1).then(|| begun_in_two(first, text))?
    }

    /// Names a line that only reports have, if nothing was made of it.
    fn look_at_unknown(&mut self, line: u64, text: &str) {
        const SIGNS: [&str; 6] = [
            "page allocation failure",
            "invoked oom",
            "lowmem_reserve[]",
            "*4kB",
            "*4096kB",
            "gfp_mask=0x",
        ];
        if SIGNS.iter().any(|s| text.contains(s))
            || text.contains(" free:") && text.contains("kB min:")
        {
            self.open.skip(
                line,
                "it looks like part of a report, and belongs to no statement that is known",
            );
        }
    }

    fn flush(&mut self) {
        let Some(p) = self.pending.take() else { return };
        if p.statement.kind != Kind::Call || self.open.has_report() {
            self.quiet = 0;
        }
        self.open.apply(&p.statement);
    }
}

/// The statement that two halves of a wrapped line begin, and its text.
fn begun_in_two(first: &str, text: &str) -> Option<(Kind, String)> {
    const HAVE_BEGUN: [Kind; 9] = [
        Kind::Zone,
        Kind::Node,
        Kind::Blocks,
        Kind::Reserve,
        Kind::Counts,
        Kind::Failure,
        Kind::Oom,
        Kind::Vmalloc,
        Kind::Slab,
    ];
    let (first, text) = (first.trim_end(), text.trim_start());
    if text.is_empty() || text.len() > 2000 {
        return None;
    }
    let whole = [format!("{first} {text}"), format!("{first}{text}")];
    whole.into_iter().find_map(|t| {
        let kind = statement::kind_of(&t)?;
        HAVE_BEGUN.contains(&kind).then_some((kind, t))
    })
}
