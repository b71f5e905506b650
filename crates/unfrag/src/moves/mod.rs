//! Emptying blocks by moving what is in them: [`Evacuator`], and [`Place`], where what moves goes.

mod evacuate;
mod place;

pub use evacuate::{Evacuator, Move};
pub use place::Place;
