//! What was made of a trace: the operations, and what the walk over it found beside them.

use super::ops::Ops;

/// What was made of a trace.
#[derive(Debug, Default)]
pub struct Causes {
    /// The operations.
    pub ops: Ops,
    /// Frames of the kernel stacks.
    pub stacks: Vec<[u32; 4]>,
    /// What each frame's first event says of the start: [`FIRST_ALLOC`], [`FIRST_FREE`] or 0.
    pub first: Vec<u8>,
    /// How events were explained, by class.
    pub classes: Classes,
    /// Allocations and frees that were walked.
    pub events: u64,
    /// What kcompactd did over one zone after another.
    pub kcompactd_runs: Vec<DaemonRun>,
    /// When compaction ahead of demand was seen to be on first, in nanoseconds of the trace clock.
    pub proactive_from: Option<u64>,
    /// Whether the trace shows what kcompactd does.
    pub shows_kcompactd: bool,
    /// By task: whether it collapses small pages to huge ones, as khugepaged does.
    pub collapsing: Vec<bool>,
    /// Whether fallbacks were recorded.
    pub shows_fallbacks: bool,
    /// Fallbacks that the trace shows.
    pub fallbacks: Fallbacks,
}

/// Fallbacks of the recorded kernel (`mm_page_alloc_extfrag`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fallbacks {
    /// How many.
    pub count: u64,
    /// Time of the first, in nanoseconds of the trace clock.
    pub first: Option<u64>,
}

impl Causes {
    /// Whether a task collapses small pages to huge ones.
    pub(crate) fn collapses(&self, task: u32) -> bool {
        self.collapsing.get(task as usize).is_some_and(|c| *c)
    }
}

impl Fallbacks {
    pub(super) fn note(&mut self, time: u64) {
        self.count += 1;
        self.first.get_or_insert(time);
    }
}

/// A run of kcompactd over a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonRun {
    /// When it began, in nanoseconds of the trace clock.
    pub begin: u64,
    /// How long it took, in nanoseconds; 0 if its end is not in the trace.
    pub ns: u64,
    /// Pages that it moved.
    pub moved: u64,
    /// First frame of the zone, where the trace says it.
    pub zone_start: Option<u64>,
    /// Its two scanners met: it found nothing more to move.
    pub met: bool,
    /// On which CPU it was from each number of moved pages on.
    pub cpus: Vec<(u64, u16)>,
}

/// The frame was first seen allocated: free at the start.
pub const FIRST_ALLOC: u8 = 1;
/// The frame was first seen freed: in use at the start.
pub const FIRST_FREE: u8 = 2;

/// Numbers of events by explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Pages allocated.
    pub allocated_pages: u64,
    /// Pages freed.
    pub freed_pages: u64,
    /// Huge-page faults that got a huge page.
    pub huge_faults: u64,
    /// Huge pages that khugepaged took to collapse small pages.
    pub collapses: u64,
    /// Allocations of free frames.
    pub allocations: u64,
    /// Allocations that failed.
    pub failed: u64,
    /// Frees of blocks seen allocated, or in use at the start.
    pub frees: u64,
    /// Frees by reclaim among them, in pages.
    pub reclaimed: u64,
    /// Frees of a migration's source.
    pub migrated: u64,
    /// Those with both sides known.
    pub migrated_paired: u64,
    /// Frees of isolated targets that were not used.
    pub unused_targets: u64,
    /// Frees of frames that a migration had filled unseen.
    pub matched: u64,
    /// Allocations seen before the free that made room for them.
    pub inverted: u64,
    /// Kernel stacks found by their frees, in pages.
    pub stack_pages: u64,
    /// Allocations of a frame in use that no free explains.
    pub unexplained_allocs: u64,
    /// Frees of a frame not in use that nothing explains.
    pub unexplained_frees: u64,
}
