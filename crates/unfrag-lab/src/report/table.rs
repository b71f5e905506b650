//! A table as rows of text, for the terminal and the page alike.
//!
//! Invariant: a row has one value for each column, or none at all if it is a heading.

/// A row: its label and a value for each column; no value at all makes it a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What is shown, with its unit.
    pub label: String,
    /// How deep the label stands under the last heading: 0 or 1.
    pub depth: usize,
    /// One for each column.
    pub values: Vec<String>,
}

/// A table: heads of the value columns, and the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideBySide {
    /// `recorded` if the recording shows it, then the kernels.
    pub heads: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}
