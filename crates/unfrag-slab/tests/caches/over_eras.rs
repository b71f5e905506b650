//! The tests of the caches over a manager of an era.
#![allow(
    clippy::duplicate_mod,
    reason = "the same tests over another source of pages"
)]

mod support {
    pub use crate::support::{few, for_ever};
    /// What the tests run over.
    pub type Memory = crate::support::Memory<crate::support::Eras>;
    /// Random operations of the model.
    pub const OPERATIONS: u64 = 10_000_000;
}

#[path = "checks.rs"]
mod checks;
#[path = "designs.rs"]
mod designs;
#[path = "interrupts.rs"]
mod interrupts;
#[path = "kmalloc.rs"]
mod kmalloc;
#[path = "misuse.rs"]
mod misuse;
#[path = "model.rs"]
mod model;
#[path = "threads.rs"]
mod threads;
