//! The lines of a text: without the marks of a quoted mail, and put together again where a mailer wrapped
//! them.
//!
//! A mailer breaks a line at a blank, where the next word would go beyond its width. Two things are taken for
//! such a break: a line that has a task and a CPU but ends before the event's name, if it is an event together
//! with the next; and a line of an event followed by one that begins with `key=value`, or that closes a
//! parenthesis, if the break stands where a mailer makes one.
//!
//! Invariant: a line that is an event by itself is never joined to the one before it.

use std::borrow::Cow;

use super::line::{Line, is_head};
use super::pairs::is_key;
use super::value::{trim, trim_end};

/// Widths at which mailers break lines, in bytes: a break leaves no room for the next word in the least one,
/// and no line of more than one word is longer than the greatest.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=80;
/// Most lines that make one.
pub(super) const MOST_PARTS: usize = 8;

/// A line as it stands in the text.
#[derive(Clone, Copy)]
pub(super) struct Physical<'a> {
    /// Without its end, and without marks of quoting.
    pub text: &'a [u8],
    /// Byte of the piece at which it begins.
    pub at: u64,
    /// Its number, from 1 on.
    pub number: u64,
}

/// The lines of a text, one after the other.
pub(super) struct Lines<'a> {
    data: &'a [u8],
    /// Where the line after `next` begins.
    at: usize,
    next: Option<Physical<'a>>,
}

impl<'a> Lines<'a> {
    /// Of this piece of a text, whose first line has this number.
    pub fn of(data: &'a [u8], number: u64) -> Self {
        let mut lines = Lines {
            data,
            at: 0,
            next: None,
        };
        lines.advance(number);
        lines
    }

    /// The line that comes next.
    pub fn peek(&self) -> Option<Physical<'a>> {
        self.next
    }

    /// The next line.
    pub fn next(&mut self) -> Option<Physical<'a>> {
        let line = self.next?;
        self.advance(line.number + 1);
        Some(line)
    }

    /// Finds the line with this number, which is the next but one.
    fn advance(&mut self, number: u64) {
        let rest = &self.data[self.at..];
        if rest.is_empty() {
            self.next = None;
            return;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.next = Some(Physical {
            text: unquoted(line),
            at: self.at as u64,
            number,
        });
        self.at += (end + 1).min(rest.len());
    }

    /// The whole line that `first` begins, and how many lines after it belong to it; they are taken.
    pub fn whole(&mut self, first: &'a [u8]) -> (Cow<'a, [u8]>, u64) {
        let mut whole = Cow::Borrowed(first);
        let mut taken = 0;
        let mut last = first;
        if first.len() <= *WIDTHS.end() && is_head(first) {
            let Some(joined) = self.with_name(first) else {
                return (whole, 0);
            };
            (whole, taken, last) = joined;
        }
        while taken < MOST_PARTS as u64
            && let Some(next) = self.next
            && goes_on(&whole, last, next.text)
            && matches!(Line::parse(&whole), Line::Event(_))
        {
            join(whole.to_mut(), next.text);
            last = next.text;
            taken += 1;
            self.next();
        }
        (whole, taken)
    }

    /// A head together with the one or two lines that name its event: the line, how many were taken, and the
    /// last of them.
    fn with_name(&mut self, head: &[u8]) -> Option<Joined<'a>> {
        let before = (self.at, self.next);
        let mut whole = head.to_vec();
        for taken in 1..=2 {
            let Some(next) = self.next.filter(|n| is_other(n.text) && !is_blank(n.text)) else {
                break;
            };
            join(&mut whole, next.text);
            self.next();
            if let Line::Event(_) = Line::parse(&whole) {
                return Some((Cow::Owned(whole), taken, next.text));
            }
        }
        (self.at, self.next) = before;
        None
    }
}

/// A line put together, how many lines were taken for it, and the last of them.
type Joined<'a> = (Cow<'a, [u8]>, u64, &'a [u8]);

/// Whether `next` goes on with the event `whole`, whose last line is `last`.
fn goes_on(whole: &[u8], last: &[u8], next: &[u8]) -> bool {
    let words = trim(next);
    let by_key = is_key(words);
    if !by_key && (last.len() > *WIDTHS.end() || !is_open(whole) || !words.contains(&b')')) {
        return false;
    }
    let length = trim_end(last).len();
    let word = words.iter().take_while(|c| **c != b' ').count();
    let one_word = !trim(last).contains(&b' ');
    (length <= *WIDTHS.end() || one_word) && length + 1 + word > *WIDTHS.start() && is_other(next)
}

/// Whether a parenthesis is open at the end.
fn is_open(text: &[u8]) -> bool {
    memchr::memrchr2(b'(', b')', text).is_some_and(|i| text[i] == b'(')
}

fn is_other(line: &[u8]) -> bool {
    matches!(Line::parse(line), Line::Other) && !is_head(line)
}

fn is_blank(line: &[u8]) -> bool {
    trim(line).is_empty()
}

fn join(whole: &mut Vec<u8>, next: &[u8]) {
    whole.truncate(trim_end(whole).len());
    whole.push(b' ');
    whole.extend_from_slice(trim(next));
}

/// Without the `> ` before a line of a quoted mail.
fn unquoted(line: &[u8]) -> &[u8] {
    let mut rest = line;
    while let [b'>', after @ ..] = rest {
        match after {
            [b' ', text @ ..] => rest = text,
            [b'>', ..] | [] => rest = after,
            // A task may have such a name.
            _ => return line,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Vec<String> {
        let mut lines = Lines::of(text.as_bytes(), 1);
        let mut all = vec![];
        while let Some(line) = lines.next() {
            let (text, _) = lines.whole(line.text);
            all.push(String::from_utf8(text.into_owned()).unwrap());
        }
        all
    }

    #[test]
    fn a_head_is_joined_to_its_event_and_that_to_its_fields() {
        let text = "  sh-1 [000] ....  6850.456641: mm_compaction_begin:\n\
            zone_start=0x100000 migrate_pfn=0x100000 free_pfn=0x27fe00\n\
            zone_end=0x280000, mode=sync\n\
            sh-1 [000] ....  6850.456641:\nmm_compaction_isolate_migratepages: range=(0x100000 ~\n\
            0x10002d) nr_scanned=45\n";
        let lines = whole(text);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with("free_pfn=0x27fe00 zone_end=0x280000, mode=sync"));
        assert!(lines[1].ends_with("range=(0x100000 ~ 0x10002d) nr_scanned=45"));
    }

    #[test]
    fn what_no_mailer_breaks_stays_apart() {
        let short = "  sh-1 [000] ....  6.5: kfree: ptr=1\nvm.swappiness=60\n";
        assert_eq!(whole(short).len(), 2, "there was room for the next word");
        let blanks = "> sh-1 [000] ....  6.5:\n\n> kfree: ptr=1\n";
        assert_eq!(whole(blanks).len(), 3, "a blank line ends it");
        let heads = " sh-1 [000] ....  6.5:\n sh-1 [000] ....  6.6: kfree: ptr=1\n";
        assert_eq!(whole(heads).len(), 2, "the second is whole");
    }

    #[test]
    fn marks_of_quoting_are_taken_off() {
        assert_eq!(unquoted(b"> > sh-1 [000]"), b"sh-1 [000]");
        assert_eq!(unquoted(b">> sh-1 [000]"), b"sh-1 [000]");
        assert_eq!(unquoted(b">"), b"");
        assert_eq!(unquoted(b">odd-1 [000]"), b">odd-1 [000]");
    }
}
