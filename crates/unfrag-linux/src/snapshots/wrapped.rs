//! Rows that a mailer broke into several lines, put together again.
//!
//! Invariant: only lines that follow each other directly are joined, and only where the first cannot stand alone or
//! the second is none of any file: numbers, types and the words between the columns of slabinfo.

use std::borrow::Cow;

/// A line of the text.
pub(super) struct Piece<'a> {
    /// Without its end.
    pub text: Cow<'a, str>,
    /// Whether a line end follows, or another line.
    pub ended: bool,
}

/// The lines with broken rows joined; whether any was.
pub(super) fn joined(lines: Vec<Piece<'_>>) -> (Vec<Piece<'_>>, bool) {
    let mut out: Vec<Piece> = Vec::with_capacity(lines.len());
    let mut any = false;
    for line in lines {
        match out.last_mut() {
            Some(before) if continues(&before.text, &line.text) => {
                let text = format!("{} {}", before.text.trim_end(), line.text.trim_start());
                *before = Piece {
                    text: Cow::Owned(text),
                    ended: line.ended,
                };
                any = true;
            }
            _ => out.push(line),
        }
    }
    (out, any)
}

/// Whether `line` is what a row was broken off.
fn continues(before: &str, line: &str) -> bool {
    let (before, line) = (before.trim(), line.trim());
    if before.is_empty() || line.is_empty() {
        return false;
    }
    let all = |fits: &dyn Fn(&str) -> bool| line.split_ascii_whitespace().all(fits);
    if let Some(rest) = before.strip_prefix("Node") {
        let is_row = rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
        return is_row && all(&|w| is_value(w) || is_type(w) || is_of_rows(w));
    }
    if before.starts_with("Free pages count") {
        return all(&|w| is_value(w) || ["per", "migrate", "type", "at", "order"].contains(&w));
    }
    if before.starts_with("Number of blocks") || before.starts_with("Number of mixed") {
        return all(&|w| is_type(w) || w == "type");
    }
    if before.starts_with("# name ") {
        return all(&|w| w.starts_with('<') || is_between(w));
    }
    is_broken_cache(before) && all(&|w| is_number(w) || is_between(w))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

/// A number, a capped number or an index.
fn is_value(word: &str) -> bool {
    word.bytes()
        .all(|b| b.is_ascii_digit() || b">.-".contains(&b))
        && word.bytes().any(|b| b.is_ascii_digit())
}

fn is_type(word: &str) -> bool {
    const TYPES: [&str; 8] = [
        "Unmovable",
        "Reclaimable",
        "Movable",
        "Reserve",
        "HighAtomic",
        "CMA",
        "Isolate",
        "Device",
    ];
    TYPES.contains(&word)
}

/// Words at the start of a row.
fn is_of_rows(word: &str) -> bool {
    let word = word.trim_end_matches(',');
    ["zone", "type", "DMA", "DMA32", "Normal", "HighMem", ""].contains(&word)
}

/// Words between the columns of slabinfo.
fn is_between(word: &str) -> bool {
    [":", "tunables", "slabdata"].contains(&word)
}

/// A row of slabinfo that lacks its end.
fn is_broken_cache(row: &str) -> bool {
    let words: Vec<&str> = row.split_ascii_whitespace().take(32).collect();
    let begins = words.len() >= 6 && words[1..6].iter().all(|w| is_number(w));
    let rest = words.get(6..).unwrap_or_default();
    let whole = rest.iter().position(|w| *w == "slabdata");
    let fits = rest.iter().all(|w| is_number(w) || is_between(w));
    begins
        && fits
        && rest.first().is_none_or(|w| *w == ":")
        && whole.is_none_or(|at| rest.len() < at + 4)
}
