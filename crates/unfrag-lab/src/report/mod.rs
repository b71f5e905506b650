//! Drawing and printing for all commands: numbers with units, tables, charts of characters, pages.
//!
//! Invariant: nothing here depends on the kind of report that is shown.

pub(crate) mod columns;
pub(crate) mod html_page;
pub(crate) mod moments;
pub mod number;
pub mod table;
pub(crate) mod text_chart;
