//! Free blocks and aligned runs by order, from the flags of page frames: as they are, after dropping caches, after a run of
//! compaction, and what all of these could give at most.
//!
//! Invariant: what is counted at least is free for certain if the model of the run holds: of a pageblock that memory was moved
//! into nothing is counted, as it is not known where in it, and of one that could not be emptied what was free before. What is counted at most leaves out no block without a frame that
//! stays.

use super::supply::{Lists, ORDERS};
use crate::doctor::compactor::{Compacted, CompactionRules};
use crate::doctor::frames::{BLOCK_FRAMES, FrameUse};
use crate::doctor::roles::Role;
use crate::doctor::zone_blocks::{Emptied, ZoneBlocks};

/// Order of a block of frames.
const BLOCK_ORDER: usize = BLOCK_FRAMES.ilog2() as usize;

/// Whether each frame of a pageblock is free.
type Frames = [bool; BLOCK_FRAMES];

/// Free blocks if no memory is moved.
pub(super) fn unmoved(zone: &ZoneBlocks, emptied: Emptied) -> Lists {
    lists(zone, |b| frames(b, |i| zone.is_free(i, emptied)))
}

/// Free blocks after a run of compaction. With `gaps` what it moved away from pageblocks that it could not empty counts as
/// well.
pub(super) fn compacted(
    zone: &ZoneBlocks,
    rules: &CompactionRules,
    done: &Compacted,
    gaps: bool,
) -> Lists {
    lists(zone, |b| {
        if done.free[b] as usize == BLOCK_FRAMES {
            return [true; BLOCK_FRAMES];
        }
        let is_target = rules.targets.get(b).is_some_and(|&t| t);
        if b >= done.targets_from && is_target {
            return [false; BLOCK_FRAMES];
        }
        let mut free = frames(b, |i| zone.is_free(i, rules.emptied));
        if gaps && b < done.sources_end {
            let first = b * BLOCK_FRAMES;
            for i in 0..BLOCK_FRAMES {
                if let Some(order) = rules.moving(zone, first + i) {
                    let end = (i + (1 << order)).min(BLOCK_FRAMES);
                    free[i..end].fill(true);
                }
            }
        }
        free
    })
}

/// What leaves a frame at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leaves {
    /// Unevictable memory.
    pub unevictable: bool,
    /// Slab, of pageblocks that nothing else holds.
    pub slabs: bool,
    /// Transparent huge pages, as where a range is emptied.
    pub huge_pages: bool,
}

/// Blocks without a frame that stays, if all else went elsewhere.
pub(super) fn emptiable(zone: &ZoneBlocks, leaves: Leaves) -> Lists {
    lists(zone, |b| {
        let block = &zone.blocks[b];
        let is_lost = |i: usize| match zone.roles.of(i) {
            Role::Fixed | Role::Unflagged => true,
            Role::Unevictable | Role::UnevictableWhole => !leaves.unevictable,
            _ => false,
        };
        let slab = block.of(FrameUse::Slab);
        let is_huge = usize::from(block.of(FrameUse::Thp)) == BLOCK_FRAMES;
        if (leaves.slabs && slab > 0 && block.fixed() == slab) || (leaves.huge_pages && is_huge) {
            return [true; BLOCK_FRAMES];
        }
        let is_per_cpu = block.of(FrameUse::PerCpu) > 0;
        let mut stays = frames(b, |i| {
            is_lost(i) && !(is_per_cpu && zone.roles.of(i) == Role::Unflagged)
        });
        for i in 1..BLOCK_FRAMES {
            let at = b * BLOCK_FRAMES + i;
            stays[i] |= zone.roles.of(at) == Role::Tail && stays[i - 1];
        }
        stays.map(|s| !s)
    })
}

fn frames(block: usize, is: impl Fn(usize) -> bool) -> Frames {
    std::array::from_fn(|i| is(block * BLOCK_FRAMES + i))
}

/// The blocks and runs of a zone, of whose pageblocks these frames are free.
fn lists(zone: &ZoneBlocks, of: impl Fn(usize) -> Frames) -> Lists {
    let mut lists = [0; ORDERS];
    let first = zone.first_pfn / BLOCK_FRAMES as u64;
    // The wholly free blocks that end at the one which is looked at.
    let mut begin = None;
    for b in 0..=zone.blocks.len() {
        let free = (b < zone.blocks.len()).then(|| uniform(zone, b).unwrap_or_else(|| of(b)));
        if free.is_some_and(|f| f.iter().all(|is| *is)) {
            begin.get_or_insert(b);
            continue;
        }
        if let Some(from) = begin.take() {
            add_run(
                &mut lists[BLOCK_ORDER..],
                first + from as u64..first + b as u64,
            );
        }
        if let Some(free) = free {
            add_parts(&mut lists, &free);
        }
    }
    lists
}

