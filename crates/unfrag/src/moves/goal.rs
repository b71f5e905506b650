//! What an [`Evacuator`](super::Evacuator) is for, what it may cost, and why it ended.

use crate::frame::{MigrateType, NodeId, Order, Pfn};
use crate::maps::GiveError;

/// What an [`Evacuator`](super::Evacuator) is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Goal {
    /// So many whole free blocks of [`Limits::huge`] more. What is free as a whole already does not count.
    Blocks(u32),
    /// As many of them as are missing to `blocks` that are free: what is made ahead of demand. Before, ask
    /// [`Memory::wants_blocks`](crate::Memory::wants_blocks) whether it is time.
    Ahead {
        /// As many should be free.
        blocks: u32,
    },
    /// An aligned run of `2^order` frames, of order 9 to 18: the one that is the cheapest to empty. Its frames are taken.
    Run(Order),
    /// These frames. All of them are taken.
    Range {
        /// The first one, wherever it is.
        start: Pfn,
        /// How many.
        frames: u64,
    },
}

/// What an [`Evacuator`](super::Evacuator) may cost, and what it takes frames for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Copies of frames, at most. What would need more is not begun.
    pub copies: u64,
    /// Frames in use of each 512, at most, for [`Goal::Blocks`] and [`Goal::Ahead`]: a fuller block is not worth it.
    pub most: u32,
    /// The order of a block that they make: that of the machine's huge page, 9 to 18. With pages of 16 KiB it is 11, and a
    /// run of 4 blocks of 512 frames is emptied at a time.
    pub huge: Order,
    /// Blocks of this node alone, for all goals but [`Goal::Range`].
    pub node: Option<NodeId>,
    /// The type of the request that [`Goal::Run`] and [`Goal::Range`] take frames for.
    pub mt: MigrateType,
}

impl Limits {
    /// No limit; blocks of order 9, of any node; frames taken as unmovable.
    pub const NONE: Limits = Limits {
        copies: u64::MAX,
        most: u32::MAX,
        huge: Order::HUGE,
        node: None,
        mt: MigrateType::Unmovable,
    };

    /// At most so many copies.
    pub const fn copies(self, copies: u64) -> Limits {
        Limits { copies, ..self }
    }

    /// Blocks with at most so many of 512 frames in use.
    pub const fn most(self, most: u32) -> Limits {
        Limits { most, ..self }
    }

    /// Blocks of an order.
    pub const fn huge(self, huge: Order) -> Limits {
        Limits { huge, ..self }
    }

    /// Blocks of a node alone.
    pub const fn node(self, node: NodeId) -> Limits {
        Limits {
            node: Some(node),
            ..self
        }
    }

    /// Frames taken for a type of request.
    pub const fn mt(self, mt: MigrateType) -> Limits {
        Limits { mt, ..self }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::NONE
    }
}

/// Why an [`Evacuator`](super::Evacuator) ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It has not: [`step`](super::Evacuator::step) goes on.
    Open,
    /// The goal is reached.
    Reached,
    /// What is left would need more copies than are allowed.
    Copies,
    /// Nothing is left that can be emptied: what is in use cannot be moved, or stayed when it was tried a short while ago.
    Nothing,
    /// The goal was not reached, and the last frame that nobody moved is this one. For a range with a block that holds what
    /// cannot be moved, it is the first frame in use of that block.
    Stays(Pfn),
    /// There is no place for what should move, or too few frames would be left free meanwhile: free some first.
    NoRoom,
    /// The goal itself cannot be: a range without frames, beyond the memory, with holes, or set apart by somebody else; or a
    /// run of an order that there is not, named by frame 0.
    Wrong(GiveError),
}

impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            Outcome::Open => f.write_str("it has not ended: step on"),
            Outcome::Reached => f.write_str("the goal is reached"),
            Outcome::Copies => f.write_str("what is left needs more copies than are allowed"),
            Outcome::Nothing => f.write_str(
                "no block can be emptied: free what cannot be moved, or try again later",
            ),
            Outcome::Stays(p) => write!(
                f,
                "nobody moved frame {:#x}: free what is there, or have its owner move it",
                p.0
            ),
            Outcome::NoRoom => {
                f.write_str("no place for what should move: free some frames elsewhere")
            }
            Outcome::Wrong(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for Outcome {}
