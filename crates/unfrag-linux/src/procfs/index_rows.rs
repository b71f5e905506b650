//! Rows of the two files of debugfs' `extfrag`: thousandths by zone and order
//! (`spec: 7.5`).
//!
//! The kernel prints integer and remainder of a value × 1000 separately, each with its own sign:
//! -5 thousandths show as `0.-05`, -1000 as `-1.000`.

use super::notes::{Notes, Rows, read_lines};
use super::row::{read_zone, write_zone};
use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;

/// Values of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexRow {
    /// NUMA node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// The value for order n at index n, times 1000.
    pub thousandths: Vec<i32>,
}

/// Reads all rows; gives also the width to which integers are padded, if a row shows it.
pub(super) fn read(scan: &mut Scan) -> Result<(Vec<IndexRow>, Option<usize>), Error> {
    let mut rows = vec![];
    let mut width = None;
    while !scan.is_at_end() {
        let (node, zone) = read_zone(scan)?;
        let mut thousandths = vec![];
        while !scan.is_at_line_end() {
            let spaces = scan.spaces();
            if !scan.sees("-") {
                width.get_or_insert(spaces);
            }
            thousandths.push(read_value(scan)?);
        }
        scan.line_end()?;
        rows.push(IndexRow {
            node,
            zone,
            thousandths,
        });
    }
    Ok((rows, width))
}

/// Reads the rows that are understood, line by line; `None` if there are none.
pub(super) fn read_leniently(format: &'static str, source: &str) -> Option<(Vec<IndexRow>, Notes)> {
    let mut rows: Vec<IndexRow> = vec![];
    let mut table = Rows::default();
    let notes = read_lines(source, |line, ended| {
        let text = format!("{line}\n");
        let (read, _) = read(&mut Scan::new(format, text.as_bytes())).ok()?;
        let row = read.into_iter().next()?;
        let columns = row.thousandths.len();
        if columns == 0 || !table.is_whole(line, columns, ended) {
            return None;
        }
        rows.push(row);
        Some(())
    });
    (!rows.is_empty()).then_some((rows, notes))
}

fn read_value(scan: &mut Scan) -> Result<i32, Error> {
    let at = scan.offset();
    let integer: i32 = scan.signed()?;
    scan.expect(".")?;
    let remainder_at = scan.offset();
    let remainder: i32 = scan.signed()?;
    let value = integer
        .checked_mul(1000)
        .and_then(|i| i.checked_add(remainder));
    let one_sign = (integer >= 0 && remainder >= 0) || (integer <= 0 && remainder <= 0);
    match value {
        Some(v) if one_sign && remainder.abs() < 1000 && scan.since(remainder_at).len() >= 3 => {
            Ok(v)
        }
        _ => Err(scan.error_at(at, "no kernel writes such an index")),
    }
}

/// Writes all rows, integers padded to `width`.
pub(super) fn write(out: &mut String, rows: &[IndexRow], width: usize) -> std::fmt::Result {
    for row in rows {
        write_zone(out, row.node, &row.zone)?;
        out.push(' ');
        for v in &row.thousandths {
            write!(out, "{:>width$}.{:03} ", v / 1000, v % 1000)?;
        }
        out.push('\n');
    }
    Ok(())
}
