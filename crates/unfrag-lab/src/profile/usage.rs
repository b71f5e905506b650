//! What a program, or a whole command, did to memory.
//!
//! Invariant: pages are counted in the recorded host's base pages, times in microseconds.

use super::class::Class;
use super::files::Files;
use super::objects::Objects;
use super::pages::Pages;
use super::spread::Spread;
use super::zero::is_zero;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a program, or the whole command, did to memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// Name of the program, such as `cc1`; with ` (fork)` appended for processes that ran no program of their own.
    pub name: String,
    /// From the start of the first process to the end of the last.
    pub wall_us: u64,
    /// Time on CPUs, if the recording says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// Processes; 0 if the recording does not say.
    pub processes: u64,
    /// Most of them at one time.
    pub processes_at_most: u64,
    /// Processes that shared their parent's memory until they ran a program (vfork).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub vforked: u64,
    /// Threads beside the first of each process.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads: u64,
    /// Most pages at one time, without those of page cache.
    pub high_water_pages: u64,
    /// Which program started them, and how many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub started_by: BTreeMap<String, u64>,
    /// How its processes differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<PerProcess>,
    /// Pages by what they are for; a class without any is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<Class, Pages>,
    /// Files in page cache.
    #[serde(default)]
    pub files: Files,
    /// Slab objects by cache, those taken most first; of a program those of which it took a hundredth of its objects at
    /// least. Empty if they were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slab: Vec<Objects>,
}

/// Quantiles over the processes of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerProcess {
    /// From start to end.
    pub life_us: Spread,
    /// On a CPU, if the recording says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<Spread>,
    /// In uninterruptible sleep: waiting for a disk, mostly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_us: Option<Spread>,
    /// Anonymous pages taken.
    pub anonymous_taken_pages: Spread,
    /// Anonymous pages at one time, at most.
    pub anonymous_high_water_pages: Spread,
    /// Page tables at one time, at most.
    pub page_tables_high_water_pages: Spread,
    /// Pages read into page cache.
    pub file_read_pages: Spread,
    /// Pages of page cache taken to write to.
    pub file_written_pages: Spread,
    /// Anonymous pages held at the end of each tenth of a process's life, up to its end or exit, in percent of
    /// its most: the mean, weighted by that.
    pub anonymous_percent_by_tenth: Vec<u8>,
}
