//! The emptiest and the fullest pageblocks of a zone.

use super::super::control::Control;
use crate::frame::{FrameIx, MigrateType, Order};
use crate::host::Host;
use crate::manager::Manager;

/// Pageblocks that a survey keeps of each sort.
const KEPT: usize = 64;

/// What a survey found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// What costs the fewest copies, cheapest first.
    pub sources: Best,
    /// What has the fewest free frames, fullest first.
    pub targets: Best,
    /// Free frames of all that may take pages.
    pub room: u64,
}

/// The first `KEPT` of a sort, by rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    picks: [Pick; KEPT],
    len: u8,
    at: u8,
}

/// A unit or a pageblock, by its first frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
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
    fn offer(&mut self, pick: Pick) {
        let mut at = usize::from(self.len);
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
        self.picks[..usize::from(self.len)]
            .get(usize::from(self.at))
            .copied()
    }

    /// Goes on to the next one.
    pub fn advance(&mut self) {
        self.at += 1;
    }
}

impl Survey {
    /// Nothing is known.
    pub const NONE: Survey = Survey {
        sources: Best::NONE,
        targets: Best::NONE,
        room: 0,
    };

    /// Looks at the zone of a run, which is the zone's `run`-th.
    pub fn new<H: Host>(m: &mut Manager<'_, H>, c: &Control, run: u16) -> Survey {
        let (unit, block) = (m.unit_order(c), m.frames.geometry.block_order);
        let span = m.zone(c.zone).span;
        let mut survey = Survey::NONE;
        let mut head = span.start.head(unit);
        while head < span.end {
            survey.look(m, c, (head, unit), run);
            head = head.plus(unit.frames());
        }
        let blocks = (span.end.0 - span.start.0).div_ceil(block.frames());
        m.compact_counters.blocks_surveyed += u64::from(blocks);
        survey
    }

    fn look<H: Host>(
        &mut self,
        m: &Manager<'_, H>,
        c: &Control,
        (head, unit): (FrameIx, Order),
        run: u16,
    ) {
        let block = m.frames.geometry.block_order;
        let mut free = 0;
        let mut is_source = true;
        let first = m.frames.block_type(head);
        let mut at = head;
        while at < head.plus(unit.frames()) {
            if !is_inside(m, c, at) {
                is_source = false;
            } else {
                let (room, mt) = (m.frames.room(at), m.frames.block_type(at));
                let alone = room.is_left_alone(run, c.ignores_skips);
                is_source &= !alone && mt == first && may_be_emptied(c, mt);
                free += u32::from(room.free);
                if takes_pages(mt) && (1..block.frames()).contains(&u32::from(room.free)) {
                    self.room += u64::from(room.free);
                    let rank = u32::from(room.free);
                    self.targets.offer(Pick { head: at, rank });
                }
            }
            at = at.plus(block.frames());
        }
        if is_source && (1..unit.frames()).contains(&free) {
            let rank = unit.frames() - free;
            self.sources.offer(Pick { head, rank });
        }
    }
}

/// Whether a pageblock lies in the zone of a run as a whole.
fn is_inside<H: Host>(m: &Manager<'_, H>, c: &Control, head: FrameIx) -> bool {
    let z = m.zone(c.zone);
    z.free_area.holds_block(&m.frames, head) && m.frames.zone_of(head) == c.zone
}

/// Whether a run takes pages out of pageblocks of a type. Those that are not movable hold something that stays, as a
/// rule: only a run that tries hard looks at them.
fn may_be_emptied(c: &Control, mt: MigrateType) -> bool {
    takes_pages(mt) || c.ignores_skips && mt.is_ordinary()
}

/// Whether pageblocks of a type take pages.
pub(super) fn takes_pages(mt: MigrateType) -> bool {
    matches!(mt, MigrateType::Movable | MigrateType::Cma)
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
