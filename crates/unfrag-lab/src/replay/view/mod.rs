//! The answer of a replay for people: text, a page with charts, a still picture.
//!
//! Invariant: a view says no more than the [`Report`](super::answer::Report) holds.

pub mod html;
pub mod observed;
pub mod side_by_side;
pub mod svg;
pub mod terminal;
mod thin;
pub mod wording;
