//! What would be different, as sentences and as a table that all views share.
//!
//! Invariant: a direction is named only where a bar holds no change; of all else it is said that nothing can be said.

use crate::replay::answer::Report;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::what_if::class::Asked;
use crate::replay::answer::what_if::found::{Change, Verdict, WhatIf};
use crate::replay::answer::what_if::quantity::{QUANTITIES, Quantity, Scale};
use crate::report::number::thousands;
use crate::report::table::{Row, SideBySide};

/// Changes that the first sentence names; the table has all.
const NAMED: usize = 4;

/// Kernels that were asked for beside the recorded one as it was, and what they would change.
fn asked(report: &Report) -> impl Iterator<Item = (&KernelReport, &WhatIf)> {
    let all = report.kernels.iter();
    let all = all.filter_map(|k| Some((k, k.what_if.as_ref()?)));
    all.filter(|(_, w)| w.class.asked != Asked::Own)
}

fn quantity(change: &Change) -> Option<&'static Quantity> {
    QUANTITIES.iter().find(|q| q.name == change.name)
}

fn is_index(change: &Change) -> bool {
    quantity(change).is_some_and(|q| q.scale == Scale::Index)
}

/// A value of this number.
fn value(change: &Change, value: f64) -> String {
    match is_index(change) {
        true => format!("{value:.3}"),
        false => thousands(value as u64),
    }
}

fn bar(change: &Change, between: &str) -> Option<String> {
    let [low, high] = change.bar?.map(|b| value(change, b));
    Some(match low == high {
        true => low,
        false => format!("{low}{between}{high}"),
    })
}

/// A direction as a word.
fn direction(change: &Change, verdict: Verdict) -> &'static str {
    match (verdict, is_index(change)) {
        (Verdict::More, false) => "more",
        (Verdict::Less, false) => "fewer",
        (Verdict::Same, false) => "as many",
        (Verdict::More, true) => "higher",
        (Verdict::Less, true) => "lower",
        (Verdict::Same, true) => "as high",
    }
}

/// What the number counts.
fn what(change: &Change) -> &'static str {
    quantity(change).map_or(change.name, |q| q.what)
}

/// `a`, `a and b`, `a, b and c`, and how many more there are than are named.
fn list(names: &[&str]) -> String {
    let rest = names.len().saturating_sub(NAMED);
    let (last, others) = match names {
        [] => return String::new(),
        _ if rest > 0 => (format!("{rest} more"), &names[..NAMED]),
        [others @ .., last] => ((*last).to_string(), others),
    };
    match others {
        [] => last,
        _ => format!("{} and {last}", others.join(", ")),
    }
}

/// What can be said of a change.
fn said(change: &Change) -> Option<String> {
    let verdict = change.verdict.filter(|v| *v != Verdict::Same)?;
    Some(format!(
        "{} {}: {} instead of {}",
        direction(change, verdict),
        what(change),
        bar(change, " to ")?,
        value(change, change.instead_of?)
    ))
}

/// Whether a change is of nothing at all: none recorded, and none predicted.
fn is_of_nothing(change: &Change) -> bool {
    change.instead_of == Some(0.0) && change.asked == 0.0 && change.predicted == 0.0
}

/// For each kernel what would be different, in a sentence or two.
pub fn sentences(report: &Report) -> Vec<String> {
    asked(report).map(|(k, w)| sentence(k, w)).collect()
}

/// For each kernel whose replay broke down why there is no answer.
pub fn without_answer(report: &Report) -> Vec<String> {
    let broken = report.kernels.iter();
    let broken = broken.filter_map(|k| Some((&k.kernel, k.broke_down.as_ref()?)));
    broken
        .map(|(kernel, why)| format!("No answer under {kernel}: {why}."))
        .collect()
}

