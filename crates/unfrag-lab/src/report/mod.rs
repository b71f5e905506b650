//! What is drawn and printed, for any question: numbers with units, tables, charts of characters, pages.
//!
//! Invariant: nothing here knows what is shown.

pub(crate) mod columns;
pub(crate) mod html_page;
pub(crate) mod moments;
pub mod number;
pub mod table;
pub(crate) mod text_chart;
