//! Moving a page to a free frame of the caller's choice, as compaction does.
//! `spec: 5, 5.1, 7.6`
//!
//! A move begins: the page is isolated, its target taken. It ends with a commit (the owner has copied the page
//! and changed all references to it) or with an abort. Between the two the manager may be used otherwise, and
//! the owner runs without a lock.
//!
//! Invariant: a move that has ended leaves as many frames free, in use and on LRU lists as there were;
//! a page that its owner freed meanwhile is freed then.

use crate::frame::{CpuId, FrameIx, FrameKind, MigrateType, Order, PageFlags, Pfn};
use crate::host::Host;
use crate::lru::{ISOLATED, ISOLATED_OTHER};
use crate::manager::Manager;
use crate::migrate::destination;

/// Why a page cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveError {
    /// It is no single page in use that was allocated as movable.
    NotMovable(Pfn),
    /// It is locked, under writeback or isolated.
    Busy(Pfn),
    /// The target is on no buddy list of the page's zone.
    NotFree(Pfn),
}

impl core::fmt::Display for MoveError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            MoveError::NotMovable(p) => {
                write!(f, "frame {:#x} is no single movable page in use", p.0)
            }
            MoveError::Busy(p) => write!(f, "the page in frame {:#x} is held", p.0),
            MoveError::NotFree(p) => {
                write!(
                    f,
                    "frame {:#x} is not on a free list of the page's zone",
                    p.0
                )
            }
        }
    }
}

impl core::error::Error for MoveError {}

/// A move that has begun: the page is isolated, its target taken. It has to be ended, or both frames are
/// lost.
#[derive(Debug)]
#[must_use = "a move that has begun has to be committed or aborted"]
pub struct Move {
    from: FrameIx,
    to: FrameIx,
    pfns: (Pfn, Pfn),
}

impl Move {
    /// The frame that the page is in.
    pub fn from(&self) -> Pfn {
        self.pfns.0
    }
    /// The frame that it is to be in.
    pub fn to(&self) -> Pfn {
        self.pfns.1
    }

    /// Begins to take a single page in use to a free frame of its zone, on a CPU.
    ///
    /// # Errors
    /// [`MoveError`]; nothing has changed then.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn begin<H: Host>(
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        from: Pfn,
        to: Pfn,
    ) -> Result<Move, MoveError> {
        let immovable = MoveError::NotMovable(from);
        let source = m.map.ix(from).ok_or(immovable)?;
        let s = m.frames.state(source);
        if s.kind() != FrameKind::Used || s.order() != Order::ZERO || !s.is_movable() {
            return Err(immovable);
        }
        let held = s.lru() == ISOLATED || s.lru() == ISOLATED_OTHER;
        let busy = PageFlags::LOCKED | PageFlags::WRITEBACK;
        if held || s.flags().intersects(busy) {
            return Err(MoveError::Busy(from));
        }
        let target = m.map.ix(to).ok_or(MoveError::NotFree(to))?;
        let head = m.frames.buddy_of(target).ok_or(MoveError::NotFree(to))?;
        let zone = m.frames.zone_of(source);
        if m.frames.zone_of(head) != zone {
            return Err(MoveError::NotFree(to));
        }
        let (_, mut z) = m.parts(zone, cpu);
        if !z.claim(target, Order::ZERO, MigrateType::Movable) {
            return Err(MoveError::NotFree(to));
        }
        z.zone.free_area.claim(z.frames, head, target);
        z.count(-1);
        m.frames.set_state(target, destination(Order::ZERO));
        m.pages().hold(source);
        Ok(Move {
            from: source,
            to: target,
            pfns: (from, to),
        })
    }

    /// Ends the move: the page is in its new frame, and the old one is freed. The page keeps its flags, its
    /// owner and its LRU list, of which it becomes the newest page.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn commit<H: Host>(self, m: &mut Manager<'_, H>, cpu: CpuId) {
        m.complete_move(cpu, self.from, self.to);
    }

    /// Ends the move: the page stays where it is, and the target is freed.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn abort<H: Host>(self, m: &mut Manager<'_, H>, cpu: CpuId) {
        m.put_back(cpu, self.from);
        m.free_block(cpu, self.to, Order::ZERO);
    }
}

impl<H: Host> Manager<'_, H> {
    /// Ends the isolation of a page that was held for a move: it has moved to the block at `to`, and its old frame is
    /// freed. If its owner freed it meanwhile, both are freed.
    pub(crate) fn complete_move(&mut self, cpu: CpuId, from: FrameIx, to: FrameIx) {
        let order = self.frames.state(from).order();
        if self.pages().let_go(from, to) {
            // Its own free is counted already.
            self.free_block(cpu, from, order);
            self.free_block(cpu, to, order);
            return;
        }
        self.account_free(self.map.pfn(from), order);
        self.free_block(cpu, from, order);
    }

    /// Ends the isolation of a page that was held for a move, and stays. If its owner freed it meanwhile, it is freed.
    pub(crate) fn put_back(&mut self, cpu: CpuId, ix: FrameIx) {
        let order = self.frames.state(ix).order();
        if self.pages().let_go(ix, ix) {
            self.free_block(cpu, ix, order);
        }
    }
}