/// Kinds of questions that were asked and of which no prediction was ever held against a real kernel.
pub(super) fn unmeasured(report: &Report) -> Vec<String> {
    let kinds = asked(report).filter(|(_, w)| w.comparisons == 0);
    let mut kinds: Vec<String> = kinds.map(|(_, w)| w.class.words()).collect();
    kinds.dedup();
    kinds
}

fn sentence(kernel: &KernelReport, what_if: &WhatIf) -> String {
    let changes = || what_if.changes.iter().filter(|c| !is_of_nothing(c));
    let differ: Vec<String> = changes().filter_map(said).collect();
    let unknown = changes().filter(|c| c.verdict.is_none());
    let unknown: Vec<&str> = unknown.map(what).collect();
    let same = changes().filter(|c| c.verdict == Some(Verdict::Same));
    let same: Vec<&str> = same.map(what).collect();
    let mut parts = vec![];
    if !differ.is_empty() {
        let rest = differ.len().saturating_sub(NAMED);
        let more = match rest {
            0 => String::new(),
            n => format!("; {n} more in the table"),
        };
        let named = &differ[..differ.len() - rest];
        parts.push(format!("{}{more}.", named.join("; ")));
    }
    if !same.is_empty() {
        parts.push(format!("About the same: {}.", list(&same)));
    }
    if !unknown.is_empty() {
        let of = list(&unknown);
        parts.push(format!(
            "Cannot say whether there is more or less of: {of}."
        ));
    }
    if parts.is_empty() {
        parts.push("nothing differs.".into());
    }
    format!("Under {}: {}", kernel.kernel, parts.join(" "))
}

/// Where the bars come from, for each kernel that was asked for; each sentence once.
pub fn sources(report: &Report) -> Vec<String> {
    let mut all: Vec<String> = vec![];
    for (k, w) in asked(report) {
        let from = match w.comparisons {
            0 if !k.guessed_settings.is_empty() => format!(
                "{} of the recorded host is a guess: the bars have the largest error of all like kinds, and are guesses, too.",
                k.guessed_settings.join(", ")
            ),
            0 => format!(
                "Predictions of this kind ({}) were not measured: the bars have the largest error of wider kinds, and are guesses.",
                w.class.words()
            ),
            n => format!(
                "Bars come from the replays, and from {n} predictions of this kind ({}) that were held against real \
                 kernels; loads: {}. Of five real numbers four should lie inside.",
                w.class.words(),
                w.loads.join(", ")
            ),
        };
        if !all.contains(&from) {
            all.push(from);
        }
    }
    all
}

/// Number by number; no column where nothing was asked beside the recorded kernel as it was.
pub fn table(report: &Report) -> SideBySide {
    let columns: Vec<(&KernelReport, &WhatIf)> = asked(report).collect();
    let mut heads = vec![];
    if !columns.is_empty() {
        heads.push("recorded".to_string());
    }
    heads.extend(columns.iter().map(|(k, _)| k.kernel.clone()));
    let row = |q: &Quantity| -> Option<Row> {
        let of = |w: &WhatIf| w.changes.iter().find(|c| c.name == q.name).cloned();
        let cells: Vec<Option<Change>> = columns.iter().map(|(_, w)| of(w)).collect();
        let first = cells.iter().flatten().next()?;
        let recorded = first
            .recorded
            .map_or_else(|| "-".into(), |r| value(first, r));
        let values = cells
            .iter()
            .map(|c| c.as_ref().map_or_else(|| "-".into(), cell));
        Some(Row {
            label: capitalised(q.what),
            depth: 0,
            values: std::iter::once(recorded).chain(values).collect(),
        })
    };
    SideBySide {
        heads,
        rows: QUANTITIES.iter().filter_map(row).collect(),
    }
}

fn cell(change: &Change) -> String {
    let bar =
        bar(change, " - ").unwrap_or_else(|| format!("about {}", value(change, change.predicted)));
    match change.verdict {
        Some(verdict) => format!("{bar} {}", direction(change, verdict)),
        None if is_of_nothing(change) => bar,
        None => format!("{bar} cannot say"),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
