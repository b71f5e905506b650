//! A deterministic simulated machine.
//!
//! - [`slab`]: slab caches over real memory, with virtual CPUs.
#![deny(unsafe_code)]

pub mod slab;
