//! Deterministic discrete simulation: tasks as coroutines on a virtual clock.
//!
//! - `coroutine`: stackful coroutines that hand a value to and fro. The only user of `corosensei`.
//! - [`cx`]: what a task sees: [`Cx`].
//! - [`channel`]: what tasks wait for.
//! - [`task`]: what a task is.
//! - `sched`, `dispatch`, `step`: the clock, the run queues, the loop; `cpu`, `runqueue`, `events`,
//!   `waiters`: their parts.
//! - [`turns`]: the rules by which programs share a CPU.
//! - [`rng`]: named seeded generators.
//! - [`run`]: [`Engine`], which drives a machine.
//!
//! A task's body is straight code, `FnOnce(&mut Cx)`. It owns the whole [`Sim`](crate::Sim) while it
//! runs, and hands it on whenever it waits or uses time. [`Cx::with`] borrows the `Sim`, every wait
//! takes `&mut Cx`: so a wait while the `Sim` is borrowed does not compile. No time passes, and
//! nobody else runs, inside [`Cx::with`] nor between it and a wait that follows it: what was seen
//! there still holds when the wait begins, and no wake-up is lost.

pub mod channel;
pub(crate) mod config;
mod coroutine;
mod cpu;
pub mod cx;
mod dispatch;
mod events;
mod nice;
mod outcome;
pub mod policy;
pub mod rng;
pub mod run;
mod runqueue;
mod sched;
mod shared;
mod step;
pub mod task;
#[cfg(test)]
mod tests;
mod time;
mod waiters;

pub use channel::Channel;
pub(crate) use config::CpuConfig;
pub use config::SchedConfig;
pub use cpu::CpuTimes;
pub use cx::Cx;
pub(crate) use cx::spawn;
pub(crate) use dispatch::digest;
pub(crate) use events::{DeviceTimer, EventKind};
pub use outcome::Ended;
pub use policy::{Fair, Policy};
pub use rng::Rng;
pub use run::Engine;
pub(crate) use sched::{Call, Sched};
pub(crate) use shared::Shared;
pub use task::{Priority, Spec, TaskId, TaskTimes, Waited};
pub use time::{MS, Nanos, SEC, US};
