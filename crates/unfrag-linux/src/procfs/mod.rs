//! The kernel's own statistics of memory, as text: read, and written as a kernel would write them.
//!
//! One module a file of `/proc` (and of debugfs' `extfrag`). Each has a type with `parse` and
//! `write`; a type can as well be filled by a model, and `write` then shows the model's state in
//! the form that every existing tool reads.
//!
//! Invariant: what `write` makes of what `parse` read is the same, byte for byte, for anything that
//! a kernel wrote. Names are never interpreted by position: counters, fields and migratetypes that
//! are not known here are kept where they stood. A text that does not end with a newline was cut
//! off, and is refused, since its last number may be.
//!
//! Formats: section 7.1 to 7.5 of the specification.

mod counters;
mod index_rows;
pub(crate) mod scan;

pub mod buddyinfo;
pub mod extfrag_index;
pub mod meminfo;
pub mod pagetypeinfo;
pub mod slab_activity;
pub mod slabinfo;
pub mod unusable_index;
pub mod uptime;
pub mod vmstat;
pub mod zoneinfo;

pub use buddyinfo::BuddyInfo;
pub use counters::Counters;
pub use extfrag_index::ExtfragIndex;
pub use index_rows::IndexRow;
pub use meminfo::MemInfo;
pub use pagetypeinfo::PageTypeInfo;
pub use slabinfo::SlabInfo;
pub use unusable_index::UnusableIndex;
pub use vmstat::VmStat;
pub use zoneinfo::ZoneInfo;

use crate::error::Error;
use scan::Scan;
use std::fmt::Write;

/// Lets a type that can write itself into a `String` answer one.
fn text(write: impl FnOnce(&mut String) -> std::fmt::Result) -> String {
    let mut out = String::new();
    write(&mut out).expect("a String takes everything");
    out
}

/// Reads `Node %d, zone %8s`, with which most rows begin.
fn read_zone(scan: &mut Scan) -> Result<(u32, String), Error> {
    let node = scan.labelled("Node")?;
    scan.expect(",")?;
    scan.expect("zone")?;
    Ok((node, scan.word(b",")?.to_owned()))
}

/// Writes `Node %d, zone %8s`.
fn write_zone(out: &mut String, node: u32, zone: &str) -> std::fmt::Result {
    write!(out, "Node {node}, zone {zone:>8}")
}

/// Reads numbers up to the end of the line.
fn read_numbers(scan: &mut Scan) -> Result<Vec<u64>, Error> {
    let mut numbers = vec![];
    while !scan.is_at_line_end() {
        numbers.push(scan.number()?);
    }
    scan.line_end()?;
    Ok(numbers)
}
