//! Whether large blocks are wanted: requests for them that went unserved.
//!
//! Invariant: what was counted while the host was watched and what was counted since boot are never in one sum.

use super::diagnosis::Diagnosis;
use super::watch::{Step, Watch};
use super::work::share_of;
use crate::report::number::{duration, percent, thousands};

/// Share of compactions in vain above which they are a need.
const IN_VAIN: f64 = 0.50;
/// Share of faults without a huge page above which they are a need.
const FALLEN_BACK: f64 = 0.25;
/// Compactions and faults from which a share says something.
const SOME: u64 = 20;

/// A counter's value since boot; `None` if the kernel does not have it.
fn counted(d: &Diagnosis, name: &str) -> Option<u64> {
    d.work.iter().find(|w| w.counter == name).map(|w| w.total)
}

/// Compactions that a request waited for and the share of them in vain, where that is most of them: by a source of counts.
fn mostly_in_vain(of: impl Fn(&str) -> Option<u64>) -> Option<(u64, f64)> {
    let (failed, done) = (of("compact_fail")?, of("compact_success")?);
    let (all, share) = (failed.saturating_add(done), share_of(failed, done));
    (share > IN_VAIN && all >= SOME).then_some((all, share))
}

/// The same, while the host was watched.
pub(super) fn in_vain_while_watched(watch: &Watch) -> Option<(u64, f64)> {
    mostly_in_vain(|name| watch.rose(name))
}

/// The same, since boot.
pub(super) fn in_vain_since_boot(d: &Diagnosis) -> Option<(u64, f64)> {
    mostly_in_vain(|name| counted(d, name))
}

/// Faults that wanted a huge page and the share that got small pages, where there were some.
pub(super) fn fallen_back(of: impl Fn(&str) -> Option<u64>) -> Option<(u64, f64)> {
    let (refused, given) = (of("thp_fault_fallback")?, of("thp_fault_alloc")?);
    let all = refused.saturating_add(given);
    (all >= SOME).then(|| (all, share_of(refused, given)))
}

/// Compactions and the share of them in vain, as a clause; `when` they were counted.
pub(super) fn in_vain_clause((n, share): (u64, f64), when: &str) -> String {
    format!(
        "{} of {} compactions that a request waited for {when} were in vain",
        percent(share),
        thousands(n)
    )
}

/// A clause for each kind of request for large blocks that went unserved, by a source of counts; `when` they were made.
fn unserved(of: impl Fn(&str) -> Option<u64>, when: &str) -> Vec<String> {
    let vain = mostly_in_vain(&of).map(|found| in_vain_clause(found, when));
    let fell = fallen_back(&of).filter(|(_, share)| *share > FALLEN_BACK);
    let fell = fell.map(|(n, share)| {
        format!(
            "{} of {} faults that wanted a huge page {when} got small pages",
            percent(share),
            thousands(n)
        )
    });
    vain.into_iter().chain(fell).collect()
}

/// Why large blocks are wanted now: a clause for each kind of request that went unserved while the host was watched.
pub(super) fn needs(watch: &Watch) -> Vec<String> {
    let Some(time) = watch.watched().seconds.map(duration) else {
        return vec![];
    };
    let mut all = unserved(|name| watch.rose(name), &format!("in the last {time}"));
    if let Some(n) = watch.rose("htlb_buddy_alloc_fail").filter(|&n| n > 0) {
        all.push(format!(
            "the hugetlb pool did not get {} huge pages in the last {time}",
            thousands(n)
        ));
    }
    all
}

/// Why large blocks may be wanted, where the host was not watched.
pub(super) fn past_needs(d: &Diagnosis) -> Vec<String> {
    unserved(|name| counted(d, name), "since boot")
}

/// Whether in a step more than a share of both counters was of the first.
pub(super) fn most(step: &Step, no: &str, yes: &str, share: f64) -> bool {
    let rose = |name| step.rose(name).unwrap_or(0);
    rose(no) > 0 && share_of(rose(no), rose(yes)) > share
}

/// Whether compactions were in vain mostly in a step.
pub(super) fn in_vain(step: &Step) -> bool {
    most(step, "compact_fail", "compact_success", IN_VAIN)
}

/// Whether requests for large blocks went unserved in a step.
pub(super) fn wants_large(step: &Step) -> bool {
    in_vain(step)
        || most(step, "thp_fault_fallback", "thp_fault_alloc", FALLEN_BACK)
        || step.rose("htlb_buddy_alloc_fail").is_some_and(|n| n > 0)
}
