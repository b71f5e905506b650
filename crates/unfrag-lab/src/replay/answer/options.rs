//! The options of a replay.

use crate::replay::start::StartChoice;

/// What is asked of a replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Kernels by preset name; none means the recorded era.
    pub kernels: Vec<String>,
    /// Settings (`vm.NAME`, value).
    pub set: Vec<(String, String)>,
    /// Size of memory in bytes, if another than the recorded one.
    pub memory: Option<u64>,
    /// What decides where a block goes.
    pub mode: Mode,
    /// Where to begin.
    pub start: StartChoice,
    /// Which kernel's reclaim frees pages.
    pub reclaim: ReclaimChoice,
    /// What becomes of the recorded kernel's compaction.
    pub compaction: CompactionChoice,
    /// Replays of an ensemble, an odd number; none means
    /// [`MEMBERS`](super::ensemble::MEMBERS). Where the model does not reclaim, all would be the same, and there
    /// is one.
    pub members: Option<u32>,
}

/// What becomes of the pages that the recorded kernel's compaction moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionChoice {
    /// The model compacts by itself, and the recorded kernel's moves are an effect.
    Modelled,
    /// They move in the model too, if its kernel compacts.
    #[default]
    Given,
    /// They stay where they are.
    None,
}

/// Which kernel's reclaim frees pages in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReclaimChoice {
    /// The model's own.
    #[default]
    Modelled,
    /// The recorded kernel's: what it freed is freed.
    Given,
}

/// What decides where a block goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The model; the trace gives only causes.
    #[default]
    Predict,
    /// The trace: checks the recording.
    Observe,
}
