//! What is wrong with frames that an engine was asked to add, to take, or to have back.

use crate::frame::Pfn;

/// Why frames were not added, not taken by their place, or not given back. Each names the first frame of the block, or of
/// the aligned part of a range, that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GiveError {
    /// Some of the block is free already: it was freed twice, or never taken.
    NotTaken(Pfn),
    /// No block of this order begins there: it is not aligned, or the order is larger than any block.
    NotABlock(Pfn),
    /// Some of it is no memory: it is out of range, or was never added.
    NoMemory(Pfn),
    /// Some of it is not free, or in a block that is being emptied.
    InUse(Pfn),
    /// Some of it has been added before.
    Present(Pfn),
    /// The range has no frames.
    NoFrames(Pfn),
    /// As many blocks of the gigabyte as there is room for are partly memory already.
    TooManyHoles(Pfn),
    /// Some of its gigabytes have no tables, and there are too few words for them.
    NoTables(Pfn),
}

impl GiveError {
    /// The frame that it names.
    pub fn frame(&self) -> Pfn {
        match *self {
            GiveError::NotTaken(p)
            | GiveError::NotABlock(p)
            | GiveError::NoMemory(p)
            | GiveError::InUse(p)
            | GiveError::Present(p)
            | GiveError::NoFrames(p)
            | GiveError::TooManyHoles(p)
            | GiveError::NoTables(p) => p,
        }
    }
}

impl core::fmt::Display for GiveError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let at = self.frame().0;
        match self {
            GiveError::NotTaken(_) => write!(
                f,
                "the block at frame {at:#x} is not in use as a whole: free each block once, with the order of what was taken or of an aligned part of it"
            ),
            GiveError::NotABlock(_) => write!(
                f,
                "no block of this order begins at frame {at:#x}: a block begins at a multiple of its size, and the largest order is 18"
            ),
            GiveError::NoMemory(_) => write!(
                f,
                "some of the frames from {at:#x} on are no memory here: add them first, or ask the memory that they are of"
            ),
            GiveError::InUse(_) => write!(
                f,
                "some of the frames from {at:#x} on are in use: free them first, or take others"
            ),
            GiveError::Present(_) => write!(
                f,
                "some of the frames from {at:#x} on are memory already: add each frame once"
            ),
            GiveError::NoFrames(_) => write!(f, "a range of no frames at {at:#x}"),
            GiveError::TooManyHoles(_) => write!(
                f,
                "too many blocks of 512 frames are partly memory to add those from {at:#x} on: add whole blocks, or what completes one first"
            ),
            GiveError::NoTables(_) => write!(
                f,
                "too few words for the tables of the gigabytes from frame {at:#x} on: hand in as many as the layout of these frames says"
            ),
        }
    }
}

impl core::error::Error for GiveError {}
