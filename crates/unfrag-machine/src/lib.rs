//! A deterministic simulated machine on which the Linux page allocator of any era runs.
//!
//! The modules by floor; each uses those above it in this list:
//!
//! - [`engine`]: virtual clock, tasks as coroutines, CPUs, interrupts. Knows nothing of memory.
//! - [`error`], `channels`: the kernel's errors, and what its tasks wait for.
//! - [`block`], [`kmem`], [`mm`], [`fs`], [`net`]: what the kernel keeps about devices, slab caches, memory,
//!   files and network streams. State and its invariants; no code here waits or enters the allocator.
//! - [`config`]: the description of a machine.
//! - [`kernel`]: the kernel's state as a whole, the page allocator around it, and all code of the kernel
//!   that uses time, waits or allocates.
//! - [`input`]: quantities and mistakes, for all that reads files.
//! - [`calibration`]: the costs of the kernel's work, read from a file.
//! - [`program`]: what the tasks of a scenario do.
//! - [`scenario`]: a run described by a file, and its outcome.
//! - [`own`]: unfrag's own engine, where it chooses the frames.
//! - [`bare`]: a machine of page frames alone, for memory of terabytes.
//!
//! [`slab`] (in [`kmem`]) are slab caches over real memory, for comparisons without the rest of a machine.
//!
//! Invariant: a run is a function of its inputs. Integers only; no host time, no hash order; each random
//! choice from a generator with a name and the run's seed; ties broken by sequence numbers.
#![deny(unsafe_code)]

pub mod bare;
pub mod block;
pub mod calibration;
pub(crate) mod channels;
pub mod config;
pub mod engine;
pub mod error;
pub mod fs;
pub mod input;
pub mod kernel;
pub mod kmem;
pub mod mm;
pub mod net;
pub mod own;
pub mod program;
pub mod scenario;
#[cfg(test)]
mod test_support;

pub use calibration::Calibration;
pub use config::MachineConfig;
pub use engine::{Channel, Ended, Nanos, Priority, Rng, Spec, TaskId, Waited};
pub use error::Fail;
pub use kernel::{Cx, Engine, Sim, World};
pub use kmem::backed as slab;
pub use mm::alloc_failure;

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
