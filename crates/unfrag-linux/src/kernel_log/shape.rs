//! What all lines of a report have in common before their text: the shape of a prefix that no form of `envelope` is.
//! `spec: K.3`
//!
//! A prefix is learned from lines whose statement is known by its beginning: what stands before it has the same words
//! and signs on each line, numbers of any width, and words of its own where a host, a process or a level is named.
//!
//! Invariant: a shape is learned from at least [`LEAST`] lines; it never takes text of the kernel for a prefix.

use super::anchor::anchor;
use super::envelope::{self, Stripped};
use super::statement::{Kind, kind_of};
use std::collections::BTreeMap;

/// Lines that a shape is learned from at least.
const LEAST: usize = 3;
/// Signs that mark quoted, commented or boxed text.
const MARKS: &str = "|>#*;!%+~:│┃║•";

/// A part of a prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    /// A number of any width, and the blanks that pad it.
    Digits,
    /// A word; a wild one if it differs from line to line.
    Word(String),
    Wild,
    /// One or more blanks.
    Blank,
    Sign(char),
}

/// A prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    tokens: Vec<Token>,
    /// What each line has behind its text: a quote, a bar.
    tail: Option<char>,
    lines: usize,
}

/// A line without what all lines have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fitted<'a> {
    /// What stood before the message.
    pub prefix: &'a str,
    /// The message.
    pub text: &'a str,
    /// The words that differ from line to line.
    pub words: String,
}

/// Signs before and behind each line of quoted text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Quoting {
    before: Vec<char>,
    behind: Option<char>,
}

impl Quoting {
    /// The marks that nearly all of `lines` begin and end with.
    pub fn of(lines: &[&str]) -> Quoting {
        let mut quoting = Quoting::default();
        let mut rests: Vec<&str> = lines
            .iter()
            .map(|l| l.trim())
            .filter(|l| !l.is_empty())
            .collect();
        if rests.len() < 2 * LEAST {
            return quoting;
        }
        let most = |ends: &dyn Fn(&str) -> Option<char>, rests: &[&str]| {
            let mut counts: BTreeMap<char, usize> = BTreeMap::new();
            for r in rests {
                if let Some(c) = ends(r).filter(|c| MARKS.contains(*c)) {
                    *counts.entry(c).or_default() += 1;
                }
            }
            let (c, n) = counts.into_iter().max_by_key(|(_, n)| *n)?;
            (n * 10 >= rests.len() * 9).then_some(c)
        };
        while quoting.before.len() < 4
            && let Some(mark) = most(&|r| r.chars().next(), &rests)
        {
            rests = rests
                .iter()
                .map(|r| r.strip_prefix(mark).unwrap_or(r).trim_start())
                .collect();
            rests.retain(|r| !r.is_empty());
            quoting.before.push(mark);
        }
        quoting.behind = most(&|r| r.chars().last(), &rests).filter(|c| !matches!(c, ':' | '>'));
        quoting
    }

    /// A line without them.
    pub fn off<'a>(&self, line: &'a str) -> &'a str {
        let mut line = line;
        for mark in &self.before {
            match line.trim_start().strip_prefix(*mark) {
                Some(rest) => line = rest.strip_prefix(' ').unwrap_or(rest),
                None => break,
            }
        }
        match self.behind.and_then(|c| line.trim_end().strip_suffix(c)) {
            Some(rest) => rest.trim_end(),
            None => line,
        }
    }
}

/// A line, and what the forms of `envelope` leave of it.
pub struct Seen<'a> {
    line: &'a str,
    /// What stands around the message in a known form, and the message.
    pub stripped: Stripped<'a>,
    /// What the message states.
    kind: Option<Kind>,
}

