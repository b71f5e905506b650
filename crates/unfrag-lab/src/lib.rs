//! The laboratory: replays what a real kernel recorded under any era of the allocator, and measures
//! its own error against what that kernel showed.
//!
//! One replay, from file to report ([`run::replay`]):
//! - [`plan`] makes a recording ready: [`clock`] brings trace and snapshots together, [`cause`] says
//!   what the workload asked for, [`start`] where each page was at the beginning; [`resolve`] and
//!   [`silent`] find what left no event.
//! - [`replay`] carries out the operations on the model; [`observe`] puts them where the trace says.
//! - [`sample`] looks at model and recording alike; [`accuracy`] compares them.
//! - [`report`] prints, draws and writes; [`export`] writes the model's procfs.
//!
//! Beside it: [`doctor`], what is wrong with a host's memory and what to do about it; [`slab`], the
//! replay of slab events; [`inspect`], the indexes of one snapshot; [`settings`], the sysctls;
//! [`era`], which preset a release is; [`profile`], what a recorded command does to memory.
#![forbid(unsafe_code)]

pub mod accuracy;
mod block_map;
pub mod cause;
pub mod clock;
pub mod compaction;
pub mod doctor;
pub mod ensemble;
pub mod era;
pub mod experiment;
pub mod export;
pub mod inspect;
mod jobs;
pub mod observe;
pub mod plan;
pub mod profile;
pub mod reclaim;
pub mod replay;
pub mod report;
pub mod resolve;
pub mod run;
pub mod sample;
pub mod settings;
pub mod silent;
pub mod slab;
pub mod start;

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
