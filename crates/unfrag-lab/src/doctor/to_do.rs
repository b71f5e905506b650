//! What to do, on the first screen: commands with the number that each changes.
//!
//! Invariant: below the first line, a line is a command or a comment of the shell, so that all of it can be given to one.

use super::advice::{Advice, NotGiven};
use super::advice_text::{nothing_to_change, while_watched};
use super::diagnosis::Diagnosis;
use super::standing::LONGER;
use crate::report::number::thousands;
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// Appends it; `command` is the one that asked.
pub(super) fn push(d: &Diagnosis, command: &str, screen: &Screen, out: &mut Text) {
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
        if let Some(made) = &a.huge_pages {
            let made = made.in_words(d.huge_page_bytes);
            let _ = write!(text, "; huge pages: {}", printable(&made));
        }
        let _ = write!(text, "; cost: {}{last}", a.cost);
        wrapped(out, Place::Each("    # "), screen.width, &text);
        let _ = writeln!(out, "    {}", printable(&a.command));
    };
    for a in &d.advice {
        let why = format!("; why: {}", printable(before_zones(&a.reason)));
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
    if let Some((text, n)) = more(d) {
        wrapped(out, Place::Each("    # "), screen.width, &text);
        let _ = writeln!(out, "    {command} --huge {n}");
    }
    if let Some(text) = faults_that_wait(d) {
        wrapped(out, Place::Each("    # "), screen.width, &text);
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

/// The setting that makes faults wait, where requests compacted and faults got no huge page, and nothing else is said of it.
fn faults_that_wait(d: &Diagnosis) -> Option<String> {
    let rose = |counter| while_watched(d, counter).is_some_and(|n| n > 0);
    let others = d.candidates.iter().chain(&d.withdrawn).map(|n| &n.advice);
    let mut all = d.advice.iter().chain(others);
    let is_said = all.any(|a| a.command.contains("transparent_hugepage/defrag"));
    if is_said || !rose("compact_stall") || !rose("thp_fault_fallback") {
        return None;
    }
    match d.settings.get("thp_defrag").map(String::as_str) {
        Some("always") => Some(format!(
            "not yet: another transparent_hugepage/defrag (now always: each fault that may have a huge page waits for compaction); needs {LONGER}, in half of whose steps most waits are in vain"
        )),
        None => Some("not judged, as it was not read: transparent_hugepage/defrag; with always each fault that may have a huge page waits for compaction".to_owned()),
        Some(_) => None,
    }
}

/// A reason without what it says of single zones, which the cause says of all: unless it says nothing else.
fn before_zones(reason: &str) -> &str {
    reason
        .split_once("; node ")
        .map_or(reason, |(before, _)| before)
}

/// How many more huge pages there would be by which means, and how many at most: the answer to that number has the commands.
fn more(d: &Diagnosis) -> Option<(String, u64)> {
    let f = &d.huge_pages;
    let is_advised = |word: &str| {
        let mut all = d.advice.iter().chain(&d.if_more_is_needed);
        all.any(|a| a.command.contains(word))
    };
    let (now, compacted) = (f.now?, f.after_compaction?);
    // Where compaction gives nothing the kernel may have none.
    if compacted <= now || is_advised("compact_memory") {
        return None;
    }
    let mut text = format!("up to {} huge pages by compaction", thousands(compacted));
    let dropped = f.after_reclaim.filter(|&n| n > compacted);
    if let Some(n) = dropped {
        let _ = write!(text, ", up to {} by dropping caches too", thousands(n));
    }
    text += ": this prints the commands";
    Some((text, dropped.unwrap_or(compacted)))
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
