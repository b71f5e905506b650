//! Everything that speaks Linux: traces, procfs, and the file that holds a recording.
//!
//! - [`error`]: what every reader here says of an input that is not what it should be.
//! - [`recording`]: a recording in memory, as columns, and what belongs to it.
//! - [`open`](fn@open): any of these, by what the file begins with.
//! - [`tracedat`], [`perfdata`], [`text`]: readers of the kernel's and the tools' trace formats.
//! - [`gfp_text`]: names of gfp bits, by era of the kernel.
//! - [`procfs`]: buddyinfo, pagetypeinfo, zoneinfo, vmstat, slabinfo and the extfrag files, read and written.
//! - [`freelists`], [`kpageflags`]: the kernel's exact state, where a recording has it.
//! - [`snapshots`]: directories and archives of dated procfs copies.
//! - [`file`](mod@file): the `.unfrag` file.
//! - `record` (on Linux): a recording of this host, by a tracer of its own.
//! - [`alloc_failure`]: the text that a kernel writes when an allocation fails.
#![forbid(unsafe_code)]
pub mod alloc_failure;
pub mod error;
pub mod file;
pub mod freelists;
pub mod gfp_text;
mod import;
pub mod kpageflags;
pub mod open;
pub mod perfdata;
pub mod procfs;
#[cfg(target_os = "linux")]
pub mod record;
pub mod recording;
pub mod snapshots;
pub mod text;
pub mod tracedat;

pub use error::{Error, Result};
pub use open::{Options, open, read};
