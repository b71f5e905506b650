//! What came of a scenario on the simulated machine, for people: as text, and as a page with charts over
//! virtual time.
//!
//! - `charts`: the curves. `tables`: the numbers. `failed`: the kernel's own reports. [`text`], [`html`]: both put on a screen or a page.
//!
//! Invariant: everything shown is in the [`Outcome`](unfrag_machine::scenario::Outcome), and the same
//! outcome gives the same bytes.

mod charts;
mod failed;
pub mod html;
mod phrases;
mod tables;
pub mod text;
