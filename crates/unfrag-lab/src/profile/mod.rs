//! What a command does to memory, out of a recording of it: pages by what they are for, how long they live,
//! files, slab objects, and which program of the command did it.
//!
//! From a recording to a profile:
//! - [`process`](mod@process): which processes there were, what they ran, and how long they computed.
//! - [`class`](mod@class): what a page is for. [`refused`]: slabs that got less than they asked for. `purposes`: that of each allocation. `walk`: the walk over the events.
//! - [`pages`], [`process_pages`], [`files`]: the sums that the walk makes. [`summary`]: what is said of them.
//! - [`object_counts`]: slab objects. `extraction`: all of it together.
//!
//! The profile:
//! - [`contents`], [`usage`], [`objects`]: what it holds. `identity`: the recording that it is of. [`spread`]: quantiles of numbers that many have.
//! - [`text`]: for people. [`file`](mod@file): the TOML file. [`catalog`]: the files by name, and [`behaviour`]: a profile as a program of a
//!   scenario.
//!
//! A profile is a small TOML file, and a scenario of the machine can take its programs from such files. It holds
//! what the recorded kernel was asked for, never what a scenario makes of it.
//!
//! Invariant: integers only, and one recording always gives the same bytes. Of each class of pages,
//! pages taken are those freed, in whatever way, and those held.

pub mod behaviour;
pub mod catalog;
pub mod class;
pub mod contents;
mod extraction;
pub mod file;
pub mod files;
mod identity;
pub mod object_counts;
pub mod objects;
pub mod pages;
pub mod process;
pub mod process_pages;
mod purposes;
pub mod refused;
pub mod spread;
pub mod summary;
pub mod text;
pub mod usage;
mod walk;
mod zero;

pub use catalog::Catalog;
pub use contents::{Profile, Source, VERSION};
pub(crate) use extraction::reads;
pub use identity::Identity;
pub use usage::{PerProcess, Use};
