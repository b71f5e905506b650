//! How far the refills of per-CPU lists had come at the start.
//!
//! A refill takes as many pages as a batch has. Where CPUs take turns on one list, each change shows where a
//! refill began, and all of these places are a multiple of the batch apart. What is left over at the beginning
//! had been taken by a refill before the start: it was on a per-CPU list, behind all else.
//!
//! Invariant: only first allocations are read.
//!
//! `spec: 3`

use super::evidence::Taker;
use super::state::FreeBlock;
use std::collections::BTreeMap;
use unfrag_eras::MigrateType;
use unfrag_eras::frame::MAX_MAX_ORDER;

/// The earliest changes that are looked at.
const CHANGES: usize = 12;

/// The pages of a buddy list's type that the latest refill before the start took, and the CPU; none if the trace
/// does not show it. `free` is in the order of the lists, `batch` what a refill takes.
pub(super) fn left_over(
    free: &[FreeBlock],
    mt: MigrateType,
    batch: u64,
    taker: impl Fn(u32) -> Option<Taker>,
) -> Option<(usize, Vec<u32>)> {
    let batch = usize::try_from(batch).ok().filter(|b| *b > 1)?;
    let of_order = |order| free.iter().filter(move |b| b.mt == mt && b.order == order);
    let frames = (0..=MAX_MAX_ORDER.0).flat_map(of_order);
    let frames = frames.flat_map(|b| b.pfn..b.pfn + (1 << b.order));
    let single = |p| taker(p).filter(|t| t.order == 0 && t.mt == mt);
    let stream = frames.map_while(|p| Some((p, single(p)?.cpu)));
    let mut first: Vec<u32> = vec![];
    let mut changes = BTreeMap::<usize, usize>::new();
    let (mut cpu, mut own, mut seen) = (None, None, 0);
    for (at, (p, by)) in stream.enumerate() {
        if first.len() < batch {
            first.push(p);
        }
        if cpu.is_some_and(|c| c != by) {
            own = own.or(Some((cpu, at)));
            *changes.entry(at % batch).or_default() += 1;
            seen += 1;
        }
        cpu = Some(by);
        if seen == CHANGES {
            break;
        }
    }
    let (rest, most) = changes.into_iter().max_by_key(|c| c.1)?;
    let (cpu, until) = own?;
    let shown = most * 3 >= seen * 2;
    if !shown || rest == 0 || until < rest {
        return None;
    }
    first.truncate(rest);
    Some((cpu?, first))
}

#[cfg(test)]
mod tests {
    //! `spec: 3`
    use super::*;

    const FIRST: u32 = 1024;

    /// CPUs 1 and 0 take turns on a block of 128 pages. The CPU changes before each of these pages.
    fn changes_at(places: &[u32]) -> Option<(usize, Vec<u32>)> {
        let mt = MigrateType::Movable;
        let free = [FreeBlock {
            pfn: FIRST,
            order: 7,
            mt,
        }];
        let taker = |p: u32| {
            let changes = places.iter().filter(|at| FIRST + **at <= p).count();
            let cpu = usize::from(changes % 2 == 0);
            Some(Taker {
                turn: p as usize,
                cpu,
                order: 0,
                mt,
            })
        };
        left_over(&free, mt, 8, taker)
    }

    /// Refills of eight that begin at page 3, 11 and so on: three pages had been taken before the start.
    #[test]
    fn the_first_pages_were_taken_by_the_refill_before() {
        let places: Vec<u32> = (0..15).map(|n| 3 + 8 * n).collect();
        assert_eq!(
            changes_at(&places),
            Some((1, vec![FIRST, FIRST + 1, FIRST + 2]))
        );
    }

    /// Where refills begin with the block, or changes fall anywhere, nothing had been taken.
    #[test]
    fn nothing_is_left_over_without_a_pattern() {
        let aligned: Vec<u32> = (1..15).map(|n| 8 * n).collect();
        assert_eq!(changes_at(&aligned), None);
        assert_eq!(changes_at(&[3, 12, 21, 30, 39, 48, 57, 66, 75, 84]), None);
        assert_eq!(changes_at(&[]), None);
    }
}
