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
mod coroutine;
mod cpu;
pub mod cx;
mod dispatch;
mod events;
pub mod rng;
pub mod run;
mod runqueue;
mod sched;
mod step;
pub mod task;
#[cfg(test)]
mod tests;
pub mod turns;
mod waiters;

pub use channel::Channel;
pub use cpu::CpuTimes;
pub use cx::{Cx, Waited};
pub(crate) use dispatch::digest;
pub(crate) use events::Kind as EventKind;
pub use rng::Rng;
pub use run::{Ended, Engine};
pub(crate) use sched::{Call, Sched};
pub use task::{Priority, Spec, TaskId, TaskTimes};
pub use turns::{Fair, Turns};

/// Virtual time or a stretch of it, in nanoseconds.
pub type Nanos = u64;
/// A microsecond.
pub const US: Nanos = 1_000;
/// A millisecond.
pub const MS: Nanos = 1_000_000;
/// A second.
pub const SEC: Nanos = 1_000_000_000;
