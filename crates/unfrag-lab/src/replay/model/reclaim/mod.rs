//! The model's own reclaim in a replay.

mod daemon;
mod errand;
mod pages;
mod requests;
#[cfg(test)]
mod tests;

pub use requests::Reclaim;
