//! [`OwnersError`]: why a call is refused.

use super::owned::{Owned, OwnerId};
use crate::frame::Pfn;

/// Why a call of an [`Owners`](super::Owners) or of a [`Roster`](super::Roster) was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnersError {
    /// The frame has no word here.
    NoWord(Pfn),
    /// No block of this order can be at the frame: it is not aligned, it ends behind the last word, or there is no such order.
    NotABlock(Pfn),
    /// At the frame is not what the caller says, but this.
    Another(Pfn, Option<Owned>),
    /// The roster has a word for no more owners.
    Full,
    /// No owner has this number.
    NoSuchOwner(OwnerId),
    /// The owner is asked still.
    StillThere(OwnerId),
}

impl core::fmt::Display for OwnersError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            OwnersError::NoWord(p) => write!(
                f,
                "frame {:#x} has no word: hand in words for all frames that may have an owner",
                p.0
            ),
            OwnersError::NotABlock(p) => write!(
                f,
                "no block of this order is at frame {:#x}: name its first frame, and the order that it was taken at",
                p.0
            ),
            OwnersError::Another(p, None) => write!(
                f,
                "nobody has the block at frame {:#x}: it was freed or moved meanwhile; read its word again",
                p.0
            ),
            OwnersError::Another(p, Some(is)) => write!(
                f,
                "the block at frame {:#x} is of owner {}, tag {}, order {}: read its word again",
                p.0, is.owner.0, is.tag, is.order
            ),
            OwnersError::Full => {
                f.write_str("there is a word for no more owners: hand in more, or remove an owner")
            }
            OwnersError::NoSuchOwner(id) => {
                write!(f, "no owner has number {}: add it first", id.0)
            }
            OwnersError::StillThere(id) => {
                write!(f, "owner {} is asked still: remove it first", id.0)
            }
        }
    }
}

impl core::error::Error for OwnersError {}
