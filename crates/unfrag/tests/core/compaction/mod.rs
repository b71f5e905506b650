//! Compaction. `spec: 5`
//!
//! - `faults`: owners, other CPUs and killed tasks get in the way of a run at every step.
//! - `vectors`: the numbers and tables of the specification.
//! - `against_model`: runs against the naive second model.

mod against_model;
mod faults;
mod vectors;
