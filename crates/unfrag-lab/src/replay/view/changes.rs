//! What would be different, number by number: phrases of single changes, and the table that all views share.
//!
//! Invariant: a direction is named only where a bar holds no change; of all else it is said that nothing can be said.

use super::detail::Detail;
use crate::geometry::Sizes;
use crate::replay::answer::Report;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::what_if::change::{
    BEGIN_DIFFERENTLY, MODEL_IS_NOT_THERE, OWN_IS_OFF, OWN_IS_WORSE,
};
use crate::replay::answer::what_if::class::Asked;
use crate::replay::answer::what_if::found::{Change, Verdict, WhatIf};
use crate::replay::answer::what_if::quantity::{QUANTITIES, Quantity, Scale, is_of_free_memory};
use crate::report::number::thousands;
use crate::report::table::{Row, SideBySide};

/// Levels whose beginnings decide whether two replays can be compared.
const LEVELS: [&str; 3] = [
    "free_pages_end",
    "free_huge_blocks_end",
    "unusable_huge_end",
];

/// In the cell of a number of which nothing can be said.
pub(super) const CANNOT_SAY: &str = "cannot say";

/// What can be said of a kernel that was asked for beside the recorded one as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A number differs by more than its bar.
    Differs,
    /// What can be said is that nothing differs.
    Same,
    /// Nothing.
    Unknown,
    /// It begins with other memory than the host.
    Apart,
}

/// Kernels that were asked for beside the recorded one as it was, and what they would change.
pub(super) fn asked(report: &Report) -> impl Iterator<Item = (&KernelReport, &WhatIf)> {
    let all = report.kernels.iter();
    let all = all.filter_map(|k| Some((k, k.what_if.as_ref()?)));
    all.filter(|(_, w)| w.class.asked != Asked::Own)
}

/// What can be said of it; `None` of the recorded kernel as it was, and of a model that broke down.
pub(super) fn standing(kernel: &KernelReport) -> Option<Standing> {
    let what_if = kernel.what_if.as_ref()?;
    (what_if.class.asked != Asked::Own).then(|| standing_of(what_if))
}

fn standing_of(what_if: &WhatIf) -> Standing {
    let begins_apart = |c: &Change| c.reason.as_deref() == Some(BEGIN_DIFFERENTLY);
    let mut levels = what_if.changes.iter().filter(|c| LEVELS.contains(&c.name));
    if levels.any(begins_apart) {
        return Standing::Apart;
    }
    let of_something = || what_if.changes.iter().filter(|c| !is_of_nothing(c));
    let any = |verdict| of_something().any(|c| c.verdict == verdict);
    if any(Some(Verdict::More)) || any(Some(Verdict::Less)) {
        return Standing::Differs;
    }
    let mut huge = of_something().filter(|c| c.name == "free_huge_blocks_end");
    let huge_is_same = huge.all(|c| c.verdict == Some(Verdict::Same));
    match (any(Some(Verdict::Same)), any(None)) {
        (_, false) => Standing::Same,
        (true, true) if huge_is_same => Standing::Same,
        _ => Standing::Unknown,
    }
}

