//! One moment of this host, without a trace.

use super::host;
use super::procfs::{self, Untaken};
use crate::error::Result;
use crate::recording::{Meta, Recording};

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
            ..host::meta()
        },
        snapshots: vec![taken],
        ..Recording::default()
    };
    Ok((recording, untaken))
}
