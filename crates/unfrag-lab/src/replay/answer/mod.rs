//! The answer: what came of a replay, and its error against what the recorded kernel showed.

pub mod accuracy;
mod block_map;
pub mod ensemble;
mod member;
mod observe;
mod options;
mod question;
mod recorded;
pub mod report;
mod run;
pub mod sample;
mod watch;

pub use observe::observe;
pub use options::{CompactionChoice, Mode, Options, ReclaimChoice};
pub use report::Report;
pub use run::replay;
pub use watch::{Unwatched, Watch};
