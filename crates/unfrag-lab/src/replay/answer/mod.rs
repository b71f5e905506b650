//! The answer: the result of a replay, and its error against what the recorded kernel showed.
//!
//! - [`report`]: all of it as data. `options`, `question`: what is asked, and for one kernel of it;
//!   `schedule`: its settings over time; `proactiveness`: one of them that nobody recorded; `huge_setting`: those
//!   of huge pages. `watch`: who
//!   follows a replay.
//! - [`sample`], `recorded`: the state of the model, and of the recorded kernel, at each snapshot. `block_map`: the
//!   map of pageblocks over time.
//! - [`accuracy`]: the error. `observe`: the check of a recording. `breakdown`: when a replay
//!   says nothing.
//! - [`what_if`]: what changes against the recorded kernel, with bars.
//! - `course`: one replay of one kernel under way; `member`: what comes of it. [`ensemble`]: several, pooled, which differ in what is not known (`chance`). `run`: the whole replay: [`replay`].

pub mod accuracy;
mod block_map;
mod breakdown;
mod chance;
mod compaction_totals;
mod course;
pub mod ensemble;
mod generations;
mod huge_setting;
mod member;
mod observe;
mod options;
mod proactiveness;
mod question;
mod recorded;
pub mod report;
mod run;
pub mod sample;
mod schedule;
mod watch;
pub mod what_if;

pub use observe::observe;
pub use options::{CompactionChoice, LEAST_SHARE, Mode, Options, ReclaimChoice};
pub use report::Report;
pub use run::replay;
pub use watch::{NoWatch, Watch};
