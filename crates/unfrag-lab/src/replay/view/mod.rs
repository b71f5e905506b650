//! Views of a report: text, a page with charts, a still picture.
//!
//! - [`wording`]: the sentences, and [`side_by_side`] the tables, that all views share; `total_words` has the names of totals.
//! - [`changes`]: what would be different, with ranges; `between`: how kernels that were asked for differ from each other. `cannot_say`: why nothing can be said. [`course`]: free memory over the whole replay.
//! - [`grade`] and [`trust`]: how far the answer can be trusted. [`said`]: the answer in sentences, and all of it as
//!   `--json` has it. [`next`]: what to ask next.
//! - [`terminal`], [`observed`]: text. [`html`]: a page, which `reduction` keeps small. [`svg`]: a picture. [`detail`]: how
//!   much they show.
//!
//! Invariant: a view says no more than the [`Report`](super::answer::Report) holds.

mod between;
mod cannot_say;
pub mod changes;
pub mod course;
pub mod detail;
pub mod grade;
pub mod html;
pub mod next;
pub mod observed;
mod reduction;
pub mod said;
pub mod side_by_side;
pub mod svg;
pub mod terminal;
mod total_words;
pub mod trust;
pub mod wording;
