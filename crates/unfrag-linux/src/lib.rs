//! Everything that speaks Linux: traces, procfs, and the file that holds a recording.
//!
//! The modules, from the bytes on the disk upwards:
//!
//! - [`error`]: what a reader says of an input that is not what it should be.
//! - [`input_text`]: text of an input, made safe to be shown.
//! - [`recording`]: a recording in memory: events as columns, and the snapshots beside them.
//! - [`event`]: what the events of pages say, typed; roles of tasks, and which kinds of events a recording holds.
//! - [`content`]: the bytes of a file of a snapshot, packed where they are many.
//! - [`gfp_text`]: names of gfp bits, by era of the kernel.
//! - `trace`, a recording of a tracer: [`tracedat`], [`perfdata`] and [`text`] read one format each,
//!   and [`open()`](fn@open) finds out which one a file has.
//! - [`procfs`]: buddyinfo, pagetypeinfo, zoneinfo, vmstat, slabinfo and the extfrag files, read and
//!   written; [`kpageflags`] and [`freelists`], the state of every frame where a recording has it.
//! - [`snapshots`]: directories, archives and logs of dated procfs copies.
//! - [`file`](mod@file): the `.unfrag` file, which holds all of this.
//! - [`segments`]: a recording of days, as a directory of such files, and windows of time.
//! - [`redact`](mod@redact): a recording that can be shared.
//! - [`share`]: which share of the host's allocations a recording holds.
//! - [`target`]: where an output goes: the standard output, a file, or what is neither. [`output`]: how it is written
//!   (`unfinished`: until it is complete). [`signals`]: what ends the process meanwhile.
//! - `record` (on Linux): a recording of this host, made with the kernel's tracer.
//! - [`kernel_log`]: reports of failed allocations and of the OOM killer in kernel logs.
//! - [`no_room`]: an error of writing that says where, and how much was to be written.
//! - [`paste`](mod@paste): a host's memory as a few lines of text, and back.
//! - `packed`: gzip, zstd, xz and bzip2; `overfull`: more came out of them than is kept.
//! - [`alloc_failure`]: the report that a kernel logs when an allocation fails.
#![forbid(unsafe_code)]
pub mod alloc_failure;
pub mod content;
pub mod error;
pub mod event;
pub mod file;
pub mod gfp_text;
pub mod input_text;
pub mod kernel_log;
pub mod no_room;
pub mod output;
mod overfull;
mod packed;
pub mod paste;
pub mod procfs;
#[cfg(target_os = "linux")]
pub mod record;
pub mod recording;
pub mod redact;
pub mod segments;
pub mod share;
pub mod signals;
pub mod snapshots;
pub mod target;
mod trace;
mod unfinished;

pub use error::{Error, Result};
pub use procfs::{freelists, kpageflags};
pub use trace::meter::Meter;
pub use trace::open::{Options, open, read, stream};
pub use trace::{open, perfdata, text, tracedat};

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
