//! One moment of this host, without a trace.

use super::host;
use super::procfs::{self, Untaken};
use crate::recording::{Meta, Recording};
use std::path::Path;

/// One moment of the host whose procfs is at `proc`, as a recording without events, and what could not be read.
pub fn snapshot(proc: &Path) -> (Recording, Vec<Untaken>) {
    let sources = procfs::Sources {
        proc: proc.to_owned(),
        // Beside it, so that settings are those of the same host.
        mm: proc
            .parent()
            .map_or_else(Default::default, |root| root.join("sys/kernel/mm")),
        ..procfs::Sources::default()
    };
    let (taken, untaken) = sources.take("now", procfs::Extent::FlagsThenCounts);
    let recording = Recording {
        meta: Meta {
            source: "unfrag snapshot".into(),
            ..host::meta()
        },
        snapshots: vec![taken],
        ..Recording::default()
    };
    (recording, untaken)
}
