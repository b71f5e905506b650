//! What the trace shows to have been used up.
//!
//! A request takes the smallest block that serves it, and a list is refilled when it is empty. So where small
//! requests of a type broke up large blocks that nobody had touched, smaller blocks of that type were gone, and
//! a frame that is never touched was in none of them; nor was it on a per-CPU list that was refilled.
//!
//! Invariant: of each frame only its first allocation is read, and a block counts only if nothing of it was
//! touched before.
//!
//! `spec: 1.2, 2.6, 3`

use super::evidence::Taker;
use crate::replay::causes::FIRST_ALLOC;
use unfrag_eras::{Geometry, MigrateType};

/// A block that is broken up is taken from its beginning on; that is looked at in so many parts.
const PARTS: usize = 8;

/// Of each type of a zone, the order below which its buddy lists were used up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UsedUp {
    lo: u32,
    below: [Option<u8>; 3],
    /// For each frame that was touched first after that, by a request of any type: the order of the block that
    /// it was in.
    late: Vec<Option<u8>>,
    /// Whether a frame is in a block that was broken up.
    whole: Vec<bool>,
    /// Blocks of the order of a pageblock that were broken up before others, by their first frame.
    finished: Vec<u32>,
}

impl UsedUp {
    /// What the first allocations of the frames from `lo` on (`takers`) show. `first` is what the first event of
    /// each frame of the host is.
    pub(super) fn of(
        lo: u32,
        takers: &[Option<Taker>],
        first: &[u8],
        geometry: Geometry,
    ) -> UsedUp {
        // The smallest order of a block whose breaking up shows: that of a pageblock.
        let large = geometry.block_order.0;
        let mut used_up = UsedUp {
            lo,
            below: [None; 3],
            late: vec![None; takers.len()],
            finished: vec![],
            whole: vec![false; takers.len()],
        };
        let mut since = [usize::MAX; 3];
        // First frame, and turns of the first and the last page.
        let mut blocks = vec![];
        for order in large..=geometry.max_order.0 {
            let size = 1usize << order;
            let begin = (lo as usize).next_multiple_of(size);
            for at in (begin..).step_by(size) {
                let Some(block) = takers.get(at - lo as usize..at - lo as usize + size) else {
                    break;
                };
                let fresh = || first[at..at + size].iter().all(|f| *f == FIRST_ALLOC);
                if let Some(mt) = broken_up_for(block).filter(|_| fresh()) {
                    if order == large {
                        let turns = || block.iter().flatten().map(|t| t.turn);
                        let (first, last) = (turns().min(), turns().max());
                        blocks.push((at as u32, first.unwrap_or(0), last.unwrap_or(0)));
                    }
                    if used_up.below[mt as usize] != Some(order) {
                        used_up.below[mt as usize] = Some(order);
                        since[mt as usize] = usize::MAX;
                    }
                    let begins = &mut since[mt as usize];
                    *begins =
                        (*begins).min(takers[at - lo as usize].map_or(usize::MAX, |t| t.turn));
                    used_up.whole[at - lo as usize..at - lo as usize + size].fill(true);
                }
            }
        }
        let last_begun = blocks.iter().map(|b| b.1).max();
        let finished = blocks.iter().filter(|b| Some(b.2) < last_begun);
        used_up.finished = finished.map(|b| b.0).collect();
        let below = used_up.below;
        for (late, taker) in used_up.late.iter_mut().zip(takers) {
            if let Some(t) = taker
                && t.turn >= since[t.mt as usize]
            {
                *late = below[t.mt as usize];
            }
        }
        used_up
    }

    /// The order of the block in which a frame must have been, if small ones were used up when it was taken.
    pub(super) fn least_order(&self, k: usize) -> Option<u8> {
        self.late[k]
    }

    /// Whether a frame was in a large block on a buddy list until that was broken up.
    pub(super) fn was_whole(&self, pfn: u32) -> bool {
        let at = pfn.checked_sub(self.lo);
        at.and_then(|at| self.whole.get(at as usize))
            .is_some_and(|w| *w)
    }

    /// Blocks of the order of a pageblock that were used up to the last page before the next one was begun.
    pub(super) fn finished(&self) -> &[u32] {
        &self.finished
    }

    /// The order below which blocks of a type were used up.
    pub(super) fn below(&self, mt: MigrateType) -> Option<u8> {
        self.below.get(mt as usize).copied().flatten()
    }
}

