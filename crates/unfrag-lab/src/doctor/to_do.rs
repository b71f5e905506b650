//! What to do, on the first screen: commands with the number that each changes.
//!
//! Invariant: below the first line, a line is a command or a comment of the shell, so that all of it can be given to one.

use super::advice::{Advice, NotGiven};
use super::advice_text::nothing_to_change;
use super::answer::preparing;
use super::diagnosis::Diagnosis;
use crate::report::number::thousands;
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// Appends it.
pub(super) fn push(d: &Diagnosis, screen: &Screen, out: &mut Text) {
    let lead = match (d.advice.is_empty(), d.advice_lacks.is_empty()) {
        (false, _) => "DO: as root".to_owned(),
        (true, true) => format!("DO: {}.", nothing_to_change(d)),
        (true, false) => format!(
            "DO: nothing by what was seen; not judged, as not seen: {}.",
            d.advice_lacks.join(", ")
        ),
    };
    wrapped(out, Place::Hanging("  "), screen.width, &lead);
    let mut one = |a: &Advice, lead: &str, last: &str| {
        let mut text = lead.to_owned();
        if let Some(change) = &a.change {
            text += &printable(&change.in_words());
        } else if let (Some(from), Some(to)) = (&a.current, &a.value) {
            let _ = write!(text, "from {} to {}", printable(from), printable(to));
        } else {
            text += &printable(&a.reason);
        }
        let _ = write!(text, "; cost: {}{last}", a.cost);
        wrapped(out, Place::Each("    # "), screen.width, &text);
        let _ = writeln!(out, "    {}", printable(&a.command));
    };
    for a in &d.advice {
        let why = format!("; why: {}", printable(&a.reason));
        one(
            a,
            "",
            if a.change.is_some() || a.value.is_some() {
                &why
            } else {
                ""
            },
        );
    }
    for a in &d.if_more_is_needed {
        one(a, "if more huge pages are needed: ", "");
    }
    for (what, n, cost, commands) in more(d) {
        let text = format!("up to {} huge pages, by {what}; cost: {cost}", thousands(n));
        wrapped(out, Place::Each("    # "), screen.width, &text);
        let _ = writeln!(out, "    {}", commands.join("; "));
    }
    for NotGiven { advice, why_not } in &d.candidates {
        let text = format!(
            "not yet: {}; needs {}",
            in_short(advice),
            printable(why_not)
        );
        wrapped(out, Place::Each("    # "), screen.width, &text);
    }
}

/// What makes more huge pages, by the forecast: how, how many then, the cost and the commands.
fn more(d: &Diagnosis) -> Vec<(&'static str, u64, &'static str, Vec<String>)> {
    let f = &d.huge_pages;
    let is_advised = |word: &str| {
        let mut all = d.advice.iter().chain(&d.if_more_is_needed);
        all.any(|a| a.command.contains(word))
    };
    let (Some(now), Some(compacted)) = (f.now, f.after_compaction) else {
        return vec![];
    };
    // Where compaction gives nothing the kernel may have none.
    if compacted <= now || is_advised("compact_memory") {
        return vec![];
    }
    let compaction = (
        "compaction",
        compacted,
        "a CPU is busy for seconds",
        preparing(d, false, true),
    );
    let dropping = f.after_reclaim.filter(|&n| n > compacted).map(|n| {
        (
            "dropping caches and compaction",
            n,
            "what was cached is read from disk again",
            preparing(d, true, true),
        )
    });
    std::iter::once(compaction).chain(dropping).collect()
}

/// What an advice would do, where its command is not to be carried out yet.
fn in_short(a: &Advice) -> String {
    let now = a
        .current
        .as_ref()
        .map_or(String::new(), |c| format!(" (now {})", printable(c)));
    match (&a.setting, &a.value) {
        (Some(setting), Some(value)) => {
            format!("{} = {}{now}", printable(setting), printable(value))
        }
        _ => match (
            a.command.contains("drop_caches"),
            a.command.contains("compact_memory"),
        ) {
            (true, true) => "dropping caches and compacting memory".into(),
            (true, false) => "dropping caches".into(),
            (false, true) => "compacting memory".into(),
            (false, false) => printable(&a.command),
        },
    }
}
