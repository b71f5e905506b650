//! The emptiest and the fullest pageblocks of a zone, as the evacuator found them.

use crate::frame::{FrameIx, Order};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Pageblocks that a survey keeps of each sort.
const KEPT: usize = 64;

/// What a survey found. A zone keeps it between runs, in the caller's memory, so its layout has no gaps.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Survey {
    /// What costs the fewest copies, cheapest first.
    pub sources: Best,
    /// What has the fewest free frames, fullest first.
    pub targets: Best,
    /// Free frames of all that may take pages.
    pub room: u64,
    /// The zone's run that it was made in.
    pub run: u16,
    /// The order of the units that its sources are.
    unit: u8,
    pad: [u8; 5],
}

/// The first `KEPT` of a sort, by rank.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Best {
    picks: [Pick; KEPT],
    len: u32,
    at: u32,
}

/// A unit or a pageblock, by its first frame.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Pick {
    pub head: FrameIx,
    /// Lower is better.
    pub rank: u32,
}

impl Best {
    const NONE: Best = Best {
        picks: [Pick {
            head: FrameIx(0),
            rank: 0,
        }; KEPT],
        len: 0,
        at: 0,
    };

    /// Keeps a pick if it is among the first. Of equals the one that came first goes first.
    pub fn offer(&mut self, pick: Pick) {
        let mut at = self.len as usize;
        if at == KEPT {
            if pick.rank >= self.picks[KEPT - 1].rank {
                return;
            }
            at -= 1;
        } else {
            self.len += 1;
        }
        while at > 0 && self.picks[at - 1].rank > pick.rank {
            self.picks[at] = self.picks[at - 1];
            at -= 1;
        }
        self.picks[at] = pick;
    }

    /// The best of those that are left.
    pub fn peek(&self) -> Option<Pick> {
        self.picks[..self.len as usize]
            .get(self.at as usize)
            .copied()
    }

    /// Goes on to the next one.
    pub fn advance(&mut self) {
        self.at += 1;
    }
}

impl Survey {
    /// Nothing is known.
    pub const NONE: Survey = Survey::of(0, Order::ZERO);

    /// One of a zone's `run`-th run, for units of an order, that has found nothing yet.
    pub const fn of(run: u16, unit: Order) -> Survey {
        Survey {
            sources: Best::NONE,
            targets: Best::NONE,
            room: 0,
            run,
            unit: unit.0,
            pad: [0; 5],
        }
    }

    /// Whether it has a source left, for units of this order.
    pub fn serves(&self, unit: Order) -> bool {
        self.unit == unit.0 && self.sources.peek().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a sort of all offers, in an order that a generator gives.
    #[test]
    fn the_best_are_those_that_a_sort_puts_first() {
        let mut word = 20_261_126_u64;
        std::println!("seed {word}");
        for n in [0, 1, 63, 64, 65, 500] {
            let mut best = Best::NONE;
            let mut all = std::vec::Vec::new();
            for i in 0..n {
                word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let (head, rank) = (FrameIx(i), (word >> 33) as u32 % 50);
                all.push((rank, i));
                best.offer(Pick { head, rank });
            }
            all.sort_unstable();
            for &(rank, i) in all.iter().take(KEPT) {
                let pick = best.peek().expect("as many as there are");
                assert_eq!((pick.rank, pick.head), (rank, FrameIx(i)), "of {n}");
                best.advance();
            }
            assert!(best.peek().is_none());
        }
    }
}
