//! What the terminal can show: its width, colours and characters.
//!
//! Invariant: colour appears on a terminal only.

use std::io::{self, IsTerminal};
use terminal_size::{Height, Width, terminal_size_of};
use unfrag_lab::report::screen::Screen;

/// Columns where no terminal tells.
const USUAL_WIDTH: usize = 100;
/// Fewest columns that a layout is made for.
const LEAST_WIDTH: usize = 40;

/// What the standard output of this process can show.
pub fn screen() -> Screen {
    let columns = match size() {
        Some((Width(columns), _)) => usize::from(columns),
        None => columns_of_environment().unwrap_or(USUAL_WIDTH),
    };
    Screen {
        width: columns.max(LEAST_WIDTH),
        color: io::stdout().is_terminal() && colors_wanted(),
        unicode: is_utf8(),
    }
}

/// Rows of the standard output, if that is a terminal.
pub fn height() -> Option<usize> {
    size().map(|(_, Height(rows))| usize::from(rows))
}

fn size() -> Option<(Width, Height)> {
    let out = io::stdout();
    let size = terminal_size_of(&out).filter(|(Width(columns), _)| *columns > 0);
    size.filter(|_| out.is_terminal())
}

/// Columns of the terminal that the standard error is.
pub fn columns_of_stderr() -> usize {
    terminal_size_of(io::stderr()).map_or(USUAL_WIDTH, |(Width(columns), _)| usize::from(columns))
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

/// Whether colours may be used on the standard error.
pub fn colors_on_stderr() -> bool {
    io::stderr().is_terminal() && colors_wanted()
}
