//! How the loop over events and CPUs goes on, and how a run ends.

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every task but the kernel's threads has returned.
    Finished,
    /// The time limit.
    TimeLimit,
    /// [`World::stop`](crate::World::stop) was called.
    Stopped,
    /// All tasks wait, and no event is pending that could wake one.
    Stuck,
}

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Continues the code of the task in this slot.
    Run(u32),
    /// Returns from the run.
    End(Ended),
}
