//! What a profile holds.

use super::usage::Use;
use super::zero::is_zero;
use serde::{Deserialize, Serialize};

/// Version of the file's format.
pub const VERSION: u32 = 1;

/// A profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`VERSION`].
    pub profile: u32,
    /// The recording that it came from.
    pub recording: Source,
    /// Programs that took less than a thousandth of all pages each, and are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub programs_left_out: u64,
    /// The command as a whole.
    pub all: Use,
    /// Its programs, those that took most pages first; empty if the recording does not say which there were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<Use>,
}

/// A recording's identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// File name, without directories.
    pub file: String,
    /// Its size.
    pub file_bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// The recorded command line; empty if it was not kept.
    pub command: String,
    /// `uname -r` of the recorded kernel.
    pub kernel: String,
    /// Day of the recording, such as `2026-11-22`; empty if it does not say.
    pub date: String,
    /// CPUs of the host.
    pub cpus: u32,
    /// Memory of the host that its allocator managed.
    pub memory_bytes: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Which program recorded.
    pub recorder: String,
    /// Which program made the profile.
    pub profiler: String,
    /// Events.
    pub events: u64,
    /// Events that the recorder lost: what they would say is not in the profile.
    pub lost_events: u64,
}

impl Profile {
    /// The program of this name.
    pub fn program(&self, name: &str) -> Option<&Use> {
        self.program.iter().find(|p| p.name == name)
    }
}
