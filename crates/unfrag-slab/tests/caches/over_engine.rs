//! The tests of the caches over the engine.
#![allow(
    clippy::duplicate_mod,
    reason = "the same tests over another source of pages"
)]

mod support {
    pub use crate::support::{few, for_ever};
    /// What the tests run over.
    pub type Memory = crate::support::Memory<crate::support::Engine>;
    /// Random operations of the model.
    pub const OPERATIONS: u64 = 1_000_000;
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
