//! Rows of text in aligned columns, two blanks apart.

use std::fmt;

/// Appends rows; the first `left` columns are aligned to the left, the others to the right. A row has as
/// many cells as the first, which is the head.
pub(crate) fn push<S: AsRef<str>>(
    out: &mut impl fmt::Write,
    indent: &str,
    left: usize,
    rows: &[Vec<S>],
) {
    let columns = rows.first().map_or(0, Vec::len);
    let length = |row: &Vec<S>, i: usize| row[i].as_ref().chars().count();
    let widest = |i| rows.iter().map(|row| length(row, i)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    for row in rows {
        let padded = row.iter().zip(&widths).enumerate().map(|(i, (cell, w))| {
            let cell = cell.as_ref();
            if i < left {
                format!("{cell:<w$}")
            } else {
                format!("{cell:>w$}")
            }
        });
        let line = padded.collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{indent}{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut out = String::new();
        push(&mut out, " ", 1, &[vec!["zone", "µs"], vec!["A", "100"]]);
        assert_eq!(out, " zone   µs\n A     100\n");
    }
}
