//! Why a range of frames cannot be claimed.

use crate::frame::{FrameIx, FrameKind, OwnerId, PageFlags, Pfn, Span, State};
use crate::host::Host;
use crate::lru::{ISOLATED, ISOLATED_OTHER};
use crate::manager::Manager;

/// What is in the way, for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// The frame was reserved at boot.
    Reserved,
    /// There is no memory, or it is offline.
    Offline,
    /// A block in use that was not allocated as movable.
    Unmovable,
    /// A movable page that is on no LRU list and has no owner: nobody can be asked to move it.
    NoOwner,
    /// A block in use that reaches beyond the pageblocks of the range.
    Beyond,
    /// A pageblock that two zones share.
    SharedBlock,
}

/// Why a range was not claimed. Nothing is held then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimError {
    /// The range is empty, or this frame of it is not in the zone of its first one.
    NotInOneZone(Pfn),
    /// The range does not begin, or end, with a pageblock; so many frames have one.
    Unaligned(u32),
    /// Something at this frame cannot be moved.
    InTheWay(Pfn, Obstacle),
    /// The page at this frame stayed in use, however often its owner was asked.
    Busy(Pfn),
    /// The pageblock of this frame is set apart for someone else.
    Claimed(Pfn),
    /// Elsewhere there is no room for so many pages of the range, and reclaim makes none.
    NoRoom(u64),
    /// No run of this length can be emptied.
    NoRun,
    /// The host chooses the frames of this kernel ([`Source`](crate::source::Source)): what has them empties a range.
    Sourced,
}

impl core::fmt::Display for ClaimError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match *self {
            ClaimError::Sourced => f.write_str(
                "the host chooses this kernel's frames: empty the range with what has them there",
            ),
            ClaimError::NotInOneZone(p) => {
                write!(
                    f,
                    "the range is empty, or leaves its zone at frame {:#x}",
                    p.0
                )
            }
            ClaimError::Unaligned(n) => write!(
                f,
                "the range does not begin and end at multiples of {n} frames"
            ),
            ClaimError::InTheWay(p, what) => {
                let what = match what {
                    Obstacle::Reserved => "was reserved at boot",
                    Obstacle::Offline => "has no memory, or is offline",
                    Obstacle::Unmovable => "holds a block that is not movable",
                    Obstacle::NoOwner => "holds a page that has no owner to move it",
                    Obstacle::Beyond => "begins a block that reaches beyond the range",
                    Obstacle::SharedBlock => "is in a pageblock that two zones share",
                };
                write!(f, "frame {:#x} {what}", p.0)
            }
            ClaimError::Busy(p) => {
                write!(
                    f,
                    "the page in frame {:#x} stayed: its owner is using it",
                    p.0
                )
            }
            ClaimError::Claimed(p) => write!(
                f,
                "the pageblock of frame {:#x} is set apart for another claim",
                p.0
            ),
            ClaimError::NoRoom(pages) => {
                write!(f, "{pages} pages in use have no room outside of the range")
            }
            ClaimError::NoRun => f.write_str("no run of this length can be emptied"),
        }
    }
}

impl core::error::Error for ClaimError {}

/// What stands at the frame that begins a block, or is in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Free, on a list.
    Free,
    /// A page whose owner can be asked.
    Moves,
    /// A page that is held, locked or being written for the time being.
    Held,
    /// It stays.
    Stays(Obstacle),
}

/// What stands at a frame.
pub(super) fn stand<H: Host>(s: State) -> Stand {
    match s.kind() {
        FrameKind::Buddy | FrameKind::Pcp => return Stand::Free,
        FrameKind::Reserved => return Stand::Stays(Obstacle::Reserved),
        FrameKind::Absent => return Stand::Stays(Obstacle::Offline),
        FrameKind::Used | FrameKind::Tail => {}
    }
    // What a run of compaction took from the free lists is held too, and is not movable.
    if s.lru() == ISOLATED || s.lru() == ISOLATED_OTHER {
        return Stand::Held;
    }
    if !s.is_movable() {
        return Stand::Stays(Obstacle::Unmovable);
    }
    if s.lru() == 0 && (s.owner() == OwnerId::NONE || !H::MOVES_UNLISTED) {
        return Stand::Stays(Obstacle::NoOwner);
    }
    if s.flags()
        .intersects(PageFlags::LOCKED | PageFlags::WRITEBACK)
    {
        return Stand::Held;
    }
    Stand::Moves
}

/// The first frame of the block that holds `ix`, or `ix`.
pub(super) fn head_of<H: Host>(m: &Manager<'_, H>, ix: FrameIx) -> FrameIx {
    m.frames.block_at(ix).unwrap_or(ix)
}

/// The blocks of a span, and the frames of it that are in none, with their states. The first may begin before it.
pub(super) fn walk<H: Host>(
    m: &Manager<'_, H>,
    span: Span,
) -> impl Iterator<Item = (FrameIx, State)> {
    let mut at = head_of(m, span.start);
    core::iter::from_fn(move || {
        let (ix, s) = (at, (at < span.end).then(|| m.frames.state(at))?);
        at = at.plus(s.extent());
        Some((ix, s))
    })
}
