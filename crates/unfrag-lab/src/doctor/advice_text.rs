//! Advice, history and withheld memory as text.
//!
//! Invariant: the first line says whether something is to be done; each advice says which number it changes.

use super::advice::{Advice, NotGiven};
use super::diagnosis::Diagnosis;
use crate::report::number::{bytes, duration, thousands};
use crate::report::screen::{Text, printable};
use std::fmt::Write as _;

pub(super) fn history(d: &Diagnosis, out: &mut Text) {
    for past in &d.history {
        let next = past.next.map_or(String::new(), |n| format!(" (why: {n})"));
        let _ = writeln!(out, "  {}{next}", past.text);
    }
}

pub(super) fn withheld(d: &Diagnosis, out: &mut Text) {
    for w in &d.withheld {
        let _ = writeln!(out, "  {}", printable(&w.text));
        if let Some(command) = &w.command {
            let _ = writeln!(out, "    gives it back: {}", printable(command));
        }
    }
}

/// That nothing is to be done, and what it is by.
pub(super) fn nothing_to_change(d: &Diagnosis) -> String {
    let mut out = "nothing to change by what was seen".to_owned();
    if let Some(n) = d.huge_pages.now {
        let size = bytes(n.saturating_mul(d.huge_page_bytes));
        let _ = write!(
            out,
            ", if {} huge pages at once ({size}) are enough",
            thousands(n)
        );
    }
    out
}

/// How often something happened while the host was watched; `None` where it was not, and where the kernel does not count
/// it, or counted backwards.
pub(super) fn while_watched(d: &Diagnosis, counter: &str) -> Option<u64> {
    d.watched.seconds?;
    let work = d.work.iter().find(|w| w.counter == counter)?;
    match work.total {
        0 => Some(0),
        _ => {
            let past = d.history.iter().find(|p| p.counter == counter)?;
            past.while_watched
        }
    }
}

/// That nothing is to be done, and what happened while the host was watched.
fn nothing(d: &Diagnosis) -> String {
    let mut out = nothing_to_change(d);
    let Some(seconds) = d.watched.seconds else {
        return out;
    };
    let time = duration(seconds);
    let each = [
        ("allocstall", "no request had to reclaim"),
        ("compact_stall", "none had to compact"),
        (
            "thp_fault_fallback",
            "no fault got a small page for a huge one",
        ),
    ];
    let each = each.map(|(counter, none)| (counter, none, while_watched(d, counter)));
    let some: Vec<String> = each
        .iter()
        .filter_map(|(counter, _, n)| {
            Some(format!("{counter} {}", thousands(n.filter(|&n| n > 0)?)))
        })
        .collect();
    let none: Vec<&str> = each
        .iter()
        .filter_map(|(_, none, n)| n.filter(|&n| n == 0).map(|_| *none))
        .collect();
    let _ = match (some.is_empty(), none.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => write!(out, "; in the last {time} {}", none.join(", ")),
        (false, _) => write!(
            out,
            "; what there was in the last {time} is too little for a change: {}",
            some.join(", ")
        ),
    };
    out
}

pub(super) fn advice(d: &Diagnosis, out: &mut Text) {
    if d.advice.is_empty() && d.advice_lacks.is_empty() {
        let _ = writeln!(out, "  {}", nothing(d));
    }
    for a in &d.advice {
        one(a, "", d, out);
    }
    not_given(&d.candidates, "not yet: ", "needs", d, out);
    not_given(&d.withdrawn, "withdrawn: ", "against it", d, out);
    for a in &d.if_more_is_needed {
        one(a, "if more huge pages are needed: # ", d, out);
    }
    if !d.advice_lacks.is_empty() {
        let _ = writeln!(
            out,
            "  not judged, as not seen: {}",
            d.advice_lacks.join(", ")
        );
    }
}

fn not_given(all: &[NotGiven], lead: &str, what: &str, d: &Diagnosis, out: &mut Text) {
    for n in all {
        one(&n.advice, lead, d, out);
        let _ = writeln!(out, "    {what}: {}", printable(&n.why_not));
    }
}

fn one(a: &Advice, lead: &str, d: &Diagnosis, out: &mut Text) {
    let now = a
        .current
        .as_ref()
        .map_or(String::new(), |c| format!("   (now {})", printable(c)));
    let _ = writeln!(out, "  {lead}{}{now}", a.command);
    let _ = writeln!(out, "    why:  {}", printable(&a.reason));
    if let Some(change) = &a.change {
        let _ = writeln!(out, "    changes: {}", printable(&change.in_words()));
    }
    if let Some(made) = &a.huge_pages {
        let made = made.in_words(d.huge_page_bytes);
        let _ = writeln!(out, "    huge pages: {}", printable(&made));
    }
    let _ = writeln!(out, "    cost: {}", a.cost);
    if let Some(p) = &a.prediction {
        let _ = writeln!(out, "    replay: {}", printable(p));
    }
}
