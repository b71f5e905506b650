//! What the simulation remembers of faults for huge pages between their tries.

use super::tally::FaultWork;
use std::collections::BTreeMap;

/// Faults under way.
#[derive(Debug, Default)]
pub(super) struct HugeFaults {
    /// By task: a fault whose first try the recorded kernel refused, and the block that the model gave it, if it did.
    pub first_tries: BTreeMap<u32, Option<u32>>,
    /// By task: the compaction of the fault under way.
    pub work: BTreeMap<u32, FaultWork>,
    /// By task: a huge page of the model in place of small pages on the recorded host: model frame of the next
    /// piece, and pieces left.
    pub pieces: BTreeMap<u32, (u32, u32)>,
}
