//! How long until a need of large blocks fails, from looks of days.
//!
//! Two numbers are followed: blocks of the size that are free at once, and blocks that reclaim and compaction could make at
//! best, which are those that no kernel memory is in. While the first falls below a need and the second does not,
//! compacting pays.
//!
//! - `look`: one snapshot, and its numbers. `grid`: looks at regular moments. `line`: a robust line. `rest`: what is around
//!   it. `trend`: when a number falls below a bound. [`report`]: the answer, made of snapshots in `looks`, or of a range of Prometheus (`series`), without those
//!   that `unread` tells; `text` draws it.
//!
//! Invariant: where looks are too few, or their trend may as well be none, nothing is foretold. The interval is held
//! against runs of the simulated machine (`tests/lab/forecast.rs`).

mod grid;
mod line;
mod look;
mod looks;
pub mod report;
mod rest;
pub mod series;
pub mod text;
mod trend;
mod unread;

pub use looks::{Looks, forecast};
pub use report::Forecast;
