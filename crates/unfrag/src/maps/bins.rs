//! Blocks by class, and by how many of their frames are free.
//!
//! A block of movable frames that cannot be emptied for now stands apart from those that can: it is [`WAITS`]. What is
//! allocated goes there first, as such a block cannot become whole anyway; and nobody who looks for a block to empty
//! comes by. One of which a frame stayed waits for so many rounds, twice as many each time; one that holds what cannot be
//! moved, or is only partly memory, until that changes.
//!
//! Invariant: a block is in the bin that its record names, or in none.

use super::block::{BINS, Block, CLASSES, DRIFT, WAITS};
use super::sizes::{FRAMES, MOVABLE, NIL};
use super::tables::{Directory, Entries};

/// Blocks that one search for the fullest puts where they belong: with a quarter of them it finds others than the fullest so
/// often that fewer blocks become empty by themselves.
const SETTLED: usize = 256;

/// Blocks that can be emptied and are looked at, of a bin, for the one with the fewest frames in use.
const LOOKED_AT: usize = 64;

/// The bin of those that wait for no round.
const NEVER: usize = BINS - 1;

/// The bins of all classes: the first block of each, the one that got there last.
#[derive(Debug)]
pub(super) struct Bins {
    heads: [[u32; BINS]; CLASSES],
    /// Bins that are not empty, a bit each.
    filled: [u64; CLASSES],
    /// Rounds so far. Of those that wait, the bin is the round in which they are tried again.
    round: u64,
    /// Free frames of the blocks of other types than movable.
    kept: u64,
}

impl Bins {
    pub const EMPTY: Bins = Bins {
        heads: [[NIL; BINS]; CLASSES],
        filled: [0; CLASSES],
        round: 0,
        kept: 0,
    };

    /// Bins of a class that are not empty, a bit each; of a type, the fullest blocks first.
    #[inline]
    pub fn filled(&self, class: usize) -> u64 {
        self.filled[class]
    }

    /// Free frames of the blocks in bins of other types than movable.
    #[inline]
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Counts frames of a block in a bin that are free from now on, or that are not any more.
    #[inline]
    pub fn count(&mut self, b: &Block, frames: i64) {
        if b.is_binned() && b.is_kept() {
            self.count_kept(frames);
        }
    }

    /// The same for a block of another type than movable.
    #[inline]
    pub fn count_kept(&mut self, frames: i64) {
        self.kept = self.kept.wrapping_add_signed(frames);
    }

    /// Puts a block into the bin where it belongs.
    // Each free that changes more than counts comes by, so it is part of who calls it.
    #[inline(always)]
    pub fn link<'m, D: Entries<'m>>(&mut self, of: &mut Directory<'m, D>, i: u32) {
        let b = of.block_mut(i);
        let (mut class, mut bin) = (b.class(), Block::bin_of(b.free()));
        if !b.is_plain() && b.mt() == MOVABLE {
            (class, bin) = self.belongs(b);
            b.set_class(class);
        }
        let head = core::mem::replace(&mut self.heads[class][bin], i);
        (b.next, b.prev) = (head, NIL);
        b.set_bin(Some(bin));
        let b = *b;
        self.count(&b, b.free().into());
        if head != NIL {
            of.link(head, |_, prev| *prev = i);
        }
        self.filled[class] |= 1 << bin;
    }

    /// The class of a block of movable frames of which more is known, and its bin.
    #[cold]
    fn belongs(&self, b: &Block) -> (usize, usize) {
        if !b.can_be_emptied() {
            (WAITS, NEVER)
        } else if b.is_waiting() {
            (WAITS, self.due(b))
        } else {
            (MOVABLE, Block::bin_of(b.free()))
        }
    }

    /// The bin of the round in which a block that waits is tried again: in 2 rounds, 4, and so on, up to 62.
    fn due(&self, b: &Block) -> usize {
        let tries = b.stays().map_or(0, |(_, tries)| tries);
        let rounds = (1u64 << tries).clamp(2, NEVER as u64 - 1);
        ((self.round + rounds) % NEVER as u64) as usize
    }

    /// Takes a block out of its bin. It has the class still with which it got there.
    #[inline]
    pub fn unlink<'m, D: Entries<'m>>(&mut self, of: &mut Directory<'m, D>, i: u32) {
        let b = of.block_mut(i);
        let (class, Some(bin)) = (b.class(), b.bin()) else {
            return;
        };
        let (next, prev) = (b.next, b.prev);
        self.count(&*b, -i64::from(b.free()));
        b.set_bin(None);
        if next != NIL {
            of.link(next, |_, of_next| *of_next = prev);
        }
        if prev != NIL {
            of.link(prev, |of_prev, _| *of_prev = next);
        } else {
            self.heads[class][bin] = next;
            if next == NIL {
                self.filled[class] &= !(1 << bin);
            }
        }
    }

