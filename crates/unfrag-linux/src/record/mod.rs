//! A recording of this host: the page allocator's events and procfs beside them, in one file.
//!
//! - [`tracefs`]: an instance of the kernel's tracer that is ours alone.
//! - [`events`]: which events are recorded.
//! - [`spooler`]: from the ring buffers to files, while it runs.
//! - [`procfs`]: the host's own view of its memory, once a second.
//! - [`command`]: the recorded command, traced from its first page on.
//! - [`names`]: names of tasks, where they may be known.
//! - [`spool`]: the directory that collects all this.
//! - [`guardian`]: who cleans up if the recorder dies.
//! - `deferred`: frees that the kernel does later, elsewhere.
//! - [`finish`]: from that directory to the file.
//! - [`balance`]: whether allocations and frees add up.
//! - [`session`]: the order in which it happens; `signals`: what ends it early.
//!
//! Invariant: the host's own tracing is not touched, whatever happens; and the trace begins and ends with a marker,
//! between which the first and the last snapshot lie, on one clock.

pub mod balance;
pub mod command;
mod deferred;
pub mod events;
pub mod finish;
pub mod guardian;
pub mod names;
pub mod procfs;
pub mod session;
mod signals;
pub mod spool;
pub mod spooler;
pub mod tracefs;

use crate::error::Result;
use crate::recording::{Meta, Recording};

pub use guardian::{recover, watch};
pub use procfs::Untaken;
pub use session::{Done, Options, Scope, record};

/// The name of the first snapshot of a recording, taken once the trace runs.
pub const BEGIN: &str = "begin";
/// The name of the last snapshot of a recording, taken before the trace ends.
pub const END: &str = "end";

/// What is known of this host.
fn host() -> Meta {
    let uname = rustix::system::uname();
    Meta {
        kernel_release: uname.release().to_string_lossy().into_owned(),
        page_size: rustix::param::page_size() as u32,
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        clock: "mono".into(),
        facts: [(
            "machine".to_owned(),
            uname.machine().to_string_lossy().into_owned(),
        )]
        .into(),
        ..Meta::default()
    }
}

/// One moment of this host as a recording without events, and what could not be read.
///
/// # Errors
/// If the page flags cannot be unpacked.
pub fn snapshot() -> Result<(Recording, Vec<Untaken>)> {
    let (mut taken, untaken) =
        procfs::Sources::default().take("now", procfs::Extent::FlagsThenCounts);
    procfs::unpack(&mut taken)?;
    let recording = Recording {
        meta: Meta {
            source: "unfrag snapshot".into(),
            ..host()
        },
        snapshots: vec![taken],
        ..Recording::default()
    };
    Ok((recording, untaken))
}
