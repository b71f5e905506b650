//! Deterministic discrete simulation: tasks as coroutines on a virtual clock.
//!
//! - [`coroutine`]: stackful coroutines that hand a value to and fro. The only user of `corosensei`.
//! - [`cx`]: what a task sees: [`Cx`].
//! - [`channel`]: what tasks wait for.
//! - [`task`]: what a task is.
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
pub mod cx;
pub mod rng;
pub mod run;
pub mod task;

pub use channel::Channel;
pub use cx::{Cx, Waited};
pub use rng::Rng;
pub use run::{Ended, Engine};
pub use task::{Priority, Spec, TaskId};

/// Virtual time or a stretch of it, in nanoseconds.
pub type Nanos = u64;
/// A microsecond.
pub const US: Nanos = 1_000;
/// A millisecond.
pub const MS: Nanos = 1_000_000;
/// A second.
pub const SEC: Nanos = 1_000_000_000;
