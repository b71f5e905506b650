//! Ranges of any size: claimed where the caller says, or where they cost the fewest copies; and memory that is taken
//! offline and online at run time.
//!
//! A claim sets the pageblocks of its range apart, so that nobody allocates what has been freed there; has the owners
//! of pages in use move them elsewhere; and takes the frames once all are free. Frames that are claimed are blocks in
//! use, as large as their alignment allows, which nobody moves. [`free_contig_range`](crate::Manager::free_contig_range)
//! gives them back.
//!
//! - `claim`: the operation. `obstacle`: why a range cannot be had. `supply`: where its pages go. `search`: the run of
//!   pageblocks that holds the fewest pages in use.
//! - `hotplug`: taking memory offline and online.
//!
//! Invariant: a pageblock is set apart exactly as long as one claim holds it; a claim that has ended holds nothing but
//! what it was for.

mod claim;
mod hotplug;
mod obstacle;
mod search;
mod supply;

pub use claim::Claim;
pub use hotplug::{Offline, OnlineError};
pub use obstacle::{ClaimError, Obstacle};
