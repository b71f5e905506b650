//! Emptying blocks by moving what is in them. Compaction, a huge page ahead of demand, a gigabyte in one piece, a range for a
//! device and memory that goes are one operation, [`Evacuator`], with another [`Goal`].
//!
//! - `goal`: [`Goal`], [`Limits`], [`Outcome`]. `evacuate`: [`Evacuator`]. `units`: what it empties next, and how that ends.
//! - `place`: [`Place`], where what moves goes. `claimed`: [`Claimed`], what was emptied and taken.

mod claimed;
mod evacuate;
mod goal;
mod place;
mod units;

pub use claimed::Claimed;
pub use evacuate::{Evacuator, Move};
pub use goal::{Goal, Limits, Outcome};
pub use place::Place;
