//! Phrases that the text and the page of a run share.

use unfrag_machine::program::report::HighOrderReport;

/// Virtual time in seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// What to keep in mind about attempts at large blocks, if it is a kernel that would compact.
pub(super) fn caution(o: &unfrag_machine::scenario::Outcome) -> Option<String> {
    let sw = unfrag::preset(&o.kernel)?.rules;
    let compacts = sw.reclaim.high_order == unfrag::kernel::HighOrder::Compaction;
    let short = |r: &HighOrderReport| r.successes() < r.attempts.len();
    (compacts && o.programs.high_order.iter().any(short)).then(|| {
        format!(
            "The machine has no compaction yet: a real {} may get blocks that failed here.",
            o.kernel
        )
    })
}

/// The kernel, and what was changed about it.
pub(super) fn kernel(o: &unfrag_machine::scenario::Outcome) -> String {
    if o.kernel_changes.is_empty() {
        return o.kernel.clone();
    }
    format!("{} ({})", o.kernel, o.kernel_changes.join(", "))
}
