//! Moving a page to a free frame of the caller's choice, as compaction does.
//! `spec: 5, 5.1, 7.6`
//!
//! A move begins: the page is isolated, its target taken. It ends with a commit (the owner has copied the page
//! and changed all references to it) or with an abort. Between the two the manager may be used otherwise, and
//! the owner runs without a lock.
//!
//! Invariant: a move that has ended leaves as many frames free, in use and on LRU lists as there were;
//! a page that its owner freed meanwhile is freed then.

use crate::frame::{CpuId, FrameIx, FrameKind, Order, PageFlags, Pfn};
use crate::gfp::Gfp;
use crate::host::Host;
use crate::lru::{ISOLATED, Lru};
use crate::manager::Manager;
use crate::placement::End;

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
    lru: Option<Lru>,
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
        let lru = Lru::from_code(s.lru());
        let held = s.lru() != 0 && lru.is_none();
        let busy = PageFlags::LOCKED | PageFlags::WRITEBACK;
        if held || s.flags().intersects(busy) {
            return Err(MoveError::Busy(from));
        }
        let target = m.map.ix(to).ok_or(MoveError::NotFree(to))?;
        let head = m.buddy_of(target).ok_or(MoveError::NotFree(to))?;
        let zone = m.frames.zone_of(source);
        if m.frames.zone_of(head) != zone {
            return Err(MoveError::NotFree(to));
        }
        let (_, mut z) = m.parts(zone, cpu);
        z.zone.free_area.claim(z.frames, head, target);
        z.count(-1);
        m.mark_used(target, Order::ZERO, s.mt(), Gfp::MOVABLE);
        if let Some(lru) = lru {
            m.pages().unlink(source, lru);
        }
        m.frames.set_state(source, s.with_lru(ISOLATED));
        Ok(Move {
            from: source,
            to: target,
            pfns: (from, to),
            lru,
        })
    }

    /// Ends the move: the page is in its new frame, and the old one is freed. The page keeps its flags, its
    /// owner and its LRU list, of which it becomes the newest page.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn commit<H: Host>(self, m: &mut Manager<'_, H>, cpu: CpuId) {
        let s = m.frames.state(self.from);
        let gone = s.flags().contains(PageFlags::FREED);
        let target = m.frames.state(self.to).with_owner(s.owner());
        m.frames.set_key(self.to, m.frames.key(self.from));
        m.frames
            .set_state(self.to, target.with_flags(s.flags() - PageFlags::FREED));
        m.frames
            .set_state(self.from, s.with_lru(0).with_flags(PageFlags::empty()));
        if gone {
            self.free_both(m, cpu, s.flags());
            return;
        }
        if let Some(lru) = self.lru {
            m.pages().link(self.to, lru, End::Head);
        }
        m.account_free(self.from(), Order::ZERO);
        m.free_block(cpu, self.from, Order::ZERO);
    }

    /// Ends the move: the page stays where it is, and the target is freed.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn abort<H: Host>(self, m: &mut Manager<'_, H>, cpu: CpuId) {
        let s = m.frames.state(self.from);
        if s.flags().contains(PageFlags::FREED) {
            m.frames
                .set_state(self.from, s.with_lru(0).with_flags(PageFlags::empty()));
            self.free_both(m, cpu, s.flags());
            return;
        }
        m.frames.set_state(self.from, s.with_lru(0));
        if let Some(lru) = self.lru {
            m.pages().link(self.from, lru, End::Head);
        }
        m.free_block(cpu, self.to, Order::ZERO);
    }

    /// Frees both frames of a page that its owner freed while it was isolated. The free is already counted.
    fn free_both<H: Host>(&self, m: &mut Manager<'_, H>, cpu: CpuId, flags: PageFlags) {
        let counts = &mut m.flag_counts;
        counts.nr_mapped -= u64::from(flags.contains(PageFlags::MAPPED));
        m.free_block(cpu, self.from, Order::ZERO);
        m.free_block(cpu, self.to, Order::ZERO);
    }
}
