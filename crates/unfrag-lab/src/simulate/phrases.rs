//! Phrases that the text and the page of a run share.

/// Virtual time in seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The kernel, and what was changed about it.
pub(super) fn kernel(o: &unfrag_machine::scenario::Outcome) -> String {
    if o.kernel_changes.is_empty() {
        return o.kernel.clone();
    }
    format!("{} ({})", o.kernel, o.kernel_changes.join(", "))
}
