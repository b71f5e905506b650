//! What a lenient reader leaves aside: how a text differs from the canonical one, and lines that were not
//! understood.
//!
//! Invariant: for a text in UTF-8, `apply` on the canonical text that `between` was given gives back
//! the source byte for byte. Where a value has changed since, its canonical line is written.

use crate::error::Error;

/// Lines around a difference that are searched for the next line in common.
const WINDOW: usize = 32;
/// Comparisons of lines over a whole text, so that no text takes long.
const BUDGET: usize = 2_000_000;

/// What was read of a text beside its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Lines that were not understood; they are kept, and written back in their places.
    pub not_understood: Vec<Unknown>,
    /// Whether the text ends within a line, so that something may be missing after it.
    pub cut: bool,
    edits: Vec<Edit>,
}

/// A line that was not understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Its number; the first line of the text is 1.
    pub line: usize,
    /// The line without its end.
    pub text: String,
}

/// Text that stands in the place of canonical lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Edit {
    /// Number of canonical lines before it.
    at: usize,
    instead_of: Vec<String>,
    text: String,
}

impl Notes {
    /// Notes on how `source` differs from `canonical`, the text that its values are written as.
    pub(super) fn keep(mut self, canonical: &str, source: &str) -> Self {
        self.edits = if canonical == source {
            vec![]
        } else {
            between(canonical, source)
        };
        self
    }

    /// `canonical` with the differences put back.
    pub(super) fn apply(&self, canonical: String) -> String {
        if self.edits.is_empty() {
            return canonical;
        }
        let lines: Vec<&str> = canonical.split_inclusive('\n').collect();
        let mut out = String::with_capacity(canonical.len());
        let mut at = 0;
        for edit in &self.edits {
            while at < edit.at.min(lines.len()) {
                out.push_str(lines[at]);
                at += 1;
            }
            let end = at.saturating_add(edit.instead_of.len());
            if lines.get(at..end).is_some_and(|l| l == edit.instead_of) {
                out.push_str(&edit.text);
                at = end;
            }
        }
        lines[at..].iter().for_each(|line| out.push_str(line));
        out
    }
}

/// Reads a text strictly, if it is as the kernel writes it, else line by line, and notes how it differs from what its values are
/// written as.
///
/// # Errors
/// That of the strict reader, if no line is understood.
pub(super) fn read<T>(
    bytes: &[u8],
    strictly: fn(&[u8]) -> Result<T, Error>,
    leniently: fn(&str) -> Option<T>,
    write: fn(&T) -> String,
    notes_of: fn(&mut T) -> &mut Notes,
) -> Result<T, Error> {
    let source = String::from_utf8_lossy(bytes);
    let mut read = match strictly(source.as_bytes()) {
        Ok(read) => read,
        Err(e) => leniently(&source).ok_or(e)?,
    };
    let notes = std::mem::take(notes_of(&mut read));
    *notes_of(&mut read) = notes.keep(&write(&read), &source);
    Ok(read)
}

/// The differences, found line by line.
fn between(canonical: &str, source: &str) -> Vec<Edit> {
    let a: Vec<&str> = canonical.split_inclusive('\n').collect();
    let b: Vec<&str> = source.split_inclusive('\n').collect();
    let (mut i, mut j, mut budget) = (0, 0, BUDGET);
    let mut edits: Vec<Edit> = vec![];
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let (skip_a, skip_b) = next_in_common(&a[i..], &b[j..], &mut budget);
        edits.push(Edit {
            at: i,
            instead_of: a[i..i + skip_a].iter().map(|&l| l.to_owned()).collect(),
            text: b[j..j + skip_b].concat(),
        });
        (i, j) = (i + skip_a, j + skip_b);
    }
    edits
}

/// How many lines of each to pass; at least one of one of them.
fn next_in_common(a: &[&str], b: &[&str], budget: &mut usize) -> (usize, usize) {
    for sum in 1..WINDOW {
        for skip_a in 0..=sum {
            let skip_b = sum - skip_a;
            *budget = budget.saturating_sub(1);
            if *budget > 0
                && let (Some(x), Some(y)) = (a.get(skip_a), b.get(skip_b))
                && x == y
            {
                return (skip_a, skip_b);
            }
        }
        if *budget == 0 {
            break;
        }
    }
    (a.len().min(1), b.len().min(1))
}

/// Tells whole rows of a table from one in which the text ends.
#[derive(Default)]
pub(super) struct Rows {
    /// Columns of the first row, and whether it ends with a blank, as the kernel's rows do.
    first: Option<(usize, bool)>,
}

impl Rows {
    /// Whether the row `line` of `columns` numbers is whole. `ended` says whether it has a newline.
    pub fn is_whole(&mut self, line: &str, columns: usize, ended: bool) -> bool {
        let blank = line.ends_with([' ', '\t']);
        let (most, blanks) = *self.first.get_or_insert((columns, blank));
        ended || (columns >= most && blank >= blanks)
    }
}

/// Reads a text line by line. `read` gives `Some` for a line that it understood or that is blank.
pub(super) fn read_lines(source: &str, mut read: impl FnMut(&str, bool) -> Option<()>) -> Notes {
    let mut notes = Notes::default();
    for (n, whole) in source.split_inclusive('\n').enumerate() {
        let ended = whole.ends_with('\n');
        let line = whole.trim_end_matches(['\n', '\r']);
        if line.trim().is_empty() {
            notes.cut |= !ended && !line.is_empty();
            continue;
        }
        if read(line, ended).is_none() {
            notes.cut |= !ended;
            notes.not_understood.push(Unknown {
                line: n + 1,
                text: line.to_owned(),
            });
        }
    }
    notes
}
