//! Moving pages in batches: their owners let nobody reach them, translations are flushed once for all, then the frames are
//! copied.
//!
//! Invariant: it is called with no spin lock held and with interrupts on.

use crate::memory_map::frame;
use crate::owners::{self, Owner};
use crate::pattern::Words;
use crate::space::address;
use crate::{cache, spaces, tlb};
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unfrag::Pfn;

/// Most pages of a batch.
pub const MOST: usize = tlb::MOST;

static COPIES: AtomicU64 = AtomicU64::new(0);

/// Pages that have been moved so far.
pub fn copies() -> u64 {
    COPIES.load(Relaxed)
}

/// A page of a space that is being moved.
struct Moving {
    from: Pfn,
    to: Pfn,
    space: u16,
    page: u32,
}

/// Pages that are being moved together.
pub struct Batch(ArrayVec<Moving, MOST>);

impl Batch {
    /// No page as yet.
    pub fn new() -> Batch {
        Batch(ArrayVec::new())
    }

    /// Whether there is no room for another page.
    pub fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Moves a page, or begins to. False, if nobody moves it.
    pub fn add(&mut self, from: Pfn, to: Pfn) -> bool {
        let moves = match owners::of(from) {
            Some(Owner::Space(space, page)) => {
                let begun = spaces::with(space, |s| s.begin_move(page, from)) == Some(true);
                if begun {
                    self.0.push(Moving {
                        from,
                        to,
                        space,
                        page,
                    });
                }
                begun
            }
            Some(Owner::Cache(page)) => cache::migrate(page, from, to),
            None => false,
        };
        COPIES.fetch_add(moves.into(), Relaxed);
        moves
    }

    /// Moves all that was begun.
    pub fn finish(self) {
        let pages: ArrayVec<_, MOST> = self.0.iter().map(|m| address(m.page)).collect();
        if !pages.is_empty() {
            tlb::flush(&pages);
        }
        for m in self.0 {
            // SAFETY: No CPU reaches the old frame by its page any more, and the new one is ours.
            unsafe { frame::<Words>(m.to).copy_from_nonoverlapping(frame(m.from), 1) };
            spaces::with(m.space, |s| s.end_move(m.page, m.from, m.to)).expect("it has a page");
        }
    }
}
