//! Counts of a replay: what the model gave, refused, freed and moved.

use super::HugeFaultCounts;
use std::collections::BTreeMap;
use unfrag::Gfp;

/// Counts of what happened in a replay.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Allocations that got a block.
    pub allocated: u64,
    /// Those on the frame where the recorded kernel had put them.
    pub on_same_frame: u64,
    /// Allocations that failed in the model, by order and flags.
    pub failures: BTreeMap<(u8, Gfp), u64>,
    /// Of those, how many had failed on the recorded kernel as well.
    pub failed_in_both: u64,
    /// Pages allocated without an event.
    pub unseen: u64,
    /// Frees carried out.
    pub freed: u64,
    /// Base pages that the recorded kernel's reclaim freed, and that are freed in the model too.
    pub given_pages: u64,
    /// Frees whose allocation had failed in the model, or that no rule explains.
    pub dropped_frees: u64,
    /// Pages that a migration moved on the recorded host.
    pub moved: u64,
    /// Of these, pages that moved in the model too.
    pub moved_here: u64,
    /// Faults for huge pages.
    pub huge_faults: HugeFaultCounts,
    /// Huge pages that the recorded kernel refused and the model gives; the task took small pages there.
    pub huge_instead: u64,
    /// Huge pages that the recorded kernel gave and the model refuses; small pages are taken instead.
    pub small_instead: u64,
}

impl Tally {
    /// Pages that a migration moved on the recorded host and that stay in the model.
    pub fn stayed(&self) -> u64 {
        self.moved - self.moved_here
    }
}
