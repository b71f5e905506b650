//! Compaction. `spec: 5`
//!
//! - `faults`: owners, other CPUs and killed tasks get in the way of a run at every step.
//! - `bookkeeping`: what counts as what, when a block is noticed, and what wakes the daemon.
//! - `vectors`: the numbers and tables of the specification.
//! - `against_model`: runs against the naive second model.

mod against_model;
mod bookkeeping;
mod faults;
mod vectors;
