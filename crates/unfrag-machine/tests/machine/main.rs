//! The tests of the simulated machine, as one program, so that it is linked once.

mod alloc_failures;
mod faults;
mod late_frees;
mod sourced;
mod support;
