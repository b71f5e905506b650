//! A deterministic simulated machine on which the core runs.
//!
//! - [`engine`]: virtual clock, tasks as coroutines, CPUs with time slices, interrupts.
//! - [`block`]: disks, their queues and elevator, congestion, the encrypting layer, faults.
//! - [`sim`]: everything shared: the page allocator and the [`World`] around it.
//! - [`config`]: what a machine is made of. [`calibration`]: what its work takes.
//! - [`scenario`]: a run described by a file.
//! - [`mm`]: processes, page faults, swap, fork and exit, what reclaim asks of owners.
//! - [`fs`]: page cache, readahead, writeback, journal, tmpfs, loop devices.
//! - [`program`]: what the tasks of a scenario do.
//! - [`alloc_failure`]: allocations that failed, as the kernel reports them.
//! - [`net`]: frames that arrive in interrupts.
//! - [`kmem`]: the simulated kernel's slab caches.
//! - [`slab`]: slab caches over real memory, with virtual CPUs.
//!
//! Invariant: a run is a function of its inputs. Integers only; no host time, no hash order; each
//! random choice from a generator with a name and the run's seed; ties broken by sequence numbers.
#![deny(unsafe_code)]

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
pub mod program;
pub mod scenario;

pub use calibration::Calibration;
pub use config::MachineConfig;
pub use engine::{Channel, Ended, Nanos, Priority, Rng, Spec, TaskId, Waited};
pub use error::Fail;
pub use kernel::{Cx, Engine, Sim, World};
pub use kmem::backed as slab;
pub use mm::alloc_failure;
