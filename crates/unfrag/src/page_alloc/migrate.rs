//! Moving a page to a free frame of the host's choice: the step that compaction is made of.
//! `spec: linux-mm 5.1; linux-6.1 5, 7.6`
//!
//! Invariant: a move leaves as many frames free, in use and on LRU lists as there were.

use super::Manager;
use crate::frame::{Ix, Kind, MAX_ORDER, Pfn};
use crate::host::Host;
use crate::reclaim::{Lru, PageFlags};

/// Why a page cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveError {
    /// It is no single page in use that was allocated as movable.
    NotMovable(Pfn),
    /// It is held for a moment: locked, being written, or held apart by reclaim.
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

impl<H: Host> Manager<'_, H> {
    /// The free block of the buddy lists that holds a frame: its first frame and order.
    pub fn free_block(&self, pfn: Pfn) -> Option<(Pfn, u8)> {
        let ix = self.map.ix(pfn)?;
        self.buddy_of(ix)
            .map(|head| (self.map.pfn(head), self.frames.state(head).order()))
    }

    fn buddy_of(&self, ix: Ix) -> Option<Ix> {
        (0..=MAX_ORDER)
            .map(|order| (ix & !((1 << order) - 1), order))
            .find(|&(head, order)| {
                let s = self.frames.state(head);
                s.is_buddy() && s.order() >= order
            })
            .map(|(head, _)| head)
    }

    /// Takes a single page in use to a free frame of its zone, and frees the one it was in on the
    /// host's CPU. The page keeps its flags and its LRU list, where it becomes the newest. The host
    /// has copied what is in it, and has no entry left that names the old frame.
    ///
    /// # Errors
    /// [`MoveError`]; nothing has changed then.
    pub fn migrate(&mut self, from: Pfn, to: Pfn) -> Result<(), MoveError> {
        let immovable = MoveError::NotMovable(from);
        let source = self.map.ix(from).ok_or(immovable)?;
        let s = self.frames.state(source);
        if s.kind() != Kind::Used || s.order() != 0 || !s.is_movable() {
            return Err(immovable);
        }
        let flags = self.page_flags(from);
        let lru = Lru::from_code(s.lru());
        let held = s.lru() != 0 && lru.is_none();
        if held || flags.intersects(PageFlags::LOCKED | PageFlags::WRITEBACK) {
            return Err(MoveError::Busy(from));
        }
        let target = self.map.ix(to).ok_or(MoveError::NotFree(to))?;
        let head = self.buddy_of(target).ok_or(MoveError::NotFree(to))?;
        if self.frames.state(head).zone() != s.zone() {
            return Err(MoveError::NotFree(to));
        }
        self.cut_out(head, target);
        self.mark_used(target, 0, s.mt(), true);
        self.lru_del(from);
        if let Some(lru) = lru {
            self.lru_add(to, lru);
        }
        self.set_page_flags(to, flags);
        self.clear_page_flags(from, PageFlags::all());
        self.tell_freed(from, 0);
        self.put_back(source, 0);
        Ok(())
    }

    /// Takes one frame out of the free block at `head`; the rest goes back in as large blocks as it
    /// makes.
    fn cut_out(&mut self, head: Ix, frame: Ix) {
        let zone = usize::from(self.frames.state(head).zone());
        let cpu = self.host.cpu();
        let p = self.parts(zone, cpu);
        let lists = &mut p.zone.place.lists;
        let (order, mt) = lists.remove(p.frames, head);
        let mut rest = head;
        for order in (0..order).rev() {
            let upper = rest + (1 << order);
            let (keep, free) = if frame < upper {
                (rest, upper)
            } else {
                (upper, rest)
            };
            lists.push(p.frames, free, order, mt, false);
            rest = keep;
        }
        p.zone.count(&mut p.set.delta, -1);
    }
}
