//! Deterministic discrete simulation: tasks as coroutines on a virtual clock.
//!
//! - `time`: virtual time. [`rng`]: named seeded generators. [`channel`]: what tasks wait for.
//! - [`task`]: a task and its wait. `nice`: what a nice level is worth.
//! - `cpu`, `runqueue`, `events`, `waiters`: the parts of the scheduler.
//! - [`policy`]: the rules by which programs share a CPU. `config`: the scheduler's settings.
//! - `coroutine`: stackful coroutines that pass a value to and fro. The only user of `corosensei`.
//! - `sched`, `dispatch`: the clock, the CPUs and the tasks; which task runs where.
//! - `shared`: what the engine needs of the value that all tasks share.
//! - `outcome`, `event_loop`: the loop over events and CPUs.
//! - [`cx`]: what a task sees: [`Cx`]. [`driver`]: [`Engine`], which drives a machine.
//!
//! The engine is generic over the value that the tasks share. Of that value it knows the trait
//! `Shared` alone: it holds the scheduler and handles the events of devices.
//!
//! A task's body is straight code, `FnOnce(&mut Cx)`. It owns the shared value while it runs, and passes
//! it on whenever it waits or uses time. [`Cx::with`] borrows the value, and every wait takes `&mut Cx`:
//! a wait inside such a borrow does not compile. No time passes, and no other task runs, inside
//! [`Cx::with`] or between it and a wait that follows it. What was seen there still holds when the wait
//! begins, so no wake-up is lost.

pub mod channel;
pub(crate) mod config;
mod coroutine;
mod cpu;
pub mod cx;
mod dispatch;
pub mod driver;
mod event_loop;
mod events;
mod nice;
mod outcome;
pub mod policy;
pub mod rng;
mod runqueue;
mod sched;
mod shared;
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
pub use driver::Engine;
pub(crate) use events::{DeviceTimer, EventKind};
pub use outcome::Ended;
pub use policy::{Fair, Policy};
pub use rng::Rng;
pub(crate) use sched::{Call, Sched};
pub(crate) use shared::Shared;
pub use task::{Priority, Spec, TaskId, TaskTimes, Waited};
pub use time::{MS, Nanos, SEC, US};