/// Whether a kernel's numbers answer anything: those of which nothing can be said stand in no short table.
pub(super) fn is_shown(kernel: &KernelReport, detail: Detail) -> bool {
    let silent = standing(kernel) == Some(Standing::Unknown);
    kernel.broke_down.is_none() && (detail == Detail::All || !silent)
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

/// Whether something is said of a number of a kernel: of the recorded one as it was, and of one that begins elsewhere, its
/// tables say it; of any other its what-if.
pub(super) fn is_said(kernel: &KernelReport, name: &str, detail: Detail) -> bool {
    let of_itself = matches!(standing(kernel), None | Some(Standing::Apart));
    let mut changes = kernel.what_if.iter().flat_map(|w| &w.changes);
    let is_said = match changes.find(|c| c.name == name) {
        Some(change) => change.verdict.is_some(),
        // What was not compared is no better than what was.
        None => !(is_of_free_memory(name) && withholds_free_memory(kernel)),
    };
    detail == Detail::All || of_itself || is_said
}

/// Whether nothing is said of its free memory, as the recorded kernel's model follows that worse than counting pages would.
pub(super) fn withholds_free_memory(kernel: &KernelReport) -> bool {
    let mut changes = kernel.what_if.iter().flat_map(|w| &w.changes);
    changes.any(|c| c.reason.as_deref() == Some(OWN_IS_WORSE))
}

/// Whether any kernel is shown of which the tables say all: the recorded one as it was, or one that begins elsewhere.
pub(super) fn shows_itself(report: &Report) -> bool {
    let mut all = report.kernels.iter().filter(|k| k.broke_down.is_none());
    all.any(|k| matches!(standing(k), None | Some(Standing::Apart)))
}

/// Kernels that were asked for and of which nothing can be said.
pub(super) fn silent(report: &Report) -> Vec<&str> {
    let all = report.kernels.iter();
    let all = all.filter(|k| standing(k) == Some(Standing::Unknown));
    all.map(|k| &k.kernel[..]).collect()
}

/// Whether the recorded kernel's model has half as many, or twice as many.
pub(super) fn is_far_off(change: &Change) -> bool {
    let (Some(own), Some(recorded)) = (change.own, change.recorded) else {
        return false;
    };
    (own - recorded).abs() > own.max(recorded) / 2.0
}

/// Whether its model errs so that its bar says nothing, either.
pub(super) fn is_off(change: &Change) -> bool {
    matches!(
        change.reason.as_deref(),
        Some(OWN_IS_OFF | OWN_IS_WORSE | MODEL_IS_NOT_THERE)
    )
}

/// Numbers of which the recorded kernel's model is far off, and by how much.
pub(super) fn off(what_if: &WhatIf, sizes: &Sizes) -> Vec<String> {
    let off = what_if.changes.iter();
    let off = off.filter(|c| c.reason.as_deref() == Some(OWN_IS_OFF));
    off.filter_map(|c| {
        let [own, recorded] = [c.own?, c.recorded?].map(|n| value(c, n));
        Some(format!("{}: {own}, the host {recorded}", what(c, sizes)))
    })
    .collect()
}

/// Its bar, unless that says nothing.
pub(super) fn bar(change: &Change) -> Option<String> {
    if is_off(change) {
        return None;
    }
    let [low, high] = change.bar?.map(|b| value(change, b));
    Some(match low == high {
        true => low,
        false => format!("{low} to {high}"),
    })
}

/// A direction as a word.
pub(super) fn direction(change: &Change, verdict: Verdict) -> &'static str {
    match (verdict, is_index(change)) {
        (Verdict::More, false) => "more",
        (Verdict::Less, false) => "fewer",
        (Verdict::Same, _) => "about the same",
        (Verdict::More, true) => "higher",
        (Verdict::Less, true) => "lower",
    }
}

/// What the number counts.
pub(super) fn what(change: &Change, sizes: &Sizes) -> String {
    quantity(change).map_or_else(|| change.name.into(), |q| q.words(sizes))
}

/// What can be said of a change.
pub(super) fn said(change: &Change, sizes: &Sizes) -> Option<String> {
    let verdict = change.verdict.filter(|v| *v != Verdict::Same)?;
    Some(format!(
        "{} {}: {} instead of {}",
        direction(change, verdict),
        what(change, sizes),
        bar(change)?,
        value(change, change.instead_of?)
    ))
}

/// Whether a change is of nothing at all: none recorded, and none predicted.
pub(super) fn is_of_nothing(change: &Change) -> bool {
    change.instead_of == Some(0.0) && change.asked == 0.0 && change.predicted == 0.0
}

/// The kinds of questions that were asked, where no prediction of any of them was ever held against a real kernel.
pub(super) fn unmeasured(report: &Report) -> Vec<String> {
    if asked(report).any(|(_, w)| w.comparisons > 0) {
        return vec![];
    }
    let mut kinds: Vec<String> = asked(report).map(|(_, w)| w.class.words()).collect();
    kinds.dedup();
    kinds
}

