//! Drawing and printing for all commands: numbers with units, tables, charts of characters, pages.
//!
//! - [`number`]: numbers with units. [`table`], `columns`, `ruled`: tables and aligned columns. `moments`: fewer moments of a
//!   long run. [`screen`]: what a terminal can show, and text that is safe on it. `text_chart`: charts of characters.
//!   `html_page`: pages that load nothing. `svg`: still pictures. `treemap`: tiles by their shares. `wrap`: paragraphs as wide as a screen.
//!   [`window`]: what an answer says of its window.
//!
//! Invariant: nothing here depends on the kind of report that is shown.

pub(crate) mod columns;
pub(crate) mod html_page;
pub(crate) mod moments;
pub mod number;
pub(crate) mod ruled;
pub mod screen;
pub(crate) mod svg;
pub mod table;
pub(crate) mod text_chart;
pub(crate) mod treemap;
pub mod window;
pub mod wrap;
