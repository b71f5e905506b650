//! Phrases of the text.
//!
//! Invariant: a name of the trace cannot control the terminal.

use super::report::Who;
use crate::report::number::thousands;
use crate::report::screen::printable;

/// Widest name of a process.
const NAME: usize = 28;

/// A process by its name.
pub(super) fn who(who: &Who) -> String {
    let Some(process) = &who.process else {
        let unnamed = match who.interrupt {
            true => "(not named, interrupt)",
            false => "(not named)",
        };
        return unnamed.to_owned();
    };
    let name = printable(process);
    let mut short: String = name.chars().take(NAME).collect();
    if name.chars().nth(NAME).is_some() {
        short.push('…');
    }
    match who.interrupt {
        true => format!("{short} (interrupt)"),
        false => short,
    }
}

/// A number of things: `1 event`, `2 events`.
pub(super) fn counted(n: u64, one: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {one}{s}", thousands(n))
}
