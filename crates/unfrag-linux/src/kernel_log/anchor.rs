//! Where in a line a statement begins that is known by its beginning, whatever stands before it. `spec: K.2, K.3`
//!
//! Invariant: a place is a beginning only if no letter or digit stands before it.

use super::envelope;
use super::statement::{Kind, kind_of};

/// Bytes of a line in which a beginning is looked for.
const MOST_PREFIX: usize = 400;

/// Whether such a statement is known by its first word, so that its place in a line is certain.
pub const fn is_exact(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::MemInfo
            | Kind::Counts
            | Kind::Node
            | Kind::Zone
            | Kind::Reserve
            | Kind::Blocks
            | Kind::Tail
            | Kind::Table
    )
}

/// Beginnings of other lines of a report.
const BEGINNINGS: [&str; 12] = [
    "CPU: ",
    "Pid: ",
    "Call Trace:",
    "Call trace:",
    "Backtrace:",
    "Hardware name:",
    "Workqueue:",
    "<TASK>",
    "</TASK>",
    "SLUB: Unable",
    "SLAB: Unable",
    "Mem-Info",
];

/// Where a statement begins in a line: the byte, and whether it is a function of a call trace, whose place is less sure.
pub fn anchor(text: &str) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let mut is_boundary = true;
    for (at, &b) in bytes.iter().enumerate().take(MOST_PREFIX) {
        let is_word = b.is_ascii_alphanumeric() || b == b'_';
        if is_boundary && (is_word || b == b'<') && begins(&text[at..], b) {
            return Some((at, false));
        }
        // What stands before a message ends in a blank or a sign; a value is behind its name.
        is_boundary = !is_word && b.is_ascii() && b != b'.' && b != b'-' && b != b'/' && b != b'*';
    }
    call(text).map(|at| (at, true))
}

fn begins(text: &str, first: u8) -> bool {
    match first {
        b'0'..=b'9' => {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let rest = &text[digits..];
            rest.starts_with(" pages ") && is_tail(rest)
                || rest.starts_with(" total pagecache pages")
        }
        b'C' | b'P' | b'B' | b'H' | b'W' | b'<' | b'S' | b'M'
            if BEGINNINGS.iter().any(|b| text.starts_with(b)) =>
        {
            true
        }
        // Names of zones and counts are words that may stand in any text: only with their numbers.
        _ => kind_of_exact(text),
    }
}

fn is_tail(rest: &str) -> bool {
    [
        " pages RAM",
        " pages of RAM",
        " pages HighMem",
        " pages reserved",
        " pages cma reserved",
        " pages hwpoisoned",
        " pages in swap cache",
    ]
    .iter()
    .any(|t| rest.starts_with(t))
}

fn kind_of_exact(text: &str) -> bool {
    // Most places of a line begin none of them; this is told by the first letter.
    let may = matches!(
        text.as_bytes()[0],
        b'N' | b'D'
            | b'H'
            | b'M'
            | b'T'
            | b'F'
            | b'S'
            | b'l'
            | b'p'
            | b'a'
            | b'i'
            | b'u'
            | b's'
            | b'm'
            | b'f'
            | b'k'
            | b'A'
    );
    may && kind_of(text).is_some_and(is_exact)
}

/// Where the function of a call trace begins: `? f+0x1/0x2`.
fn call(text: &str) -> Option<usize> {
    let plus = text.find("+0x")?;
    if !text[plus..].contains("/0x") {
        return None;
    }
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"_.$".contains(&b);
    let name = text[..plus]
        .bytes()
        .rev()
        .take_while(|b| is_part(*b))
        .count();
    let at = plus - name;
    (name > 0).then(|| match text[..at].strip_suffix("? ") {
        Some(before) => before.len(),
        None => at,
    })
}

/// Whether a text holds a statement of a report.
pub fn has_statement(text: &str) -> bool {
    // A beginning is known by its words, wherever they stand.
    const BEGINNINGS: [&str; 8] = [
        "page allocation failure",
        "page allocation stalls",
        "order allocation failed",
        "invoked oom-killer",
        "Unable to allocate memory on",
        "vmalloc: allocation failure",
        "vmalloc error: size",
        "vmap allocation for size",
    ];
    let message = envelope::strip(text).text;
    kind_of(message).is_some()
        || anchor(text).is_some()
        || BEGINNINGS.iter().any(|b| text.contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_found_behind_any_prefix() {
        for (text, at) in [
            ("x 1: Mem-Info:", 5),
            ("{a=\"b\"} lowmem_reserve[]: 0 1702 14665", 8),
            ("01-02 W : Node 0 DMA free:9728kB min:68kB", 10),
            ("7 418102 total pagecache pages", 2),
            ("MESSAGE= dump_stack_lvl+0x47/0x60", 9),
            ("MESSAGE= ? dump_stack_lvl+0x47/0x60", 9),
            ("m= active_file:218016 inactive_file:72616", 3),
        ] {
            assert_eq!(anchor(text).map(|a| a.0), Some(at), "{text}");
        }
        for text in [
            "nothing at all",
            "isolated(anon):0kB pages_scanned:34",
            "3*4kB 5*8kB",
        ] {
            assert_eq!(anchor(text), None, "{text}");
        }
    }
}
