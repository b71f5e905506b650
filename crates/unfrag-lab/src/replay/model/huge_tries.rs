//! What the simulation remembers of huge pages: of faults between their tries, and of pages that one host has and the
//! other has not.

use super::huge_rules::HugeRules;
use super::huge_touches::Touches;
use super::tally::FaultWork;
use std::collections::BTreeMap;

/// Faults under way, and huge pages that only one of the two hosts has.
#[derive(Clone, Debug, Default)]
pub(super) struct HugeFaults {
    /// By task: a fault whose first try the recorded kernel refused, and the block that the model gave it, if it did.
    pub first_tries: BTreeMap<u32, Option<u32>>,
    /// By task: the compaction of the fault under way.
    pub work: BTreeMap<u32, FaultWork>,
    /// By task: the huge page of the model, by its first frame, whose pieces stand for the small pages that the task takes
    /// on the recorded host.
    pub open: BTreeMap<u32, u32>,
    /// Huge pages of the model in place of small pages on the recorded host, by first frame.
    pub gained: BTreeMap<u32, Gained>,
    /// Huge pages of the recorded host in place of small pages of the model, by first frame: pages that nobody has taken.
    pub lost: BTreeMap<u32, u32>,
    /// A collapse that the model refuses, while the recorded kernel frees the small pages that it collapsed.
    pub kept: Option<Kept>,
    /// What tasks take in place of a huge page that the model refuses.
    pub touches: Touches,
    /// Which faults ask, and with which effort.
    pub rules: HugeRules,
}

/// A huge page of the model in place of small pages on the recorded host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gained {
    /// Pieces that were given, one after the other.
    pub given: u32,
    /// Those of them that the recorded host has not freed since.
    pub in_use: u32,
}

/// Small pages that stay, as the model has no huge page to collapse them to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Who collapses.
    pub task: u32,
    /// The recorded frame that the next one stands for.
    pub next: u32,
    /// The recorded frame behind the huge page.
    pub end: u32,
}
