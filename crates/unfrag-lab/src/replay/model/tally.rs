//! Counts of a replay: what the model gave, refused, freed and moved.

use std::collections::BTreeMap;
use unfrag_eras::Gfp;

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
    /// Huge pages that khugepaged asked for, to collapse small pages (`thp_collapse_alloc`).
    pub collapses: HugeFaultCounts,
    /// Compaction of the faults that got a huge page in the model, one each.
    pub huge_work: Vec<FaultWork>,
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

/// The compaction that a fault made for its huge page itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultWork {
    /// Frames that were looked at.
    pub looks: u64,
    /// Pages that were moved.
    pub moved: u64,
}

impl FaultWork {
    /// The sum of both.
    pub(super) fn and(self, other: FaultWork) -> FaultWork {
        FaultWork {
            looks: self.looks + other.looks,
            moved: self.moved + other.moved,
        }
    }
}

/// How many faults got a huge page, and how many did not; or, of khugepaged's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugeFaultCounts {
    /// Faults that got one in the model (`thp_fault_alloc`).
    pub alloc: u64,
    /// Faults that got none in the model (`thp_fault_fallback`).
    pub fallback: u64,
    /// Faults that got one on the recorded host.
    pub alloc_recorded: u64,
    /// Faults that got none on the recorded host.
    pub fallback_recorded: u64,
    /// Faults that got one on both.
    pub alloc_both: u64,
}

impl HugeFaultCounts {
    /// Faults that asked for a huge page.
    pub fn faults(&self) -> u64 {
        self.alloc + self.fallback
    }

    pub(super) fn count(&mut self, model: bool, recorded: bool) {
        self.alloc += u64::from(model);
        self.fallback += u64::from(!model);
        self.alloc_recorded += u64::from(recorded);
        self.fallback_recorded += u64::from(!recorded);
        self.alloc_both += u64::from(model && recorded);
    }
}