impl<'a> Seen<'a> {
    /// A line, looked at once.
    pub fn of(line: &'a str) -> Seen<'a> {
        let stripped = envelope::strip(line);
        Seen {
            line,
            stripped,
            kind: kind_of(stripped.text),
        }
    }

    /// Whether the forms of `envelope` leave a statement.
    fn is_known(&self) -> bool {
        self.stripped.is_framed && self.kind.is_some()
    }
}

/// The shapes of prefixes in `lines`, the most frequent first.
pub fn shapes(lines: &[Seen]) -> Vec<Shape> {
    let mut found: BTreeMap<Vec<Token>, Found> = BTreeMap::new();
    for seen in lines.iter().filter(|l| !l.is_known()) {
        let line = seen.line;
        let Some((at, is_call)) = anchor(line).filter(|(at, _)| *at > 0) else {
            continue;
        };
        let prefix = line[..at].trim_end();
        let is_same_place = seen.stripped.text.trim_start().len() == line.len() - at;
        if prefix.is_empty() || is_of_kernel(prefix) || is_same_place {
            continue;
        }
        let tokens = tokens(prefix);
        let key = tokens.iter().map(kind).collect();
        let entry = found.entry(key).or_insert_with(|| Found {
            tokens: tokens.clone(),
            lines: 0,
            others: 0,
            tails: vec![],
        });
        for (so_far, token) in entry.tokens.iter_mut().zip(&tokens) {
            if so_far != token {
                *so_far = Token::Wild;
            }
        }
        entry.lines += 1;
        entry.others += usize::from(!is_call);
        entry.tails.extend(line.trim_end().chars().last());
    }
    let mut shapes: Vec<Shape> = found
        .into_values()
        .filter(|f| f.lines >= LEAST && f.others > 0)
        .map(Found::shape)
        .collect();
    shapes.sort_by_key(|s| std::cmp::Reverse((s.lines, s.tokens.len())));
    shapes
}

/// What nearly all of `lines` begin with: the shape of a prefix that is before the lines that wrapped ones go on with,
/// too, which have nothing else of a log.
pub fn common(lines: &[Seen]) -> Option<Shape> {
    /// Tokens of such a prefix, and one more.
    const MOST: usize = 48;
    /// Bytes of a line that are looked at.
    const MOST_BYTES: usize = 160;
    let each: Vec<Vec<Token>> = lines
        .iter()
        .map(|l| l.line)
        .filter(|l| !l.trim().is_empty())
        .map(|l| {
            let mut tokens = tokens(&l[..l.floor_char_boundary(MOST_BYTES)]);
            tokens.truncate(MOST);
            tokens
        })
        .collect();
    let mut all: Vec<&[Token]> = each.iter().map(Vec::as_slice).collect();
    let mut common: Vec<Token> = vec![];
    while common.len() < MOST {
        let at = common.len();
        let mut counts: BTreeMap<Token, usize> = BTreeMap::new();
        for token in all.iter().filter_map(|t| t.get(at)) {
            *counts.entry(kind(token)).or_default() += 1;
        }
        let next = counts.into_iter().max_by_key(|(_, n)| *n);
        let Some((next, _)) = next.filter(|(_, n)| n * 10 >= each.len() * 9) else {
            break;
        };
        all.retain(|t| t.get(at).is_some_and(|t| kind(t) == next));
        let said = all.first().and_then(|t| t.get(at)).cloned();
        let is_same = all.iter().all(|t| t.get(at) == said.as_ref());
        common.push(said.filter(|_| is_same).unwrap_or(next));
    }
    if common.len() == MOST {
        // Its end is not known.
        return None;
    }
    let ends = |t: &Token| matches!(t, Token::Blank | Token::Sign(_));
    common.truncate(common.iter().rposition(ends)? + 1);
    let has_sign = common.iter().any(|t| matches!(t, Token::Sign(_)));
    (has_sign && all.len() >= LEAST).then_some(Shape {
        tokens: common,
        tail: None,
        lines: all.len(),
    })
}

struct Found {
    tokens: Vec<Token>,
    lines: usize,
    /// Lines that are no function of a call trace.
    others: usize,
    tails: Vec<char>,
}

impl Found {
    fn shape(self) -> Shape {
        let first = self.tails.first().copied();
        let tail =
            first.filter(|c| "\"'|$\\;,}`".contains(*c) && self.tails.iter().all(|t| t == c));
        Shape {
            tokens: self.tokens,
            tail,
            lines: self.lines,
        }
    }
}

/// Whether it is text of a report: then the line was wrapped anew, and has several statements.
fn is_of_kernel(prefix: &str) -> bool {
    prefix.contains("kB")
        || prefix.contains("anon:")
        || prefix.contains("reserve[]")
        || prefix.contains("pages ")
        || prefix.contains("[<")
        || prefix.contains("+0x")
        || is_piece_of_node(prefix)
}

/// Whether it is the end of a `Node 0` that was cut in two.
fn is_piece_of_node(prefix: &str) -> bool {
    let piece = prefix.trim().split_once(' ');
    piece.is_some_and(|(word, number)| {
        "Node".ends_with(word) && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// A token without what it says.
fn kind(token: &Token) -> Token {
    match token {
        Token::Word(_) => Token::Wild,
        other => other.clone(),
    }
}

fn tokens(prefix: &str) -> Vec<Token> {
    let mut out: Vec<Token> = vec![];
    let mut rest = prefix;
    while let Some(c) = rest.chars().next() {
        let len = run(rest, c, matches!(out.last(), Some(Token::Digits)));
        let token = match c {
            ' ' => Token::Blank,
            '0'..='9' => Token::Digits,
            c if c.is_alphabetic() || c == '_' => Token::Word(rest[..len].to_owned()),
            c => Token::Sign(c),
        };
        // Blanks behind a sign pad the number that follows.
        if token == Token::Digits
            && out.last() == Some(&Token::Blank)
            && matches!(
                out.len().checked_sub(2).map(|i| &out[i]),
                None | Some(Token::Sign(_))
            )
        {
            out.pop();
        }
        out.push(token);
        rest = &rest[len..];
    }
    out
}

/// Bytes of the token that a text begins with. Words hold digits and the signs of names, but for letters amid numbers, as
/// in `02T03`.
fn run(text: &str, first: char, is_amid_numbers: bool) -> usize {
    let is_part = |c: char| match first {
        ' ' => c == ' ',
        '0'..='9' => c.is_ascii_digit(),
        _ if is_amid_numbers => c.is_alphabetic(),
        _ => c.is_alphanumeric() || "_-.".contains(c),
    };
    if first == ' ' || first.is_alphanumeric() || first == '_' {
        let len = text.find(|c| !is_part(c)).unwrap_or(text.len());
        return len.max(first.len_utf8());
    }
    first.len_utf8()
}

impl Shape {
    /// The message of a line that has this shape.
    pub fn fit<'a>(&self, line: &'a str) -> Option<Fitted<'a>> {
        let mut rest = line;
        let mut words = String::new();
        let mut last: Option<&Token> = None;
        for token in &self.tokens {
            if *token == Token::Digits && matches!(last, None | Some(Token::Sign(_))) {
                rest = rest.trim_start_matches(' ');
            }
            let c = rest.chars().next()?;
            let len = run(rest, c, last == Some(&Token::Digits));
            let said = &rest[..len];
            let fits = match token {
                Token::Blank => c == ' ',
                Token::Digits => c.is_ascii_digit(),
                Token::Sign(sign) => c == *sign,
                Token::Word(word) => said == word,
                Token::Wild => c.is_alphabetic() || c == '_',
            };
            if !fits {
                return None;
            }
            if *token == Token::Wild {
                words.push_str(&name_of_host(said));
            }
            rest = &rest[len..];
            last = Some(token);
        }
        let prefix = &line[..line.len() - rest.len()];
        let text = rest.strip_prefix(' ').unwrap_or(rest);
        let text = match self.tail.and_then(|c| text.trim_end().strip_suffix(c)) {
            Some(text) => text,
            None => text,
        };
        Some(Fitted {
            prefix,
            text,
            words,
        })
    }
}

/// A word that differs from line to line, if it may name a host: neither a month or a day nor a level.
fn name_of_host(word: &str) -> String {
    const OTHERS: [&str; 41] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon",
        "tue", "wed", "thu", "fri", "sat", "sun", "am", "pm", "emerg", "alert", "crit", "critical",
        "err", "error", "warn", "warning", "notice", "info", "debug", "trace", "fatal", "v", "d",
        "i", "w", "e", "f", "n",
    ];
    let lower = word.to_ascii_lowercase();
    if OTHERS.contains(&lower.as_str()) {
        return String::new();
    }
    lower + " "
}

/// Whether the lines of a report stand in reverse order, the newest first.
pub fn is_reversed(lines: &[Seen]) -> bool {
    let rank = |kind: Kind| {
        Some(match kind {
            Kind::Failure | Kind::Oom => 0,
            Kind::Cpu => 1,
            Kind::MemInfo => 2,
            Kind::Node | Kind::Zone | Kind::Reserve => 4,
            Kind::Blocks => 5,
            Kind::Tail => 6,
            _ => return None,
        })
    };
    let (mut ups, mut downs) = (0, 0);
    let mut last: Option<i32> = None;
    let (mut later, mut earlier) = (0, 0);
    let mut last_time: Option<f64> = None;
    for line in lines {
        let time = line.stripped.uptime();
        if let (Some(a), Some(b)) = (last_time, time) {
            later += u32::from(b > a);
            earlier += u32::from(b < a);
        }
        last_time = time.or(last_time);
        let kind = match line.is_known() {
            true => line.kind,
            false => match anchor(line.line) {
                Some((at, false)) => kind_of(&line.line[at..]),
                _ => line.kind,
            },
        };
        let Some(r) = kind.and_then(rank) else {
            continue;
        };
        ups += u32::from(last.is_some_and(|l| r > l));
        downs += u32::from(last.is_some_and(|l| r < l));
        last = Some(r);
    }
    if later + earlier >= 4 {
        return earlier > 4 * later && downs >= ups;
    }
    downs >= 2 && downs > ups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<'a>(lines: &[&'a str]) -> Vec<Seen<'a>> {
        lines.iter().map(|l| Seen::of(l)).collect()
    }

    fn behind(prefixes: &[&str], tail: &str) -> Vec<String> {
        const TEXTS: [&str; 5] = [
            "Mem-Info:",
            "Node 0 DMA free:9728kB min:68kB",
            "lowmem_reserve[]: 0 1702 14665",
            "Node 0 DMA: 0*4kB 1*8kB (U) = 8kB",
            "418102 total pagecache pages",
        ];
        TEXTS
            .iter()
            .enumerate()
            .map(|(i, t)| format!("{}{t}{tail}", prefixes[i % prefixes.len()]))
            .collect()
    }

    /// `spec: K.3`
    #[test]
    fn a_prefix_is_what_all_lines_have_in_common() {
        for (prefixes, tail) in [
            (
                &[
                    "pod/a 2026-01-02T03:04:05.1Z stderr F ",
                    "pod/a 2026-01-02T13:04:05.123Z stderr F ",
                ][..],
                "",
            ),
            (
                &["{host=\"a\", job=\"x\"} 1 ", "{host=\"b\", job=\"x\"} 2 "],
                "",
            ),
            (
                &["ts=1.5 level=warn msg=\"", "ts=1.75 level=info msg=\""],
                "\"",
            ),
            (&["W/kernel  (    0): ", "E/kernel  (   12): "], ""),
        ] {
            let lines = behind(prefixes, tail);
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let shapes = shapes(&seen(&lines));
            let plain = behind(&[""], "");
            for (line, plain) in lines.iter().zip(&plain) {
                let fitted = shapes.iter().find_map(|s| s.fit(line));
                assert_eq!(fitted.map(|f| f.text), Some(plain.as_str()), "{line}");
            }
            assert_eq!(shapes[0].fit("active_file:3 and more"), None);
        }
    }

    #[test]
    fn hosts_are_told_apart_and_levels_are_not() {
        let lines = behind(&["web W: ", "db E: "], "");
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let shape = &shapes(&seen(&lines))[0];
        let words = |line: &str| shape.fit(line).unwrap().words;
        assert_eq!(words("web W: x"), words("web E: x"));
        assert_ne!(words("web W: x"), words("db W: x"));
    }

    #[test]
    fn text_of_a_report_is_no_prefix() {
        let line = "free_cma:0kB lowmem_reserve[]: 0 1827";
        assert_eq!(shapes(&seen(&[line; 4])), []);
    }

    #[test]
    fn marks_before_and_behind_each_line_are_taken_off() {
        let lines = behind(&["| "], "  |");
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.push("|]  |");
        let quoting = Quoting::of(&lines);
        assert_eq!(quoting.off(lines[0]), "Mem-Info:");
        assert_eq!(quoting.off(lines[5]), "]");
    }

    #[test]
    fn the_newest_line_first_is_seen() {
        let lines = behind(&["x "], "");
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert!(!is_reversed(&seen(&lines)));
        lines.reverse();
        assert!(is_reversed(&seen(&lines)));
    }
}
