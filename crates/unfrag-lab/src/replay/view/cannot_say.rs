//! Why a replay cannot say something, in sentences.
//!
//! Invariant: each reason is one that stands beside a number of a what-if, and is said once.

use super::changes;
use super::changes::Standing;
use crate::replay::answer::Report;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::what_if::change::{
    BAR_IS_WIDER, BEGIN_DIFFERENTLY, MODEL_IS_NOT_THERE, OWN_IS_OFF,
};
use crate::replay::answer::what_if::found::WhatIf;
use crate::report::number::thousands;
use std::collections::BTreeMap;

/// Numbers that are named.
const NAMED: usize = 4;

/// That the recorded kernel's model follows free memory worse than counting would, so that no other says anything of it.
pub(super) fn of(
    report: &Report,
    name: impl Fn(&KernelReport) -> String,
    huge_pages: &str,
) -> Option<String> {
    let asked = changes::asked(report).map(|(k, _)| k);
    let asked = asked.filter(|k| changes::standing(k) != Some(Standing::Apart));
    let asked: Vec<&KernelReport> = asked.collect();
    let first = asked.iter().find(|k| changes::withholds_free_memory(k))?;
    let names: Vec<String> = asked.iter().map(|k| name(k)).collect();
    let names = match &names[..] {
        [others @ .., last] if !others.is_empty() => {
            format!("{} or {last}", others.join(", "))
        }
        names => names.concat(),
    };
    let of_ends = |name: &str| {
        first
            .what_if
            .as_ref()?
            .changes
            .iter()
            .find(|c| c.name == name)
    };
    let huge = of_ends("free_huge_blocks_end").filter(|c| changes::is_far_off(c));
    let numbers = huge.and_then(|c| Some((c.own?, c.recorded?)));
    let why = match numbers {
        Some((own, host)) => format!(
            "the model already has {} {} at the end where the host had {}",
            thousands(own as u64),
            huge_pages,
            thousands(host as u64)
        ),
        None => "the model already follows free memory worse than counting pages would (see Trust)"
            .into(),
    };
    Some(format!(
        "This recording cannot say what {names} would do to free memory and huge pages: under its own kernel {why}."
    ))
}

/// How the sentence begins that has what the recorded kernel's model is off in.
pub(super) const NOTHING_SAID: &str =
    "Nothing is said of what the model of the recorded kernel is far off in: ";

/// By how much the recorded kernel's model is off, in the numbers of which nothing is said for that.
pub(super) fn off(all: &[String]) -> Option<String> {
    let named = &all[..all.len().min(NAMED)];
    let more = match all.len() - named.len() {
        0 => String::new(),
        n => format!("; {n} more"),
    };
    let named = (!named.is_empty()).then(|| named.join("; "))?;
    Some(format!("{NOTHING_SAID}{named}{more}."))
}

/// Why nothing can be said, each reason once.
pub(super) fn reasons(what_if: &WhatIf) -> String {
    let unknown = what_if.changes.iter().filter(|c| c.verdict.is_none());
    let unknown = unknown.filter(|c| !changes::is_of_nothing(c));
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in unknown.filter_map(|c| c.reason.as_deref()) {
        *all.entry(reason).or_default() += 1;
    }
    all.remove(BEGIN_DIFFERENTLY);
    let words = all.iter().map(|(reason, n)| {
        let of = match n {
            1 => "one number",
            _ => "several numbers",
        };
        match *reason {
            BAR_IS_WIDER => format!(
                "{of} may come out above or below what the host had (four of five such hosts lie between)"
            ),
            OWN_IS_OFF => format!("in {of} the model is far off this host under its own kernel already"),
            MODEL_IS_NOT_THERE => format!("in {of} the model moves to the other side of what the host had"),
            other => other.into(),
        }
    });
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => "nothing was measured".into(),
        false => words.join("; "),
    }
}
