//! What a trace says of pages, typed: the one place that decodes the tracepoints of memory management.
//!
//! - `kind`: the tracepoints that are read, by name, with their fields. [`page`]: what each of them says.
//! - `table`: from the columns of a kind of event to its typed rows; `unreadable`: why one says nothing. [`walk`](mod@walk): the loop over events that
//!   gives them to a [`Tracker`], or to several at once (`pass`).
//! - [`role`]: what a task is to memory management. [`coverage`]: which kinds of events a recording holds.
//!
//! Invariant: whether a request failed, which orders there are, and which fields an event needs is decided here and
//! nowhere else. A field that a recorder left out, or wrote as something that is no number, is `None`.

pub mod coverage;
mod kind;
pub mod page;
mod pass;
pub mod role;
mod table;
mod unreadable;
pub mod walk;

pub use coverage::Coverage;
pub use kind::Kind;
pub use page::{Block, Flags, Named, Page};
pub use pass::Pass;
pub use role::{Role, Roles};
pub use table::Table;
pub use unreadable::Unreadable;
pub use walk::{At, Tracker, walk};
