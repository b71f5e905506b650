//! What waited on the per-CPU lists at the start.
//!
//! The trace shows the blocks that a CPU took before it first refilled a list; those had been waiting
//! there. Small pieces that are free beyond what the anchor's buddy lists show were held back too, by
//! the CPU that allocated them first.

use super::arrange::{ORDERS, coalesce, type_at};
use super::evidence::{Evidence, LISTS};
use super::{FreeBlock, SetStart};
use crate::cause::{Causes, FIRST_ALLOC};
use unfrag::{Gfp, MigrateType};

/// Blocks from this order on are not cut up for the per-CPU lists.
const LARGE: u8 = 9;

/// Blocks that wait on per-CPU lists, by CPU and list, and pages that are still to be found for each.
pub(super) struct Waiting {
    lists: Vec<Vec<Vec<(u32, u8)>>>,
    left: Vec<u64>,
    pub(super) frames: Vec<bool>,
}

/// What the trace itself says was waiting. Movable lists come first: their refills are plain to see.
pub(super) fn waiting(
    lo: u32,
    len: usize,
    causes: &Causes,
    evidence: &Evidence,
    held: &[u64],
) -> Waiting {
    let mut w = Waiting {
        lists: vec![vec![vec![]; LISTS]; held.len()],
        left: held.to_vec(),
        frames: vec![false; len],
    };
    for (cpu, left) in w.left.iter_mut().enumerate() {
        let mut found = free_before_refill(cpu, lo, lo + len as u32, causes, evidence);
        found.sort_by_key(|(list, _)| (list % 3 != MigrateType::Movable as usize, *list));
        for (list, pfns) in found {
            let order = (list / 3) as u8;
            for pfn in pfns {
                let k = (pfn - lo) as usize;
                let block = k..(k + (1 << order)).min(len);
                let whole =
                    block.len() == 1 << order && w.frames[block.clone()].iter().all(|f| !*f);
                if *left >= 1 << order && whole {
                    *left -= 1 << order;
                    w.frames[block].fill(true);
                    w.lists[cpu][list].push((pfn, order));
                }
            }
        }
    }
    w
}

/// What a CPU allocated from each of its lists before it refilled it for the first time: that had been
/// waiting there, if it was free at the start.
fn free_before_refill(
    cpu: usize,
    lo: u32,
    hi: u32,
    causes: &Causes,
    evidence: &Evidence,
) -> Vec<(usize, Vec<u32>)> {
    let Some(lists) = evidence.before_refill.get(cpu) else {
        return vec![];
    };
    let mut all = vec![];
    for (list, pfns) in lists.iter().enumerate() {
        let mut seen = std::collections::HashSet::new();
        let waited = |p: &u32| {
            (lo..hi).contains(p) && causes.first[*p as usize] == FIRST_ALLOC && seen.insert(*p)
        };
        all.push((list, pfns.iter().copied().filter(waited).collect()));
    }
    all
}

/// Per-CPU lists: what is free in small pieces that the anchor's buddy lists do not show had been
/// held back by the CPU that allocated it first; if that is not enough, other small pieces.
pub(super) fn sets(
    zone: usize,
    lo: u32,
    evidence: &Evidence,
    free: &[bool],
    types: &[(u32, MigrateType)],
    waiting: Waiting,
    shown: &[[u64; ORDERS]],
) -> Vec<SetStart> {
    let Waiting {
        mut lists,
        mut left,
        ..
    } = waiting;
    let hi = lo + free.len() as u32;
    let mut small = vec![false; free.len()];
    let mut pieces = vec![false; free.len()];
    let mut extra: Vec<[i64; ORDERS]> = shown.iter().map(|n| n.map(|n| n as i64)).collect();
    // By type where the anchor tells them apart.
    let row = |b: &FreeBlock| (b.mt as usize).min(shown.len() - 1);
    let mut blocks = coalesce(lo, free, types);
    blocks.sort_by_key(|b| b.order);
    for b in &blocks {
        extra[row(b)][usize::from(b.order)] -= 1;
    }
    for b in blocks.iter().filter(|b| b.order < LARGE) {
        let range = (b.pfn - lo) as usize..(b.pfn - lo) as usize + (1 << b.order);
        small[range.clone()].fill(true);
        let over = &mut extra[row(b)][usize::from(b.order)];
        if *over < 0 {
            *over += 1;
            pieces[range].fill(true);
        }
    }
    let own = |p: u32| type_at(p, types);
    for candidates in [&mut pieces, &mut small] {
        for &(pfn, order) in lists.iter().flatten().flatten() {
            let k = (pfn - lo) as usize;
            candidates[k..k + (1 << order)].fill(false);
        }
        for op in evidence.firsts.iter().filter(|o| (lo..hi).contains(&o.pfn)) {
            let cpu = usize::from(op.cpu);
            let Some(mt) = Gfp::from_bits_retain(op.other)
                .mobility()
                .filter(|t| t.is_ordinary())
            else {
                continue;
            };
            for p in op.pfn..op.pfn + (1 << op.order.min(3)) {
                if left.get(cpu).is_some_and(|&n| n > 0)
                    && std::mem::take(&mut candidates[(p - lo) as usize])
                {
                    left[cpu] -= 1;
                    lists[cpu][mt as usize].push((p, 0));
                }
            }
        }
        // Pieces that nobody took while the trace ran wait at the far end.
        for (p, candidate) in (lo..).zip(candidates.iter_mut()) {
            let Some(cpu) = left.iter().position(|&n| n > 0) else {
                break;
            };
            if std::mem::take(candidate) {
                left[cpu] -= 1;
                let mt = if own(p).is_ordinary() {
                    own(p)
                } else {
                    MigrateType::Movable
                };
                lists[cpu][mt as usize].push((p, 0));
            }
        }
    }
    let blocks = |l: Vec<(u32, u8)>| {
        l.into_iter()
            .map(|(pfn, order)| FreeBlock {
                pfn,
                order,
                mt: own(pfn),
            })
            .collect()
    };
    lists
        .into_iter()
        .enumerate()
        .map(|(cpu, lists)| SetStart {
            zone,
            cpu,
            tuning: None,
            lists: lists
                .into_iter()
                .enumerate()
                .filter(|(_, l)| !l.is_empty())
                .map(|(i, l)| (i, blocks(l)))
                .collect(),
        })
        .collect()
}
