//! Tables of other programs that hold the numbers of procfs files, written as those files.
//!
//! - [`free`]: tables of free blocks. [`slabs`]: tables of slab caches. [`metrics`]: what an exporter answers. [`nodes`]:
//!   what sysfs tells of each node. `kinds`: the names of these tables.
//!
//! Invariant: only rows with all numbers are taken; a table without any is an error that names it.

mod free;
mod kinds;
mod metrics;
pub(super) mod nodes;
mod slabs;

use crate::error::{Error, Result};
pub(super) use kinds::{COUNTS, CRASH, METRICS, NESTED, NODES, Named, SLAB_TOOL, SLABTOP, TABLE};

/// The kind of table that a line belongs to, and its key where it comes once in a table. `current` is the file that the
/// line before belongs to.
pub(super) fn claim(
    text: &str,
    current: Option<&'static str>,
) -> Option<(&'static str, Option<String>)> {
    metrics::claim(text, current)
        .or_else(|| slabs::claim(text, current))
        .or_else(|| free::claim(text, current))
        .or_else(|| nodes::claim(text))
}

/// The file of a snapshot that a kind of text stands for.
pub(super) fn stands_for(kind: &'static str) -> &'static str {
    match kind {
        SLAB_TOOL | SLABTOP => "slabinfo",
        CRASH | TABLE | NESTED | COUNTS => "buddyinfo",
        other => other,
    }
}

/// The files that a table of `kind` stands for, a list for each host that it is of; `None` if it is no table.
///
/// # Errors
/// If no row of the table has the numbers.
pub(super) fn convert(kind: &str, text: &str) -> Result<Option<Vec<Vec<Named>>>> {
    let one =
        |name: &str, text: Option<String>| text.map(|text| vec![vec![(name.to_owned(), text)]]);
    let converted = match kind {
        SLAB_TOOL => one("slabinfo", slabs::of_tool(text)),
        SLABTOP => one("slabinfo", slabs::of_slabtop(text)),
        CRASH => one("buddyinfo", free::of_crash(text)),
        TABLE => one("buddyinfo", free::of_table(text)),
        NESTED => one("buddyinfo", free::of_nested(text)),
        COUNTS => one("buddyinfo", free::of_counts(text)),
        METRICS => metrics::hosts(text),
        NODES => nodes::of_text(text).map(|files| vec![files]),
        _ => return Ok(None),
    };
    converted.map(Some).ok_or_else(|| {
        Error::unsupported(format!(
            "this looks like {kind}, but no row has its numbers"
        ))
        .help("give /proc/slabinfo or /proc/buddyinfo itself")
    })
}

/// Rows of free blocks that are all that a text holds, without any heading.
pub(super) fn bare_counts(text: &str) -> Option<String> {
    free::bare_counts(text)
}
