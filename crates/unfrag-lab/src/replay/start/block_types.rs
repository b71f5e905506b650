//! Which pageblock was of which type at the start.
//!
//! A host shows how many pageblocks of each type there are, but not which. The trace shows the type of some:
//! their blocks came from a list of that type, or went to one. The others are guessed.
//!
//! Invariant: as many pageblocks of each type as the anchor shows, as far as the trace allows.

use super::arrange::{BlockTypes, FrameState, ZoneFrames};
use super::percpu::Sources;
use crate::replay::causes::FIRST_ALLOC;
use std::cmp::Reverse;
use unfrag_eras::MigrateType;
use unfrag_linux::kpageflags::{LRU, PGTABLE, SLAB};

impl ZoneFrames {
    /// Types of the pageblocks: as many of each as the anchor shows (`[unmovable, reclaimable]`).
    /// Unmovable and reclaimable pageblocks are those that served such requests before the first
    /// fallback, or whose lists the trace shows. The rest are those with most pages of that kind by the page
    /// flags; without flags the fullest ones, from low addresses up, because a fallback happens when they are
    /// full.
    pub(super) fn block_types(&self, blocks: Option<[u64; 2]>, from: &Sources) -> BlockTypes {
        let Sources {
            causes,
            evidence,
            pcp_trace,
            flags,
            ..
        } = from;
        let (lo, hi) = (self.lo, self.lo + self.states.len() as u32);
        let block = self.block_frames();
        let first = lo / block;
        let n = self.pageblocks();
        let until = causes.fallbacks.first.unwrap_or(u64::MAX);
        let mut votes = vec![[0u32; 3]; n];
        let early = evidence.firsts.iter().take_while(|o| o.time < until);
        for taken in early.filter(|o| (lo..hi).contains(&o.block.pfn)) {
            let pfn = taken.block.pfn;
            if causes.first[pfn as usize] == FIRST_ALLOC
                && let Some(mt) = taken.gfp.mobility()
                && mt.is_ordinary()
            {
                votes[(pfn / block - first) as usize][mt as usize] += 1 << taken.block.order;
            }
        }
        let empty = |b: usize| {
            let frames = self.states[self.pageblock(b)].iter();
            frames.filter(|k| k.is_free()).count()
        };
        let empty: Vec<usize> = (0..n).map(empty).collect();
        // Pages of slabs, and pages of the kernel in all.
        let kernels = |b: usize| {
            let mut n = [0u32; 2];
            for k in self.pageblock(b) {
                let f = flags.map_or(LRU, |f| f.frame(u64::from(lo) + k as u64));
                n[0] += u32::from(f & SLAB != 0);
                n[1] += u32::from(f & (SLAB | PGTABLE) != 0);
            }
            n
        };
        let kernels: Vec<[u32; 2]> = (0..n).map(kernels).collect();
        let absent = |b: usize| self.states[self.pageblock(b)].first() == Some(&FrameState::Absent);
        let mut types = vec![MigrateType::Movable; n];
        let [unmovable, reclaimable] = blocks.unwrap_or([n as u64, 0]);
        for (mt, wanted) in [
            (MigrateType::Reclaimable, reclaimable),
            (MigrateType::Unmovable, unmovable),
        ] {
            let shown = |b: usize| pcp_trace.as_ref()?.block_type((first + b as u32) * block);
            let open = |&b: &usize| {
                let other = shown(b).is_some_and(|t| t != mt);
                types[b] == MigrateType::Movable && !absent(b) && !other
            };
            let mut order: Vec<usize> = (0..n).filter(open).collect();
            order.sort_by_key(|&b| {
                let v = votes[b];
                let own = v[mt as usize];
                let served = own > v.iter().sum::<u32>() / 2;
                (
                    shown(b).is_none(),
                    !served,
                    Reverse(if served { own } else { 0 }),
                    Reverse(kernels[b][usize::from(mt == MigrateType::Unmovable)]),
                    empty[b],
                    b,
                )
            });
            for b in order.into_iter().take(wanted as usize) {
                types[b] = mt;
            }
        }
        let types = types.into_iter().enumerate();
        BlockTypes {
            geometry: self.geometry,
            all: types
                .map(|(b, mt)| ((first + b as u32) * block, mt))
                .collect(),
        }
    }
}
