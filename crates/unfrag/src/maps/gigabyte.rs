//! Whole free blocks, 512 to a map: a gigabyte, where a page has 4 KiB. And gigabytes, by what stands in them.
//!
//! Invariant: a gigabyte is in the bin of its kind and of its free blocks if it has some, and in none otherwise.

use super::map::Map;
use super::sizes::{FRAMES, NIL};
use super::tables::{Directory, Entries};
use super::whole::{BINS, Whole};
use crate::frame::Order;

/// The heads of the bins: clean gigabytes, then tainted ones; each from few free blocks to many.
#[derive(Debug)]
pub(super) struct GigaBins {
    heads: [u32; 2 * BINS],
    filled: u32,
}

impl GigaBins {
    pub const EMPTY: GigaBins = GigaBins {
        heads: [NIL; 2 * BINS],
        filled: 0,
    };
}

/// The bins of clean gigabytes, as bits.
const CLEAN: u32 = (1 << BINS) - 1;

/// The gigabytes of an engine.
pub(super) struct Gigabytes<'a, 'm, D> {
    pub bins: &'a mut GigaBins,
    pub of: &'a mut Directory<'m, D>,
}

impl<'m, D: Entries<'m>> Gigabytes<'_, 'm, D> {
    fn own(&mut self, g: u32) -> &mut Whole {
        &mut self.of.of_mut(g).whole
    }

    #[inline]
    fn link(&mut self, g: u32) {
        let own = &mut self.of.of_mut(g).whole;
        if own.free == 0 {
            return;
        }
        let bin = own.bin();
        let head = core::mem::replace(&mut self.bins.heads[bin], g);
        (own.next, own.prev) = (head, NIL);
        if head != NIL {
            self.own(head).prev = g;
        }
        self.bins.filled |= 1 << bin;
    }

    #[inline]
    fn unlink(&mut self, g: u32) {
        let own = &self.of.of(g).whole;
        if own.free == 0 {
            return;
        }
        let (next, prev, bin) = (own.next, own.prev, own.bin());
        if next != NIL {
            self.own(next).prev = prev;
        }
        if prev != NIL {
            self.own(prev).next = next;
        } else {
            self.bins.heads[bin] = next;
            if next == NIL {
                self.bins.filled &= !(1 << bin);
            }
        }
    }

    /// Counts free and tainted blocks of a gigabyte, and puts it where it then belongs.
    #[inline]
    pub fn count(&mut self, g: u32, free: i32, tainted: i32) {
        if !self.own(g).count(free, tainted) {
            self.unlink(g);
            self.own(g).add(free, tainted);
            self.link(g);
        }
    }

    /// Block `i` holds something that cannot be moved from now on, or nothing any more.
    #[inline]
    pub fn taint(&mut self, i: u32, tainted: bool) {
        self.count(i / FRAMES, 0, if tainted { 1 } else { -1 });
    }

    /// `2^order` blocks from `i` on are free as a whole from now on.
    #[inline]
    pub fn add(&mut self, i: u32, order: Order) {
        let g = i / FRAMES;
        self.own(g).whole.set_run(i % FRAMES, order);
        self.count(g, order.frames() as i32, 0);
    }

    /// All blocks of a gigabyte without any are free as a whole from now on.
    pub fn add_all(&mut self, g: u32) {
        self.own(g).whole = Map::FULL;
        self.count(g, FRAMES as i32, 0);
    }

    /// They are not any more.
    #[inline]
    pub fn remove(&mut self, i: u32, order: Order) {
        let g = i / FRAMES;
        let own = self.own(g);
        own.whole.clear_run(i % FRAMES, order);
        own.reported.clear_run(i % FRAMES, order);
        self.count(g, -(order.frames() as i32), 0);
    }

    /// The best gigabyte for single whole free blocks for what can be moved.
    #[inline]
    pub fn best(&self) -> Option<u32> {
        let best = self.bins.filled.trailing_zeros() as usize;
        self.bins.heads.get(best).copied()
    }

    /// The best `2^order` whole free blocks for what can be moved: in a clean gigabyte, the fullest one, at its start; or
    /// for what cannot: in the fullest tainted one, at its end, or in the emptiest clean one.
    #[inline]
    pub fn find(&self, order: Order, moves: bool) -> Option<u32> {
        let mut clean = self.bins.filled & CLEAN;
        let mut tainted = self.bins.filled & !CLEAN;
        while clean | tainted != 0 {
            let bin = if moves {
                (clean | tainted).trailing_zeros()
            } else if tainted != 0 {
                tainted.trailing_zeros()
            } else {
                clean.ilog2()
            };
            clean &= !(1 << bin);
            tainted &= !(1 << bin);
            let mut g = self.bins.heads[bin as usize];
            while g != NIL {
                let own = &self.of.of(g).whole;
                let found = if moves {
                    own.whole.find_run(order)
                } else {
                    own.whole.find_last_run(order)
                };
                if let Some(i) = found {
                    return Some(g * FRAMES + i);
                }
                g = own.next;
            }
        }
        None
    }

    /// A run of `2^order` whole free blocks of which one at least has not been reported: its first block, and which blocks
    /// of its gigabyte have been.
    pub fn find_unreported(&self, order: Order) -> Option<(u32, Map)> {
        self.of.all().find_map(|(g, tables)| {
            let own = &tables.whole;
            if own.free < order.frames() as u16 || own.whole == own.reported {
                return None;
            }
            let runs = (0..FRAMES).step_by(order.frames() as usize);
            let mut fresh = runs.filter(|&i| {
                own.whole.is_free_run(i, order) && !own.reported.is_free_run(i, order)
            });
            Some((g * FRAMES + fresh.next()?, own.reported))
        })
    }

    /// A whole free block has been reported.
    pub fn mark_reported(&mut self, i: u32) {
        self.own(i / FRAMES).reported.set(i % FRAMES);
    }

    /// The gigabytes of the bins, with the bin of each.
    pub fn binned(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let heads = self.bins.heads.iter().enumerate();
        heads.flat_map(move |(bin, &head)| {
            let next = |g: u32| (g != NIL).then_some(g);
            core::iter::successors(next(head), move |&g| next(self.of.of(g).whole.next))
                .map(move |g| (bin, g))
        })
    }

    /// The bin where a gigabyte belongs, if it has whole free blocks.
    pub fn bin_of(&self, g: u32) -> Option<usize> {
        let own = &self.of.of(g).whole;
        (own.free > 0).then(|| own.bin())
    }
}