    /// The fullest block of a type: the first one of the first bin that belongs there. Those on the way that do not
    /// go where they belong; after so many the next one will do. For what can be moved, one that waits goes first.
    #[inline]
    pub fn fullest<'m, D: Entries<'m>>(
        &mut self,
        of: &mut Directory<'m, D>,
        mt: usize,
    ) -> Option<u32> {
        if mt == MOVABLE
            && self.filled[WAITS] != 0
            && let Some(i) = self.waiting(of).next()
        {
            return Some(i);
        }
        for _ in 0..SETTLED {
            let i = self.first(mt)?;
            let b = of.block(i);
            if b.bin() == Some(Block::bin_of(b.free())) {
                return Some(i);
            }
            self.unlink(of, i);
            self.link(of, i);
        }
        self.first(mt)
    }

    #[inline]
    fn first(&self, mt: usize) -> Option<u32> {
        let filled = self.filled[mt];
        (filled != 0).then(|| self.heads[mt][filled.trailing_zeros() as usize])
    }

    /// Which of two classes has the fullest block.
    #[inline]
    pub fn fuller(&self, a: usize, b: usize) -> usize {
        let first = |class: usize| self.filled[class].trailing_zeros();
        if first(a) <= first(b) { a } else { b }
    }

    /// The blocks that wait: those first that wait the longest.
    pub fn waiting<'a, 'm: 'a, D: Entries<'m>>(
        &'a self,
        of: &'a Directory<'m, D>,
    ) -> impl Iterator<Item = u32> + use<'a, 'm, D> {
        let (filled, heads) = (self.filled[WAITS], &self.heads[WAITS]);
        let now = (self.round % NEVER as u64) as u32;
        // Bins before that of this round are of the next time around.
        let (ahead, never) = (filled << 1 >> 1, filled & 1 << NEVER);
        let (around, soon) = (ahead & ((1 << now) - 1), ahead & !0 << now);
        [never, around, soon]
            .into_iter()
            .flat_map(high_bits)
            .flat_map(move |bin| chain(of, heads[bin]))
    }

    /// The blocks of a bin.
    pub fn of<'a, 'm: 'a, D: Entries<'m>>(
        &self,
        of: &'a Directory<'m, D>,
        class: usize,
        bin: usize,
    ) -> impl Iterator<Item = u32> + use<'a, 'm, D> {
        chain(of, self.heads[class][bin])
    }

    /// The blocks of movable frames: those that wait, then the fullest.
    pub fn fullest_first<'a, 'm: 'a, D: Entries<'m>>(
        &'a self,
        of: &'a Directory<'m, D>,
    ) -> impl Iterator<Item = u32> + use<'a, 'm, D> {
        let bins = (0..BINS).filter(|bin| self.filled[MOVABLE] >> bin & 1 == 1);
        let full = bins.flat_map(move |bin| chain(of, self.heads[MOVABLE][bin]));
        self.waiting(of).chain(full)
    }

    /// Begins a round: blocks that have waited for it may be tried again.
    pub fn begin_round<'m, D: Entries<'m>>(&mut self, of: &mut Directory<'m, D>) {
        self.round += 1;
        let bin = (self.round % NEVER as u64) as usize;
        while self.heads[WAITS][bin] != NIL {
            let i = self.heads[WAITS][bin];
            self.unlink(of, i);
            of.block_mut(i).set_class(MOVABLE);
            self.link(of, i);
        }
    }

    /// The block that is the cheapest to empty, after how many of its frames are in use: at most `most`. Those on the
    /// way that cannot be emptied go where they belong.
    pub fn cheapest<'m, D: Entries<'m>>(
        &mut self,
        of: &mut Directory<'m, D>,
        most: u32,
    ) -> Option<(u32, u32)> {
        let mut best: Option<(u32, u32)> = None;
        for bin in high_bits(self.filled[MOVABLE]) {
            // A block in a later bin has more free frames, but for the drift.
            if best.is_some_and(|(used, _)| bin + DRIFT <= Block::bin_of(FRAMES - used)) {
                break;
            }
            // So many are in use of each of its blocks, and more in earlier bins.
            if FRAMES.saturating_sub(Block::most_free(bin)) > most {
                break;
            }
            let (mut looked_at, mut i) = (0, self.heads[MOVABLE][bin]);
            while i != NIL && looked_at < LOOKED_AT {
                let b = of.block(i);
                let (next, used) = (b.next, b.in_use());
                if !b.can_be_emptied() {
                    self.unlink(of, i);
                    self.link(of, i);
                } else if used <= most {
                    looked_at += 1;
                    if best.is_none_or(|(least, _)| used < least) {
                        best = Some((used, i));
                    }
                }
                i = next;
            }
        }
        best
    }
}

/// The set bits of a word, the highest first.
fn high_bits(word: u64) -> impl Iterator<Item = usize> {
    let mut left = word;
    core::iter::from_fn(move || {
        let bit = left.checked_ilog2()?;
        left &= !(1 << bit);
        Some(bit as usize)
    })
}

/// A block, and those that follow it in its bin.
pub(super) fn chain<'a, 'm: 'a, D: Entries<'m>>(
    of: &'a Directory<'m, D>,
    first: u32,
) -> impl Iterator<Item = u32> + use<'a, 'm, D> {
    let next = |i: u32| (i != NIL).then_some(i);
    core::iter::successors(next(first), move |&i| next(of.next(i)))
}