/// Where the bars come from, for each kernel that was asked for; each sentence once, with the kernels that it is of where it is
/// not of all.
pub fn sources(report: &Report) -> Vec<String> {
    let mut all: Vec<(String, Vec<&str>)> = vec![];
    for (k, w) in asked(report) {
        let from = source(k, w);
        match all.iter_mut().find(|(sentence, _)| *sentence == from) {
            Some((_, kernels)) => kernels.push(&k.kernel),
            None => all.push((from, vec![&k.kernel])),
        }
    }
    let several = all.len() > 1;
    let all = all.into_iter();
    all.map(|(sentence, kernels)| match several {
        true => format!("{}: {sentence}", kernels.join(", ")),
        false => sentence,
    })
    .collect()
}

fn source(k: &KernelReport, w: &WhatIf) -> String {
    match w.comparisons {
        0 if !k.guessed_settings.is_empty() => format!(
            "{} of the recorded host is a guess: the ranges have the largest error of all like kinds, and are guesses, too.",
            k.guessed_settings.join(", ")
        ),
        0 => format!(
            "Predictions of this kind ({}) were not measured: the ranges have the largest error of wider kinds, and are guesses.",
            w.class.words()
        ),
        n => format!(
            "The ranges come from the replays, and from {n} predictions of this kind ({}) that were held against real \
             kernels; loads: {}. Of five real numbers four should lie inside.",
            w.class.words(),
            w.loads.join(", ")
        ),
    }
}

/// Number by number; no column where nothing was asked beside the recorded kernel as it was. In short only numbers of which
/// something can be said of some kernel that can be compared.
pub fn table(report: &Report, detail: Detail) -> SideBySide {
    let all = detail == Detail::All;
    let comparable = |w: &WhatIf| !matches!(standing_of(w), Standing::Unknown | Standing::Apart);
    let columns = asked(report).filter(|(_, w)| all || comparable(w));
    let columns: Vec<(&KernelReport, &WhatIf)> = columns.collect();
    let mut heads = vec![];
    if !columns.is_empty() {
        heads.push("recorded".to_string());
    }
    heads.extend(columns.iter().map(|(k, _)| k.kernel.clone()));
    let sizes = &report.recording.sizes;
    let row = |q: &Quantity| -> Option<Row> {
        let of = |w: &WhatIf| w.changes.iter().find(|c| c.name == q.name).cloned();
        let cells: Vec<Option<Change>> = columns.iter().map(|(_, w)| of(w)).collect();
        let known = || cells.iter().flatten();
        let first = known().next()?;
        let differs = |c: &Change| c.verdict.is_some_and(|v| v != Verdict::Same);
        let says = |c: &Change| differs(c) && !is_of_nothing(c);
        if !all && !known().any(says) {
            return None;
        }
        let recorded = first
            .recorded
            .map_or_else(|| "-".into(), |r| value(first, r));
        let values = cells
            .iter()
            .map(|c| c.as_ref().map_or_else(|| "-".into(), cell));
        Some(Row {
            label: label(&q.words(sizes)),
            depth: 0,
            values: std::iter::once(recorded).chain(values).collect(),
        })
    };
    SideBySide {
        heads,
        rows: QUANTITIES.iter().filter_map(row).collect(),
    }
}

/// What a number counts, for a narrow column.
fn label(words: &str) -> String {
    capitalised(&words.replace("share of free memory in pieces", "share in pieces"))
}

fn cell(change: &Change) -> String {
    if is_off(change) {
        return CANNOT_SAY.into();
    }
    let bar = bar(change).unwrap_or_else(|| format!("about {}", value(change, change.predicted)));
    match change.verdict {
        Some(verdict) => format!("{bar}: {}", direction(change, verdict)),
        None if is_of_nothing(change) => bar,
        None => format!("{bar}: {CANNOT_SAY}"),
    }
}

/// With a capital letter.
pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
