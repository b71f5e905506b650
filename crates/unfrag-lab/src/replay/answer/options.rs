//! The options of a replay.

use crate::era::settings::Setting;
use crate::replay::start::StartChoice;

/// Least share of the pages that a host allocates which a recording has to hold. On a busy host, replays of recordings
/// with less foretold the amount of free memory no better than counting pages does.
pub const LEAST_SHARE: f64 = 0.7;

/// What is asked of a replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Kernels by preset name; none means the recorded era.
    pub kernels: Vec<String>,
    /// Settings that are asked for. Without a time, one holds from when the recorded host last changed its own while the
    /// trace ran, else from the beginning.
    pub set: Vec<Setting>,
    /// Settings that the recorded host had, where the recording says something else, or nothing.
    pub recorded: Vec<Setting>,
    /// Size of memory in bytes, if another than the recorded one.
    pub memory: Option<u64>,
    /// What decides where a block goes.
    pub mode: Mode,
    /// Where to begin.
    pub start: StartChoice,
    /// Which kernel's reclaim frees pages.
    pub reclaim: ReclaimChoice,
    /// Whose compaction moves pages; that of the kernel whose reclaim frees them if it is not given.
    pub compaction: Option<CompactionChoice>,
    /// Replays of an ensemble, an odd number; none means
    /// [`MEMBERS`](super::ensemble::MEMBERS). Where the model does not reclaim, all would be the same, and there
    /// is one.
    pub members: Option<u32>,
    /// Whether to predict from a recording, too, that holds less than [`LEAST_SHARE`] of what the
    /// host allocated.
    pub any_share: bool,
}

impl Options {
    /// Whose compaction moves pages.
    pub fn compaction(&self) -> CompactionChoice {
        self.compaction.unwrap_or(match self.reclaim {
            ReclaimChoice::Modelled => CompactionChoice::Modelled,
            ReclaimChoice::Given => CompactionChoice::Given,
        })
    }
}

/// Whose compaction moves pages in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionChoice {
    /// The model's own, if its kernel compacts. What the recorded kernel moved is an effect of its own state, and
    /// stays where it is. The model has to reclaim by itself, too.
    Modelled,
    /// The recorded kernel's: the pages that it moved move in the model too, if its kernel compacts.
    Given,
    /// Nobody's: pages stay where they are.
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
