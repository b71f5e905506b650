//! What the terminal can show: its width, colours and characters.
//!
//! Invariant: colour appears on a terminal only.

use std::io::{self, IsTerminal};
use terminal_size::{Height, Width, terminal_size_of};

/// What the standard output can show.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Rows, on a terminal.
    pub height: Option<usize>,
    /// Whether ANSI colours may be used.
    pub color: bool,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

/// Columns where no terminal tells.
const USUAL_WIDTH: usize = 100;
/// Fewest columns that a layout is made for.
const LEAST_WIDTH: usize = 40;

impl Screen {
    /// What the standard output of this process can show.
    pub fn stdout() -> Screen {
        let out = io::stdout();
        let terminal = out.is_terminal();
        let size = terminal_size_of(&out).filter(|(Width(w), _)| terminal && *w > 0);
        let columns = match size {
            Some((Width(w), _)) => usize::from(w),
            None => columns_of_environment().unwrap_or(USUAL_WIDTH),
        };
        Screen {
            width: columns.max(LEAST_WIDTH),
            height: size.map(|(_, Height(h))| usize::from(h)),
            color: terminal && colors_wanted(),
            unicode: is_utf8(),
        }
    }
}

fn columns_of_environment() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

fn colors_wanted() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Whether the locale uses UTF-8; true if none is set.
fn is_utf8() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|n| std::env::var(n).ok())
        .find(|v| !v.is_empty());
    named.is_none_or(|v| {
        let v = v.to_ascii_lowercase();
        v.contains("utf-8") || v.contains("utf8")
    })
}

/// Escape sequences that begin and end an emphasised word on the standard error; empty without colour.
pub fn error_colors() -> (&'static str, &'static str) {
    if io::stderr().is_terminal() && colors_wanted() {
        ("\x1b[1;31m", "\x1b[0m")
    } else {
        ("", "")
    }
}

/// Text of an input with its control characters replaced, so that it cannot control the terminal.
pub fn printable(text: &str) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    text.chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("s\x1b[2J\n0001"), "s?[2J?0001");
    }
}
