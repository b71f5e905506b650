//! What the workload asked for, as operations in the order of time.
//!
//! Invariant: an [`Op`] has 24 bytes. A recording has millions of them, and the replay reads each once
//! for every model; [`Ops`](super::Ops) keeps them in half of that.

use super::kernel_stack::STACK_PAGES;
use std::ops::Range;
use unfrag_eras::{Gfp, NodeId};

/// No frame.
pub const NONE: u32 = u32::MAX;

/// A value of four bytes at an address that is a multiple of two, so that an [`Action`] has ten bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(2))]
pub struct Packed<T: Copy>(T);

impl<T: Copy> Packed<T> {
    /// The value.
    #[inline]
    pub const fn get(self) -> T {
        self.0
    }
}

impl<T: Copy> From<T> for Packed<T> {
    #[inline]
    fn from(value: T) -> Self {
        Packed(value)
    }
}

/// What an operation does. Each `pfn` is a frame of the recorded host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Allocate a block.
    Alloc {
        /// Order of the block.
        order: u8,
        /// Where the recorded kernel put it.
        pfn: Packed<u32>,
        /// Flags of the request.
        gfp: Packed<Gfp>,
    },
    /// Allocate a block for which the recorded kernel's check of the watermark raced with another CPU:
    /// the zone is the one that the frame is in.
    AllocRaced {
        /// Order of the block.
        order: u8,
        /// Where the recorded kernel put it.
        pfn: Packed<u32>,
        /// Flags of the request.
        gfp: Packed<Gfp>,
    },
    /// Ask for a block that the recorded kernel did not give.
    AllocFailed {
        /// Order of the block.
        order: u8,
        /// Flags of the request.
        gfp: Packed<Gfp>,
    },
    /// Free a block.
    Free {
        /// Order of the block.
        order: u8,
        /// Its first frame.
        pfn: Packed<u32>,
    },
    /// Free a block that the recorded kernel's reclaim freed.
    FreeReclaimed {
        /// Order of the block.
        order: u8,
        /// Its first frame.
        pfn: Packed<u32>,
    },
    /// Free a block without a traced allocation (a kernel stack, perhaps).
    FreeUnseen {
        /// Order of the block.
        order: u8,
        /// Its first frame.
        pfn: Packed<u32>,
    },
    /// Allocate the four pages of a kernel stack in bulk.
    Stack {
        /// Index into [`Causes::stacks`](super::Causes::stacks).
        index: Packed<u32>,
    },
    /// Allocate pages in bulk for which the trace has no event. They stay.
    AllocUnseen {
        /// How many.
        pages: Packed<u32>,
    },
    /// A migration moved a page from one frame to another.
    Moved {
        /// Order for which memory is compacted, 0 if for none (ahead of demand).
        order: u8,
        /// Where the page was.
        pfn: Packed<u32>,
        /// Where it is.
        to: Packed<u32>,
    },
    /// A migration moved a page from a frame to one that the trace does not name yet.
    MovedAway {
        /// Order for which memory is compacted, 0 if for none (ahead of demand).
        order: u8,
        /// Where the page was.
        pfn: Packed<u32>,
        /// Number of the migration.
        number: Packed<u32>,
    },
    /// The page of a [`MovedAway`](Action::MovedAway) turns out to be at a frame.
    MovedTo {
        /// Where it is.
        pfn: Packed<u32>,
        /// Number of the migration.
        number: Packed<u32>,
    },
    /// A node's kswapd begins to reclaim.
    KswapdBegins {
        /// The node.
        node: NodeId,
    },
    /// A node's kswapd ends.
    KswapdEnds {
        /// The node.
        node: NodeId,
    },
    /// All per-CPU lists are drained.
    DrainAll,
}

impl Action {
    /// Allocates a block.
    #[inline]
    pub fn alloc(pfn: u32, order: u8, gfp: Gfp) -> Action {
        let (pfn, gfp) = (pfn.into(), gfp.into());
        Action::Alloc { order, pfn, gfp }
    }

    /// Frees a block.
    #[inline]
    pub fn free(pfn: u32, order: u8) -> Action {
        let pfn = pfn.into();
        Action::Free { order, pfn }
    }

    /// Frees a block that the recorded kernel's reclaim freed.
    #[inline]
    pub fn free_reclaimed(pfn: u32, order: u8) -> Action {
        let pfn = pfn.into();
        Action::FreeReclaimed { order, pfn }
    }

    /// Frees a block without a traced allocation.
    #[inline]
    pub fn free_unseen(pfn: u32, order: u8) -> Action {
        let pfn = pfn.into();
        Action::FreeUnseen { order, pfn }
    }

    /// Takes a kernel stack.
    #[inline]
    pub fn stack(index: u32) -> Action {
        let index = index.into();
        Action::Stack { index }
    }
}

/// A block of frames of the recorded host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostBlock {
    /// First frame.
    pub pfn: u32,
    /// Order.
    pub order: u8,
}

impl HostBlock {
    /// Its frames.
    #[inline]
    pub fn frames(self) -> Range<u32> {
        self.pfn..self.pfn + (1 << self.order)
    }

    /// Its frames, as indices into a table of all frames.
    #[inline]
    pub fn indices(self) -> Range<usize> {
        self.pfn as usize..self.pfn as usize + (1 << self.order)
    }
}

/// One operation, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// Task, by index into the recording's.
    pub task: u32,
    /// CPU.
    pub cpu: u16,
    /// What it does.
    pub action: Action,
}

const _: () = assert!(size_of::<Op>() == 24);

impl Op {
    /// The block that it allocates, and the flags of the request.
    #[inline]
    pub fn allocated(&self) -> Option<(HostBlock, Gfp)> {
        match self.action {
            Action::Alloc { order, pfn, gfp } | Action::AllocRaced { order, pfn, gfp } => {
                let pfn = pfn.get();
                Some((HostBlock { pfn, order }, gfp.get()))
            }
            _ => None,
        }
    }

    /// The block that it frees.
    #[inline]
    pub fn freed(&self) -> Option<HostBlock> {
        match self.action {
            Action::Free { order, pfn }
            | Action::FreeReclaimed { order, pfn }
            | Action::FreeUnseen { order, pfn } => {
                let pfn = pfn.get();
                Some(HostBlock { pfn, order })
            }
            _ => None,
        }
    }

    /// The frame that a page leaves by a migration.
    #[inline]
    pub fn moved_from(&self) -> Option<u32> {
        match self.action {
            Action::Moved { pfn, .. } | Action::MovedAway { pfn, .. } => Some(pfn.get()),
            _ => None,
        }
    }

    /// Pages that it takes from the free ones; negative if it frees some. Untraced allocations, and frees
    /// without a traced allocation, do not count.
    pub fn pages_taken(&self) -> i64 {
        match self.action {
            Action::Alloc { order, .. } | Action::AllocRaced { order, .. } => 1 << order,
            Action::Free { order, .. } | Action::FreeReclaimed { order, .. } => -(1 << order),
            Action::Stack { .. } => STACK_PAGES as i64,
            _ => 0,
        }
    }

    /// The first frame that it allocates or frees; `stacks` are [`Causes::stacks`](super::Causes::stacks).
    #[inline]
    pub fn frame(&self, stacks: &[[u32; 4]]) -> Option<u32> {
        match self.action {
            Action::Stack { index } => Some(stacks[index.get() as usize][0]),
            _ => match self.allocated() {
                Some((block, _)) => Some(block.pfn),
                None => self.freed().map(|block| block.pfn),
            },
        }
    }
}
