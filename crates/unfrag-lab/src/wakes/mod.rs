//! Who wakes kswapd and kcompactd, who compacts, and how long that takes.
//!
//! A request that finds too few free pages, or no block of its order, wakes the daemons of its node; what they then do on
//! a CPU is that request's cost, though nothing shows it as its program's. A recording has the wake-ups, with kernel
//! stacks if they were asked for, and when the daemons ran.
//!
//! - `callers`: of a kernel stack, who asked. `asks`: what a request's flags let happen. `daemon`: whose time a daemon's
//!   is. `pending`: events whose stack is still to come. `known`: what a recording tells at all. `sums`, `walk`: the walk over
//!   the events, and what it counts. [`report`]: the result, made in `answer`; `words`, `text` and `flame` draw it.
//!
//! Invariant: time of a daemon is that of the last wake-up before it, or of nobody; all of it is shared out once. Where
//! the events that tell it were not recorded, it is not known, and never zero.

mod answer;
mod asks;
mod callers;
mod daemon;
pub mod flame;
mod known;
mod pending;
pub mod report;
mod sums;
pub mod text;
mod walk;
mod words;

pub use answer::wakes;
pub use asks::MayFail;
pub use report::Wakes;
