//! What was taken out of a recording.

use serde::Serialize;
use std::collections::BTreeSet;

/// What was taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Names of programs that are numbers now.
    pub programs: u64,
    /// Numbers of tasks that are others now.
    pub tasks: u64,
    /// Devices and numbers of their files that are others now.
    pub files: u64,
    /// Addresses that are numbers now.
    pub addresses: u64,
    /// Fields of events that are left out, as `event.field`.
    pub fields: BTreeSet<String>,
    /// Events whose names are numbers now.
    pub events: u64,
    /// Files of snapshots that are left out, by name; one whose name is not known is `another file`.
    pub files_of_snapshots: BTreeSet<String>,
    /// Facts that are left out, by name; one whose name is not known is `another fact`.
    pub facts: BTreeSet<String>,
}
