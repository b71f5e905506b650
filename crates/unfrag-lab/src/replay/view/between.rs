//! How kernels that were asked for beside the recorded one differ from each other.
//!
//! Invariant: a difference is named only where the ranges of both have nothing in common, and of both something is said.

use super::changes;
use super::changes::Standing;
use crate::replay::answer::Report;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::what_if::found::{Change, Verdict, WhatIf};

/// Differences that are named of two kernels.
const NAMED: usize = 3;

/// A sentence for each kernel but the first; none where fewer than two can be compared.
pub(super) fn sentences(report: &Report) -> Vec<String> {
    let comparable = |(k, _): &(&KernelReport, &WhatIf)| {
        k.broke_down.is_none() && changes::standing(k) != Some(Standing::Apart)
    };
    let mut asked = changes::asked(report).filter(comparable);
    let Some((first, of_first)) = asked.next() else {
        return vec![];
    };
    let sizes = &report.recording.sizes;
    let one = |(other, of_other): (&KernelReport, &WhatIf)| {
        let told = of_other.changes.iter().filter_map(|c| {
            let base = of_first.changes.iter().find(|b| b.name == c.name)?;
            let word = changes::direction(c, apart(base, c)?);
            let [to, from] = [changes::bar(c)?, changes::bar(base)?];
            let what = changes::what(c, sizes);
            Some(format!(
                "{word} {what}: {to} ({from} under {})",
                first.kernel
            ))
        });
        let told: Vec<String> = told.take(NAMED).collect();
        match told.is_empty() {
            true => format!(
                "{} and {} cannot be told apart.",
                first.kernel, other.kernel
            ),
            false => format!(
                "{} beside {}: {}.",
                other.kernel,
                first.kernel,
                told.join("; ")
            ),
        }
    };
    asked.map(one).collect()
}

/// Whether one has more or less than the base, if both ranges say something and have nothing in common.
fn apart(base: &Change, change: &Change) -> Option<Verdict> {
    if changes::is_off(base) || changes::is_off(change) {
        return None;
    }
    let ([low, high], [base_low, base_high]) = (change.bar?, base.bar?);
    match () {
        () if low > base_high => Some(Verdict::More),
        () if high < base_low => Some(Verdict::Less),
        () => None,
    }
}
