//! A scenario file, run on the simulated machine ([`mod@file`]), and views of what came of it: text, and a page with charts over
//! virtual time.
//!
//! - `charts`: the curves. `tables`: the numbers. `alloc_failures`: the kernel's own reports. `phrases`: what
//!   both views share.
//! - [`text`]: for a screen. [`html`]: a page.
//!
//! Invariant: everything shown is in the [`Outcome`](unfrag_machine::scenario::Outcome), and the same
//! outcome gives the same bytes.

mod alloc_failures;
mod charts;
pub mod file;
pub mod html;
mod phrases;
mod tables;
pub mod text;
