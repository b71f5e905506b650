//! What to do, on the first screen: commands with the number that each changes; below, what is only for who needs more.
//!
//! Invariant: below the first line of `DO:` a line is a command or a comment of the shell, so that all of it can be given to
//! one, and each command is one that is advised. What need not be done has a block of its own, in comments alone.

use super::advice::{Advice, Lasts, NotGiven};
use super::advice_text::nothing_to_change;
use super::answer::short_lists_note;
use super::asked::Asked;
use super::diagnosis::Diagnosis;
use super::judged_settings::before_zones;
use crate::report::number::thousands;
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// Appends it.
pub(super) fn push(d: &Diagnosis, asked: Asked, screen: &Screen, out: &mut Text) {
    let lead = match (d.advice.is_empty(), d.advice_lacks.is_empty()) {
        (false, _) => "DO: as root".to_owned(),
        (true, true) => format!("DO: {}.", nothing_to_change(d)),
        (true, false) => format!(
            "DO: nothing by what was seen; not judged, as not seen: {}.",
            d.advice_lacks.join(", ")
        ),
    };
    wrapped(out, Place::Hanging("  "), screen.width, &lead);
    let comment =
        |out: &mut Text, text: &str| wrapped(out, Place::Each("    # "), screen.width, text);
    for a in &d.advice {
        let mut text = what_for(a, d);
        if a.change.is_some() || a.value.is_some() {
            // The gravest is enough: all that happens stands above.
            let why = before_zones(&a.reason).split("; ").next();
            let _ = write!(text, "; why: {}", printable(why.unwrap_or_default()));
        }
        if let Some(note) = short_lists_note(&a.command) {
            let _ = write!(text, "; {note}");
        }
        comment(out, &text);
        let _ = writeln!(out, "    {}", printable(&a.command));
    }
    let more = more(d, asked);
    if !d.if_more_is_needed.is_empty() || more.is_some() {
        out.push_str("IF MORE IS NEEDED (nothing of this has to be done):\n");
        for a in &d.if_more_is_needed {
            comment(out, &what_for(a, d));
            let _ = writeln!(out, "    # {}", printable(&a.command));
        }
        if let Some(more) = more {
            comment(out, &more);
        }
    }
    let once = d
        .candidates
        .iter()
        .filter(|n| n.advice.lasts != Lasts::Setting);
    for NotGiven { advice, why_not } in once {
        let text = format!(
            "NOT YET: {}; needs {}.",
            in_short(advice),
            printable(why_not)
        );
        wrapped(out, Place::Hanging("  "), screen.width, &text);
    }
}

/// The number that an advice changes, the huge pages that it makes, and its cost.
fn what_for(a: &Advice, d: &Diagnosis) -> String {
    let mut text = if let Some(change) = &a.change {
        printable(&change.in_words())
    } else if let (Some(from), Some(to)) = (&a.current, &a.value) {
        format!("from {} to {}", printable(from), printable(to))
    } else {
        printable(&a.reason)
    };
    if let Some(made) = &a.huge_pages {
        let made = made.how_many(d.huge_page_bytes);
        let _ = write!(text, "; huge pages: {}", printable(&made));
    }
    let _ = write!(text, "; cost: {}", a.cost);
    text
}

/// How many more huge pages there are for certain, and by the model, with the command that prints the commands.
fn more(d: &Diagnosis, asked: Asked) -> Option<String> {
    let f = &d.huge_pages;
    let (now, by_model) = f.now.zip(f.after_reclaim.max(f.after_compaction))?;
    let certain = asked.rooms.iter().flatten().map(|r| r.at_least).max();
    let certain = certain.filter(|&n| n > now);
    let by_model = Some(by_model).filter(|&n| n > certain.unwrap_or(now));
    let (what, n) = match (certain, by_model) {
        (None, None) => return None,
        (Some(n), None) => (format!("{} for certain", thousands(n)), n.to_string()),
        (None, Some(n)) => (
            format!("{} by the model (a try)", thousands(n)),
            n.to_string(),
        ),
        (Some(n), Some(m)) => (
            format!(
                "{} for certain, {} by the model (a try)",
                thousands(n),
                thousands(m)
            ),
            "N".to_owned(),
        ),
    };
    Some(format!(
        "huge pages by compaction or dropping caches: {what}: {} --huge {n}",
        asked.command
    ))
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
