//! Views of a report: text, a page with charts, a still picture.
//!
//! - [`wording`]: the sentences, and [`side_by_side`] the tables, that all views share.
//! - [`changes`]: what would be different, with bars.
//! - [`trust`]: how far the answer can be trusted, for all views.
//! - [`terminal`], [`observed`]: text. [`html`]: a page, which `reduction` keeps small. [`svg`]: a picture.
//!
//! Invariant: a view says no more than the [`Report`](super::answer::Report) holds.

pub mod changes;
pub mod html;
pub mod observed;
mod reduction;
pub mod side_by_side;
pub mod svg;
pub mod terminal;
pub mod trust;
pub mod wording;
