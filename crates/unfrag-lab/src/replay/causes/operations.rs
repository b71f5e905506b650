//! What the workload asked for, as operations in the order of time.

use super::kernel_stack::STACK_PAGES;
use unfrag::NodeId;

/// No frame.
pub const NONE: u32 = u32::MAX;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Do {
    /// Allocate a block; `pfn` is where the recorded kernel put it.
    Alloc,
    /// The same, where the recorded kernel's check of the watermark raced with another CPU: it took
    /// the zone that the frame is in.
    AllocRaced,
    /// An allocation that failed there.
    AllocFailed,
    /// Free the block at `pfn`.
    Free,
    /// The same, by the recorded kernel's reclaim.
    FreeGiven,
    /// Free the block at `pfn`, though nobody was seen to allocate it (a kernel stack, perhaps).
    FreeUnseen,
    /// Allocate four pages in bulk (a kernel stack); `pfn` is an index into `Causes::stacks`.
    Stack,
    /// Allocate `other` pages in bulk, which nobody was seen to do; they stay.
    Unseen,
    /// The page at `pfn` is now at `other`.
    Moved,
    /// The page at `pfn` left for a place that is not known yet; `other` numbers the move.
    Left,
    /// The page of move `other` turns out to be at `pfn`.
    Arrived,
    /// kswapd of node `other` begins to reclaim.
    ReclaimBegins,
    /// It ends.
    ReclaimEnds,
    /// All per-CPU lists are drained.
    DrainAll,
}

/// One operation, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// What.
    pub act: Do,
    /// Order of the block; of a page that moves, that for which memory is compacted, 0 if for none
    /// (ahead of demand).
    pub order: u8,
    /// CPU.
    pub cpu: u16,
    /// Frame on the recorded host.
    pub pfn: u32,
    /// Request flags of an allocation; the new frame of a move; the node of a kswapd.
    pub other: u32,
    /// Task, by index into the recording's.
    pub task: u32,
}

impl Op {
    /// Pages that it takes from the free ones; negative if it gives some back.
    pub fn pages_taken(&self) -> i64 {
        match self.act {
            Do::Alloc | Do::AllocRaced => 1 << self.order,
            Do::Free | Do::FreeGiven => -(1 << self.order),
            Do::Stack => STACK_PAGES as i64,
            _ => 0,
        }
    }

    /// The node whose kswapd begins or ends.
    pub fn node(&self) -> NodeId {
        NodeId(self.other as u8)
    }

    /// A frame that it is about.
    pub fn frame(&self, causes: &Causes) -> u32 {
        match self.act {
            Do::Stack => causes.stacks[self.pfn as usize][0],
            _ => self.pfn,
        }
    }
}

/// What was made of a trace.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    /// The operations.
    pub ops: Vec<Op>,
    /// Frames of the kernel stacks.
    pub stacks: Vec<[u32; 4]>,
    /// What each frame's first event says of the start: [`FIRST_ALLOC`], [`FIRST_FREE`] or 0.
    pub first: Vec<u8>,
    /// How events were explained, by class.
    pub classes: Classes,
    /// Allocations and frees that were walked.
    pub events: u64,
    /// Fallbacks that the trace shows (`mm_page_alloc_extfrag`), and when.
    pub extfrag: Vec<(u64, u32)>,
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
