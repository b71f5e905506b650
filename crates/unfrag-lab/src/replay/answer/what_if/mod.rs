//! What another kernel or setting would change, each number with a bar.
//!
//! - [`quantity`]: which numbers, and on which scale their errors are measured. [`class`]: which questions are alike.
//! - [`measured`]: how far predictions of each class were from real kernels.
//! - [`found`]: what was found, as data. [`change`]: a number, its bar and what can be said of it. [`compare`]: all of a kernel, from its replays and those
//!   of the recorded kernel.
//!
//! Invariant: a bar holds its prediction; where it holds no change, nothing is said of the direction.

pub mod change;
pub mod class;
pub mod compare;
pub mod found;
pub mod measured;
pub mod quantity;
