//! Totals of a replay in words, with the kernel's name for them behind it where it has one.
//!
//! Invariant: a total that is not known here has its own name as words, so that none is lost.

use super::changes::capitalised;

/// Names in `totals`, and what they count.
const WORDS: [(&str, &str); 34] = [
    ("allocations", "Requests served"),
    ("frees", "Frees"),
    ("fallbacks", "Requests served from another type (fallbacks)"),
    ("pageblocks_claimed", "Blocks whose type was changed"),
    ("failures", "Requests that found no memory"),
    ("allocstall", "Waits for reclaim (allocstall)"),
    ("kswapd_wakeups", "Times that kswapd was woken"),
    ("pageoutrun", "Runs of kswapd (pageoutrun)"),
    (
        "pgsteal_kswapd",
        "Pages freed in the background (pgsteal_kswapd)",
    ),
    (
        "pgsteal_direct",
        "Pages freed while waiting (pgsteal_direct)",
    ),
    (
        "pgscan_kswapd",
        "Pages looked at in the background (pgscan_kswapd)",
    ),
    (
        "reclaimed_pages_as_given",
        "Pages freed as the recording says",
    ),
    ("compact_stall", "Waits for compaction (compact_stall)"),
    (
        "compact_success",
        "Compactions that succeeded (compact_success)",
    ),
    ("compact_fail", "Compactions in vain (compact_fail)"),
    (
        "compact_migrate_scanned",
        "Pages looked at to move them (compact_migrate_scanned)",
    ),
    (
        "compact_free_scanned",
        "Pages looked at to move to (compact_free_scanned)",
    ),
    ("pgmigrate_success", "Pages moved (pgmigrate_success)"),
    (
        "pgmigrate_fail",
        "Pages that could not be moved (pgmigrate_fail)",
    ),
    (
        "migrated_pages_as_given",
        "Pages moved as the recording says",
    ),
    (
        "migrated_pages_ignored",
        "Pages that the recording moved and the model did not",
    ),
    (
        "thp_fault_alloc",
        "Huge pages given at page faults (thp_fault_alloc)",
    ),
    (
        "thp_fault_fallback",
        "Page faults refused a huge page (thp_fault_fallback)",
    ),
    (
        "thp_collapse_alloc",
        "Huge pages given to khugepaged (thp_collapse_alloc)",
    ),
    (
        "thp_collapse_alloc_failed",
        "Huge pages refused to khugepaged (thp_collapse_alloc_failed)",
    ),
    (
        "huge_pages_gained",
        "Huge pages that the host refused and the model gives",
    ),
    (
        "huge_pages_lost",
        "Huge pages that the host gave and the model refuses",
    ),
    (
        "requests_that_would_wait",
        "Requests that would wait for other tasks",
    ),
    ("frees_dropped", "Frees of what the model had not given"),
    (
        "frees_without_allocation",
        "Frees without their request in the trace",
    ),
    (
        "kernel_stacks_inferred",
        "Kernel stacks inferred, as no event shows them",
    ),
    ("pages_allocated_unseen", "Pages taken without an event"),
    (
        "allocations_reordered",
        "Requests put in another order than the trace's",
    ),
    (
        "zone_checks_raced",
        "Requests that another CPU overtook at a watermark",
    ),
];

/// What a total counts.
pub(super) fn label(name: &str) -> String {
    let known = WORDS.iter().find(|(n, _)| *n == name);
    match known {
        Some((_, words)) => (*words).into(),
        None => capitalised(&name.replace('_', " ")),
    }
}
