//! The laboratory: one room for each question about a recording, a host or a simulated machine.
//!
//! - [`replay`]: what would memory have looked like under another kernel or setting? A recording goes down
//!   its rooms in this order: `causes`, `start`, `model`, `answer`, and `view` draws what they found.
//! - [`doctor`]: what is wrong with a host's memory, and what to change?
//! - [`experiment`]: the published experiments, run again on the simulated machine.
//! - [`simulate`]: what came of a scenario file.
//! - [`account`]: where is the memory, every frame once?
//! - [`blame`]: who holds the kernel memory that spoils pageblocks, hour by hour?
//! - [`frames`]: in how many frames does a process' memory lie?
//! - [`wakes`]: who wakes kswapd and kcompactd, and how long do they work for it?
//! - [`forecast`]: how long until a need of large blocks fails?
//! - [`profile`]: what does a recorded command do to memory?
//! - [`slab`]: which slab allocator would have held fewer pages?
//! - [`inspect`]: how fragmented is memory at one moment?
//! - [`summary`]: what does a trace alone tell, without snapshots?
//! - [`together`]: several questions about a recording that is read once.
//! - [`top`]: what does memory do now, in a pool, a replay or this host?
//! - [`explain`]: why did allocations of a kernel log fail?
//! - [`real`]: what does a huge page cost on this computer, from the host's kernel and from a pool?
//! - [`export`]: a prediction as a tree of procfs files.
//! - [`calibrate`]: what does the kernel's work on pages cost on this computer?
//! - [`usable`]: what may a request use of a zone?
//!
//! Below them: [`report`] draws tables, charts and pages and knows no question; [`era`] has numbers and
//! names by kernel; [`find`] has inputs from wherever they lie; [`mod@paste`] makes a text of a host; [`input`] has events in batches, and room for what is made of them; [`host`] has a host at one moment, from its files; [`geometry`] has sizes of pages and blocks by host; [`error`] says what is wrong; `afford` refuses what memory does not hold; `names` numbers the names that a walk counts by; `parallel` runs
//! members and runs of an experiment on all CPUs.
#![forbid(unsafe_code)]

pub mod account;
mod afford;
pub mod blame;
pub mod calibrate;
pub mod doctor;
pub mod era;
pub mod error;
pub mod experiment;
pub mod explain;
pub mod export;
pub mod find;
pub mod forecast;
pub mod frames;
pub mod geometry;
pub mod host;
pub mod input;
pub mod inspect;
mod names;
mod parallel;
pub mod paste;
pub mod profile;
pub mod real;
pub mod replay;
pub mod report;
pub mod simulate;
pub mod slab;
pub mod summary;
pub mod together;
pub mod top;
pub mod usable;
pub mod wakes;

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
