//! Needs: whether so many pieces of memory of some sizes can be had, on which node, after which means.
//!
//! - [`need`]: what is needed. [`means`]: what may come before.
//! - `supply`: a zone's free blocks, and what requests take of them. `layout`: those that page flags show. `outlook`: a zone
//!   after each means.
//! - `judge`: all needs together. [`answer`]: the answer, as data. `said`: in words, and the commands. [`formats`]: for other programs.
//!
//! Invariant: a *yes* is what the files show for certain; a need is never promised frames that another one takes.

pub mod answer;
pub mod formats;
mod judge;
mod layout;
pub mod means;
pub mod need;
mod outlook;
mod said;
mod supply;

pub use answer::{Needs, Verdict};
pub use judge::{huge_page_rooms, judge, room_by_any_means};
pub use means::{After, Means};
pub use need::Need;
pub use said::render;
