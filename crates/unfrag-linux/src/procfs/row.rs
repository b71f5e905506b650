//! Parts that the rows of several files have in common: the zone at the start, and numbers up to the end.

use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;

/// The text that `write` produces.
pub(super) fn text_of(write: impl FnOnce(&mut String) -> std::fmt::Result) -> String {
    let mut out = String::new();
    write(&mut out).expect("writing to a String does not fail");
    out
}

/// Reads `Node %d, zone %8s`, with which most rows begin.
pub(super) fn read_zone(scan: &mut Scan) -> Result<(u32, String), Error> {
    let node = scan.labelled("Node")?;
    scan.expect(",")?;
    scan.expect("zone")?;
    Ok((node, scan.word(b",")?.to_owned()))
}

/// Writes `Node %d, zone %8s`.
pub(super) fn write_zone(out: &mut String, node: u32, zone: &str) -> std::fmt::Result {
    write!(out, "Node {node}, zone {zone:>8}")
}

/// Reads numbers up to the end of the line.
pub(super) fn read_numbers(scan: &mut Scan) -> Result<Vec<u64>, Error> {
    let mut numbers = vec![];
    while !scan.is_at_line_end() {
        numbers.push(scan.number()?);
    }
    scan.line_end()?;
    Ok(numbers)
}
