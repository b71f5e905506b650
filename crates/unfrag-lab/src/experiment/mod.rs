//! The published experiments, run again on the simulated machine.
//!
//! - [`Name`]: which there are. [`variant`]: the kernels of each. `choice`: which of them run.
//! - [`source`]: what the sources measured. [`metric`]: the metrics that they and the runs share.
//! - [`run()`]: a whole experiment. [`scenario`]: one run of it. [`measure`]: the metrics of that run.
//! - `bare`: the runs of experiments on a machine of page frames alone.
//! - [`stats`], [`report`]: many seeds become one result. `compare`: one kernel against another. [`text`]: tables of both.
//!
//! Invariant: a result is a function of the experiment, the kernel, the machine and the seed; it does not depend on the
//! number of threads. A run that does not finish is listed in the report, and the others are reported all the same.

mod bare;
mod choice;
mod compare;
pub mod measure;
pub mod metric;
mod name;
pub mod report;
mod run;
pub mod scenario;
pub mod source;
pub mod stats;
pub mod text;
pub mod variant;

pub use name::Name;
pub use report::Compared;
pub use run::{Options, run};
