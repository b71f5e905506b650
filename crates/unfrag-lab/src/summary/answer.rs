//! The first sentences of a summary: what failed, who took most, and who waited.
//!
//! Invariant: only what the trace shows is said.

use super::phrases::{counted, who};
use super::report::{Requests, Summary};
use crate::report::number::thousands;
use std::collections::BTreeMap;

/// Rows of a list that the first sentences name.
const NAMED: usize = 2;

/// What failed, who took most, and who waited, as far as the trace shows it.
pub(super) fn sentences(s: &Summary) -> Option<String> {
    let mut all = vec![];
    if let Some(r) = &s.requests {
        all.push(requests_in_words(r));
    }
    let mut waited = vec![];
    if let Some(d) = s.direct_reclaim.as_ref().filter(|d| d.stalls > 0) {
        waited.push(format!("{} times for reclaim", thousands(d.stalls)));
    }
    let direct = s.compaction.as_ref().and_then(|c| c.direct.as_ref());
    let compacted: u64 = direct.into_iter().flatten().map(|a| a.count).sum();
    if compacted > 0 {
        waited.push(format!("{} times for compaction", thousands(compacted)));
    }
    if !waited.is_empty() {
        all.push(format!("Requests waited {}.", waited.join(" and ")));
    }
    (!all.is_empty()).then(|| all.join(" "))
}

fn requests_in_words(r: &Requests) -> String {
    let mut takers: Vec<_> = r.processes.iter().collect();
    takers.sort_by_key(|p| std::cmp::Reverse(p.pages));
    let takers = takers.iter().take(NAMED);
    let takers: Vec<String> = takers
        .map(|p| format!("{} ({} pages)", who(&p.who), thousands(p.pages)))
        .collect();
    let most = match takers.is_empty() {
        true => String::new(),
        false => format!(" Most is asked for by {}.", takers.join(" and ")),
    };
    let failed: u64 = r.failures.iter().map(|f| f.count).sum();
    if failed == 0 {
        return format!("None of {} failed.{most}", counted(r.count, "request"));
    }
    let mut kinds: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for f in &r.failures {
        *kinds.entry((who(&f.who), f.order)).or_default() += f.count;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let kinds = kinds.into_iter().take(NAMED);
    let kinds: Vec<String> = kinds
        .map(|((who, order), n)| format!("{} of order {order} by {who}", thousands(n)))
        .collect();
    format!(
        "{} of {} failed: most are {}.{most}",
        thousands(failed),
        counted(r.count, "request"),
        kinds.join(" and ")
    )
}
