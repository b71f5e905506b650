//! How compaction ends, and how hard it tries. `spec: 5.3`

/// How a run over a zone ended. A later one is the better result of several zones (`enum compact_result`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Its free memory is not fragmented: the index is low.
    NotSuitableZone,
    /// Too little is free to move pages to.
    Skipped,
    /// It failed lately and is put off.
    Deferred,
    /// No block was found where the run stands. It goes on.
    NoSuitablePage,
    /// The run goes on.
    Continue,
    /// The whole zone was scanned.
    Complete,
    /// A part of the zone was scanned, to its end.
    PartialSkipped,
    /// Others were in the way.
    Contended,
    /// There should be a block now.
    Success,
}

impl Outcome {
    /// Its name in tracepoints.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::NotSuitableZone => "not_suitable_zone",
            Outcome::Skipped => "skipped",
            Outcome::Deferred => "deferred",
            Outcome::NoSuitablePage => "no_suitable_page",
            Outcome::Continue => "continue",
            Outcome::Complete => "complete",
            Outcome::PartialSkipped => "partial_skipped",
            Outcome::Contended => "contended",
            Outcome::Success => "success",
        }
    }

    /// Whether the zone was scanned to the end in vain.
    pub(crate) const fn is_vain(self) -> bool {
        matches!(self, Outcome::Complete | Outcome::PartialSkipped)
    }
}

/// What a run may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Async,
    /// Locks.
    SyncLight,
    /// Locks, and the writing of pages.
    Sync,
}

impl Mode {
    /// Whether it waits for nothing.
    pub(crate) const fn is_async(self) -> bool {
        matches!(self, Mode::Async)
    }
}

/// How hard a request's compaction tries. It is raised when a run was in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// The whole zone, without skips: the last resort.
    SyncFull = 0,
    /// What a request begins with once it reclaims.
    SyncLight = 1,
    /// The first attempt of a costly request.
    Async = 2,
}

impl Priority {
    /// What runs of this priority may wait for.
    pub(crate) const fn mode(self) -> Mode {
        match self {
            Priority::Async => Mode::Async,
            Priority::SyncLight | Priority::SyncFull => Mode::SyncLight,
        }
    }

    /// The next harder one.
    pub(crate) const fn harder(self) -> Option<Priority> {
        match self {
            Priority::Async => Some(Priority::SyncLight),
            Priority::SyncLight => Some(Priority::SyncFull),
            Priority::SyncFull => None,
        }
    }
}