/// The type of the small requests that took a block piece by piece from its beginning on, if it was so.
fn broken_up_for(block: &[Option<Taker>]) -> Option<MigrateType> {
    let mt = block.first()?.as_ref()?.mt;
    let mut before = 0;
    for part in block.chunks((block.len() / PARTS).max(1)) {
        let mut earliest = usize::MAX;
        for taker in part {
            let taker = taker.as_ref().filter(|t| t.mt == mt && t.order <= 3)?;
            earliest = earliest.min(taker.turn);
        }
        if earliest < before {
            return None;
        }
        before = earliest;
    }
    Some(mt)
}

#[cfg(test)]
mod tests {
    //! `spec: 1.2, 2.6, 3`
    use super::*;
    use crate::replay::causes::FIRST_FREE;

    const LO: u32 = 512;
    const FRAMES: usize = 4096;

    fn taker(turn: usize) -> Option<Taker> {
        let mt = MigrateType::Movable;
        Some(Taker {
            turn,
            cpu: 0,
            order: 0,
            mt,
        })
    }

    /// Nobody touched anything but these blocks of 512 pages; each was taken page by page from this turn on.
    fn taken(blocks: &[(u32, usize)]) -> (Vec<Option<Taker>>, Vec<u8>) {
        let (mut takers, mut first) = (vec![None; FRAMES], vec![0; FRAMES + LO as usize]);
        for &(pfn, turn) in blocks {
            for k in 0..512 {
                takers[pfn as usize + k - LO as usize] = taker(turn + k);
                first[pfn as usize + k] = FIRST_ALLOC;
            }
        }
        (takers, first)
    }

    /// A large block that single pages break up says that smaller ones of its type were gone, and no more.
    #[test]
    fn a_block_that_is_broken_up_shows_that_small_ones_were_gone() {
        let (mut takers, first) = taken(&[(1024, 100)]);
        takers[0] = taker(99);
        takers[1] = taker(700);
        let used_up = UsedUp::of(LO, &takers, &first, Geometry::PAGES_4K);
        assert_eq!(used_up.below(MigrateType::Movable), Some(9));
        assert_eq!(used_up.below(MigrateType::Unmovable), None);
        assert!(used_up.was_whole(1024) && used_up.was_whole(1535));
        assert!(!used_up.was_whole(1023) && !used_up.was_whole(1536));
        assert_eq!(used_up.least_order(0), None, "taken before");
        assert_eq!(used_up.least_order(1), Some(9), "taken after");
    }

    /// Pages that are taken from the end, or of which one was in use before, are from no whole block.
    #[test]
    fn other_blocks_show_nothing() {
        let (mut takers, mut first) = taken(&[(1024, 100)]);
        takers[512..1024].reverse();
        let backwards = UsedUp::of(LO, &takers, &first, Geometry::PAGES_4K);
        assert_eq!(backwards.below(MigrateType::Movable), None);
        takers[512..1024].reverse();
        first[1300] = FIRST_FREE;
        let in_use = UsedUp::of(LO, &takers, &first, Geometry::PAGES_4K);
        assert_eq!(in_use.below(MigrateType::Movable), None);
        assert!(!in_use.was_whole(1024));
    }

    /// Of two blocks, that one is finished whose last page goes before the first of the other.
    #[test]
    fn a_block_is_finished_before_the_next_is_begun() {
        let (takers, first) = taken(&[(1024, 100), (2048, 612)]);
        assert_eq!(
            UsedUp::of(LO, &takers, &first, Geometry::PAGES_4K).finished(),
            [1024]
        );
        let (takers, first) = taken(&[(1024, 100), (2048, 600)]);
        assert!(
            UsedUp::of(LO, &takers, &first, Geometry::PAGES_4K)
                .finished()
                .is_empty()
        );
    }

    /// The buddy of a block of 512 that is used up before the next was in use, or the two had been one.
    #[test]
    fn the_buddy_of_a_finished_block_is_in_use() {
        use super::super::arrange::{BlockTypes, FrameState, ZoneFrames};
        use super::super::shown::ORDERS;
        let (takers, first) = taken(&[(1024, 100), (3072, 612)]);
        let used_up = UsedUp::of(LO, &takers, &first, Geometry::PAGES_4K);
        let known = |t: &Option<Taker>| match t {
            Some(_) => FrameState::Free,
            None => FrameState::Unknown,
        };
        let states = takers.iter().map(known).collect();
        let geometry = Geometry::PAGES_4K;
        let mut zone = ZoneFrames {
            lo: LO,
            states,
            geometry,
        };
        let blocks = (LO..LO + FRAMES as u32).step_by(512);
        let types = BlockTypes {
            geometry,
            all: blocks.map(|b| (b, MigrateType::Movable)).collect(),
        };
        zone.choose(1024, &[[0; ORDERS]], &types, &used_up);
        let buddy = &zone.states[1536 - LO as usize..2048 - LO as usize];
        assert!(buddy.iter().all(|f| *f == FrameState::AssumedUsed));
    }
}