/// Whether a pageblock is not worth a look, frame by frame: it is free, or it stays.
fn uniform(zone: &ZoneBlocks, block: usize) -> Option<Frames> {
    match zone.roles.uniform(block)? {
        Role::Free => Some([true; BLOCK_FRAMES]),
        Role::Fixed if zone.blocks[block].is_absent() => Some([false; BLOCK_FRAMES]),
        _ => None,
    }
}

/// Adds a run of whole blocks as aligned pieces, the largest that fit.
fn add_run(lists: &mut [u64], run: std::ops::Range<u64>) {
    let mut at = run.start;
    while at < run.end {
        let aligned = at.trailing_zeros();
        let fits = (run.end - at).ilog2();
        let order = aligned.min(fits).min(lists.len() as u32 - 1);
        lists[order as usize] += 1;
        at += 1 << order;
    }
}

/// Adds the free blocks of a pageblock that is not wholly free.
fn add_parts(lists: &mut Lists, free: &Frames) {
    let mut i = 0;
    while i < BLOCK_FRAMES {
        if !free[i] {
            i += 1;
            continue;
        }
        let mut order = 0;
        while order + 1 < BLOCK_ORDER
            && i.is_multiple_of(2 << order)
            && free[i..i + (2 << order)].iter().all(|is| *is)
        {
            order += 1;
        }
        lists[order] += 1;
        i += 1 << order;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::compactor;
    use crate::doctor::test_zone::zone;
    use unfrag_linux::kpageflags::{ANON, BUDDY, LRU, SLAB};

    const NONE: Emptied = Emptied {
        lists: false,
        caches: false,
    };
    const CACHES: Emptied = Emptied {
        lists: false,
        caches: true,
    };

    #[test]
    fn free_blocks_are_runs_as_far_as_they_are_aligned() {
        // Blocks 0 to 6 are free, 7 has a page of slab at its 9th frame.
        let mut words = vec![BUDDY; 8 * 512];
        words[7 * 512 + 8] = SLAB;
        let lists = unmoved(&zone(words).1, NONE);
        assert_eq!(lists[9..13], [1, 1, 1, 0]);
        assert_eq!(lists[..9], [1; 9]);
    }

    #[test]
    fn dropped_caches_are_free() {
        let mut words = vec![LRU; 2 * 512];
        words[0] = LRU | ANON;
        let blocks = zone(words).1;
        assert_eq!(unmoved(&blocks, NONE), [0; ORDERS]);
        assert_eq!(unmoved(&blocks, CACHES)[9..11], [1, 0]);
        assert_eq!(unmoved(&blocks, CACHES)[..9], [1; 9]);
    }

    #[test]
    fn compaction_is_counted_without_what_it_filled() {
        // 8 blocks of which every fourth frame is in use, the first one with a page of slab.
        let mut words: Vec<u64> = (0..8 * 512)
            .map(|i| if i % 4 == 3 { LRU | ANON } else { BUDDY })
            .collect();
        words[0] = SLAB;
        let blocks = zone(words).1;
        let rules = CompactionRules {
            unevictable: true,
            by_order: true,
            synced: true,
            emptied: NONE,
            targets: &[true; 8],
        };
        let done = compactor::compacted(&blocks, &rules);
        let lists = compacted(&blocks, &rules, &done, true);
        // Blocks 1 to 5 are wholly free, and of the first one all but one page.
        assert_eq!(done.outcome.free_blocks, 5);
        assert_eq!(lists[9..13], [1, 2, 0, 0]);
        assert_eq!(lists[..9], [1; 9]);
        let without_gaps = compacted(&blocks, &rules, &done, false);
        assert_eq!(without_gaps[..9], [129, 127, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(without_gaps[9..], lists[9..]);
        let leaves = |slabs| Leaves {
            unevictable: true,
            slabs,
            huge_pages: false,
        };
        assert_eq!(emptiable(&blocks, leaves(false))[9..13], [1, 1, 1, 0]);
        assert_eq!(emptiable(&blocks, leaves(true))[9..13], [0, 0, 0, 1]);
    }
}
